//! TLS with a private authority: a server whose certificate nobody else would trust.

mod arena;

use arena::*;
use emberkeep_hot::Error;
use emberkeep_hot_redis::RedisEngine;
use emberkeep_testkit::{
    Certificates, RedisCluster, RedisOptions, RedisServer, Unavailable, free_port, require,
};

/// The path of one of the files.
fn path(certificates: &Certificates, name: &str) -> String {
    certificates.path(name).display().to_string()
}

/// Settings of a server that speaks TLS on this port.
fn server(certificates: &Certificates, tls_port: u16) -> RedisOptions {
    RedisServer::options()
        .set("tls-port", &tls_port.to_string())
        .set("tls-cert-file", &path(certificates, "server.pem"))
        .set("tls-key-file", &path(certificates, "server.key"))
        .set("tls-ca-cert-file", &path(certificates, "ca.pem"))
        .set("tls-auth-clients", "no")
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
    let Some(redis) = require(with_tls(server(&certificates, tls_port).start())) else { return };
    let url = format!("rediss://127.0.0.1:{tls_port}");
    let ca = path(&certificates, "ca.pem");

    let store = store_on(&format!("{url}?ca={ca}")).await;
    assert_eq!(hit(&store.scope(arena("tls")), "first".into(), 5).await, Ok(5));
    assert_eq!(redis.client().call(&["GET", "sum:tls"]).text(), "5");

    let error = refused(&url).await;
    let Error::Unavailable { reason, advice, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("certificate") && advice.contains("?ca="), "{error}");

    let other = Certificates::make().expect("openssl worked a moment ago");
    let error = refused(&format!("{url}?ca={}", path(&other, "ca.pem"))).await;
    assert!(
        matches!(error, Error::Unavailable { .. }),
        "another authority's word counts for nothing: {error}"
    );

    let error = refused(&format!("redis://127.0.0.1:{}?ca={ca}", redis.port())).await;
    assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains("rediss://"), "{error}");

    std::fs::write(certificates.path("broken.pem"), "-----BEGIN CERTIFICATE-----\nno\n").expect("ours");
    for name in ["missing.pem", "broken.pem", "settings"] {
        let error = refused(&format!("{url}?ca={}", path(&certificates, name))).await;
        assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains(name), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_a_cluster_names_are_trusted_alike() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let tls_port = free_port();
    let options = server(&certificates, tls_port).set("tls-cluster", "yes");
    let Some(cluster) = require(with_tls(RedisCluster::start_with(&options, 1, 0))) else { return };
    // The map of slots names the node again, and steps go to the one that it names.
    let url = format!("rediss+cluster://127.0.0.1:{tls_port}?ca={}", path(&certificates, "ca.pem"));
    let store = store_on(&url).await;
    assert_eq!(hit(&store.scope(arena("tls")), "first".into(), 5).await, Ok(5));
    assert_eq!(cluster.nodes()[0].client().call(&["GET", "{tls}sum:tls"]).text(), "5");
}
