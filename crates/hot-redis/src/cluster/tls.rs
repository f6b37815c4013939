//! TLS: the crypto provider, and a private certificate authority (`?ca=/path/ca.pem`) instead of the public
//! ones.

use emberkeep_hot::Error;
use redis::{Client, ConnectionInfo, TlsCertificates};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Display;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Installs rustls' default crypto provider (ring) unless the process has one; redis-rs panics without it.
fn install_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// The certificates of a private authority.
#[derive(Clone)]
pub(crate) struct CertificateAuthority {
    path: String,
    certificates: TlsCertificates,
    roots: RootCertStore,
}

/// TLS for the engine's own streams. It verifies the certificate and the host name, as the library does on
/// its streams.
pub(crate) fn connector(authority: Option<&CertificateAuthority>) -> TlsConnector {
    install_crypto_provider();
    let public = || RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let roots = authority.map_or_else(public, |authority| authority.roots.clone());
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    // A resumed session does not present its certificate again, so an expired one would still be accepted.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

impl CertificateAuthority {
    /// Reads a PEM file of one certificate or several.
    pub(crate) fn read(path: &str) -> Result<CertificateAuthority, Error> {
        let pem = std::fs::read(path).map_err(|error| unusable(path, &format!("cannot be read: {error}")))?;
        let not_understood = |error: &dyn Display| unusable(path, &format!("is not understood: {error}"));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| not_understood(&error))?;
            roots.add(certificate).map_err(|error| not_understood(&error))?;
        }
        // The library accepts a file without certificates, and then trusts no server.
        if roots.is_empty() {
            return Err(unusable(path, "holds no certificate"));
        }
        let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem) };
        Ok(CertificateAuthority { path: path.to_owned(), certificates, roots })
    }

    /// The same server, trusted by this authority. A copy of the settings for another host, as a redirect
    /// needs it, trusts the same authority.
    pub(crate) fn trusted(&self, info: ConnectionInfo) -> Result<ConnectionInfo, Error> {
        let client = Client::build_with_tls(info, self.certificates.clone());
        let client = client.map_err(|error| unusable(&self.path, &format!("is not understood: {error}")))?;
        Ok(client.get_connection_info().clone())
    }
}

fn unusable(path: &str, problem: &str) -> Error {
    Error::Invalid {
        what: "CA file",
        problem: format!("{path} {problem}; expected certificates in PEM, as in ?ca=/path/ca.pem"),
    }
}
