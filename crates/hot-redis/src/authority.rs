//! TLS: its arithmetic, and a private certificate authority (`?ca=/path/ca.pem`), trusted instead of the public ones.

use emberkeep_hot::Error;
use redis::{Client, ConnectionInfo, TlsCertificates};

/// How a certificate begins in a PEM file.
const PEM_BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Sees to it that TLS has somebody to do its arithmetic: the client library asks the process for it and panics
/// where there is none. What the program has chosen stays.
pub(crate) fn prepare_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error says that another thread was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Certificates, and the file that they came from.
#[derive(Clone)]
pub(crate) struct Authority {
    path: String,
    certificates: TlsCertificates,
}

impl Authority {
    /// Reads a PEM file of one certificate or several.
    pub(crate) fn read(path: &str) -> Result<Authority, Error> {
        let pem = std::fs::read(path).map_err(|error| unusable(path, &format!("cannot be read: {error}")))?;
        // The library takes a file without any for an authority that vouches for nobody.
        if !pem.windows(PEM_BEGIN.len()).any(|window| window == PEM_BEGIN) {
            return Err(unusable(path, "holds no certificate"));
        }
        let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem) };
        Ok(Authority { path: path.to_owned(), certificates })
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
