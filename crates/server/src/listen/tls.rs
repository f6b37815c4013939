//! The listener's TLS configuration, which changes while the server runs.

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::sync::Arc;

/// Shared by the listener, which uses it, and the watcher of the files, which replaces it.
#[derive(Clone)]
pub(super) struct TlsConfig(Arc<RwLock<Arc<ServerConfig>>>);

impl TlsConfig {
    /// Of a certificate with those that lead to its root, and its private key.
    pub(super) fn from_pem(certificate: &[u8], key: &[u8]) -> io::Result<TlsConfig> {
        Ok(TlsConfig(Arc::new(RwLock::new(parse(certificate, key)?))))
    }

    /// Replaces it for later connections. Stays as it was if the files cannot be used.
    pub(super) fn replace(&self, certificate: &[u8], key: &[u8]) -> io::Result<()> {
        let config = parse(certificate, key)?;
        *self.0.write() = config;
        Ok(())
    }

    pub(super) fn current(&self) -> Arc<ServerConfig> {
        self.0.read().clone()
    }
}

fn parse(certificate: &[u8], key: &[u8]) -> io::Result<Arc<ServerConfig>> {
    let chain: Vec<CertificateDer> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, Error>>()
        .map_err(|error| io::Error::other(format!("the certificate is not PEM: {error}")))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        Error::NoItemsFound => io::Error::other("the key's file holds no private key"),
        error => io::Error::other(format!("the key is not PEM: {error}")),
    })?;
    if chain.is_empty() {
        return Err(io::Error::other("the certificate's file holds no certificate"));
    }
    let builder = ServerConfig::builder().with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
