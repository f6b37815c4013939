//! Servers that speak TLS, with certificates of a private authority.

use emberkeep_testkit::{Certificates, RedisOptions, RedisServer, Unavailable};

/// The path of one of the files.
pub fn pem_path(certificates: &Certificates, name: &str) -> String {
    certificates.path(name).display().to_string()
}

/// Settings of a server that speaks TLS on this port.
pub fn tls_server(certificates: &Certificates, tls_port: u16) -> RedisOptions {
    RedisServer::options()
        .set("tls-port", &tls_port.to_string())
        .set("tls-cert-file", &pem_path(certificates, "server.pem"))
        .set("tls-key-file", &pem_path(certificates, "server.key"))
        .set("tls-ca-cert-file", &pem_path(certificates, "ca.pem"))
        .set("tls-auth-clients", "no")
}

/// A server that was built without TLS is as good as none.
pub fn with_tls<S>(started: Result<S, Unavailable>) -> Result<S, Unavailable> {
    started.map_err(|error| match error {
        Unavailable::Failed(why) if why.contains("Bad directive") => {
            Unavailable::NotFound("redis-server was built without TLS".into())
        }
        other => other,
    })
}
