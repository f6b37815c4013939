//! TLS with a private authority: a server whose certificate nobody else would trust.

mod arena;

use arena::*;
use emberkeep_hot::Error;
use emberkeep_hot_redis::RedisEngine;
use emberkeep_testkit::{
    RedisCluster, RedisOptions, RedisServer, Scratch, Unavailable, free_port, require, scratch,
};
use std::path::Path;
use std::process::Command;

/// What the certificates say; written down, so that the machine's own settings of openssl do not matter.
const SETTINGS: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = emberkeep test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = critical, CA:FALSE
subjectAltName = IP:127.0.0.1
extendedKeyUsage = serverAuth, clientAuth
";

/// A private authority and the certificate of a server on 127.0.0.1.
struct Certificates {
    folder: Scratch,
}

impl Certificates {
    fn make() -> Result<Certificates, Unavailable> {
        let folder = scratch();
        std::fs::write(folder.join("settings"), SETTINGS).expect("the folder is ours");
        let new_key = "req -config settings -newkey rsa:2048 -nodes";
        for line in [
            format!("{new_key} -x509 -extensions authority -days 2 -keyout ca.key -out ca.pem"),
            format!("{new_key} -keyout server.key -out server.csr"),
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -set_serial 2 -days 2 \
             -extfile settings -extensions server -out server.pem"
                .to_owned(),
        ] {
            openssl(folder.path(), &line)?;
        }
        Ok(Certificates { folder })
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Settings of a server that speaks TLS on this port.
    fn server(&self, tls_port: u16) -> RedisOptions {
        RedisServer::options()
            .set("tls-port", &tls_port.to_string())
            .set("tls-cert-file", &self.path("server.pem"))
            .set("tls-key-file", &self.path("server.key"))
            .set("tls-ca-cert-file", &self.path("ca.pem"))
            .set("tls-auth-clients", "no")
    }
}

fn openssl(folder: &Path, line: &str) -> Result<(), Unavailable> {
    match Command::new("openssl").args(line.split_whitespace()).current_dir(folder).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Unavailable::Failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(_) => Err(Unavailable::NotFound("openssl not found on PATH (run ./test once)".into())),
    }
}

/// A server that was built without TLS is as good as none.
fn with_tls<S>(started: Result<S, Unavailable>) -> Result<S, Unavailable> {
    started.map_err(|error| match error {
        Unavailable::Failed(why) if why.contains("Bad directive") => {
            Unavailable::NotFound("redis-server was built without TLS".into())
        }
        other => other,
    })
}

/// The error of a URL that must not connect.
async fn refused(url: &str) -> Error {
    RedisEngine::connect(url).await.err().unwrap_or_else(|| panic!("{url} connects"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_authority_is_trusted_when_it_is_named_and_only_then() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let tls_port = free_port();
    let Some(server) = require(with_tls(certificates.server(tls_port).start())) else { return };
    let url = format!("rediss://127.0.0.1:{tls_port}");
    let ca = certificates.path("ca.pem");

    let store = store_on(&format!("{url}?ca={ca}")).await;
    assert_eq!(hit(&store.scope(arena("tls")), "first".into(), 5).await, Ok(5));
    assert_eq!(server.client().call(&["GET", "sum:tls"]).text(), "5");

    let error = refused(&url).await;
    let Error::Unavailable { reason, advice, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("certificate") && advice.contains("?ca="), "{error}");

    let other = Certificates::make().expect("openssl worked a moment ago");
    let error = refused(&format!("{url}?ca={}", other.path("ca.pem"))).await;
    assert!(
        matches!(error, Error::Unavailable { .. }),
        "another authority's word counts for nothing: {error}"
    );

    let error = refused(&format!("redis://127.0.0.1:{}?ca={ca}", server.port())).await;
    assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains("rediss://"), "{error}");

    std::fs::write(certificates.folder.join("broken.pem"), "-----BEGIN CERTIFICATE-----\nno\n")
        .expect("ours");
    for name in ["missing.pem", "broken.pem", "settings"] {
        let error = refused(&format!("{url}?ca={}", certificates.path(name))).await;
        assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains(name), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_a_cluster_names_are_trusted_alike() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let tls_port = free_port();
    let options = certificates.server(tls_port).set("tls-cluster", "yes");
    let Some(cluster) = require(with_tls(RedisCluster::start_with(&options, 1, 0))) else { return };
    // The map of slots names the node again, and steps go to the one that it names.
    let url = format!("rediss+cluster://127.0.0.1:{tls_port}?ca={}", certificates.path("ca.pem"));
    let store = store_on(&url).await;
    assert_eq!(hit(&store.scope(arena("tls")), "first".into(), 5).await, Ok(5));
    assert_eq!(cluster.nodes()[0].client().call(&["GET", "{tls}sum:tls"]).text(), "5");
}
