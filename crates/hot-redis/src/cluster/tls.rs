//! TLS: its arithmetic, and a private certificate authority (`?ca=/path/ca.pem`), trusted instead of the public ones.

use emberkeep_hot::Error;
use redis::{Client, ConnectionInfo, TlsCertificates};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Display;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Sees to it that TLS has somebody to do its arithmetic: the client library asks the process for it and panics
/// where there is none. What the program has chosen stays.
fn prepare_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error says that another thread was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Certificates, and the file that they came from.
#[derive(Clone)]
pub(crate) struct CertificateAuthority {
    path: String,
    certificates: TlsCertificates,
    roots: RootCertStore,
}

/// TLS for streams of our own. It verifies what the library does on its streams: the certificate and the host name,
/// with this authority's certificates or the public ones.
pub(crate) fn connector(authority: Option<&CertificateAuthority>) -> TlsConnector {
    prepare_tls();
    let public = || RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let roots = authority.map_or_else(public, |authority| authority.roots.clone());
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    // A resumed session would not present its certificate again: one that has expired would go on being accepted.
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
        // The library takes a file without any for an authority that vouches for nobody.
        if roots.is_empty() {
            return Err(unusable(path, "holds no certificate"));
        }
        let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem) };
        Ok(CertificateAuthority { path: path.to_owned(), certificates, roots })
    }

    /// The same server, trusted when this authority vouches for it. The settings carry that with them: a copy for
    /// another host, as a redirect needs it, trusts the same.
    pub(crate) fn vouched(&self, info: ConnectionInfo) -> Result<ConnectionInfo, Error> {
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
