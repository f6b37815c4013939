//! TLS with a private authority: a server whose certificate no public authority has signed.

mod fault_harness;

use emberkeep_hot::Error;
use emberkeep_hot_redis::RedisEngine;
use emberkeep_testkit::{Certificates, RedisCluster, free_port, require};
use fault_harness::*;

/// The error of a URL that must not connect.
async fn refused(url: &str) -> Error {
    RedisEngine::connect(url).await.err().unwrap_or_else(|| panic!("{url} connects"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_authority_is_trusted_when_it_is_named_and_only_then() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let tls_port = free_port();
    let Some(redis) = require(with_tls(tls_server(&certificates, tls_port).start())) else { return };
    let url = format!("rediss://127.0.0.1:{tls_port}");
    let ca = pem_path(&certificates, "ca.pem");

    let store = store_on(&format!("{url}?ca={ca}")).await;
    assert_eq!(hit(&store.scope(arena("tls")), "first".into(), 5).await, Ok(5));
    assert_eq!(redis.client().call(&["GET", "sum:tls"]).text(), "5");

    let error = refused(&url).await;
    let Error::Unavailable { reason, advice, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("certificate") && advice.contains("?ca="), "{error}");

    let other = Certificates::make().expect("openssl worked a moment ago");
    let error = refused(&format!("{url}?ca={}", pem_path(&other, "ca.pem"))).await;
    assert!(
        matches!(error, Error::Unavailable { .. }),
        "another authority's word counts for nothing: {error}"
    );

    let error = refused(&format!("redis://127.0.0.1:{}?ca={ca}", redis.port())).await;
    assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains("rediss://"), "{error}");

    std::fs::write(certificates.path("broken.pem"), "-----BEGIN CERTIFICATE-----\nno\n").expect("ours");
    for name in ["missing.pem", "broken.pem", "settings"] {
        let error = refused(&format!("{url}?ca={}", pem_path(&certificates, name))).await;
        assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains(name), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_and_database_are_used_and_no_certificate_goes_unverified() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let tls_port = free_port();
    let Some(redis) = require(with_tls(tls_server(&certificates, tls_port).start())) else { return };
    let mut client = redis.client();
    assert!(client.call(&["ACL", "SETUSER", "joe", "on", ">s3cret", "~*", "&*", "+@all"]).is_ok());
    let ca = pem_path(&certificates, "ca.pem");

    let store = store_on(&format!("rediss://joe:s3cret@127.0.0.1:{tls_port}/3?ca={ca}")).await;
    assert_eq!(hit(&store.scope(arena("tls")), "first".into(), 5).await, Ok(5));
    assert!(client.call(&["CLIENT", "LIST"]).text().contains("user=joe"));
    assert!(client.call(&["SELECT", "3"]).is_ok());
    assert_eq!(client.call(&["GET", "sum:tls"]).text(), "5");

    let error = refused(&format!("rediss://joe:wrong@127.0.0.1:{tls_port}?ca={ca}")).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    // The certificate names the address alone.
    let error = refused(&format!("rediss://localhost:{tls_port}?ca={ca}")).await;
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = refused(&format!("rediss://127.0.0.1:{tls_port}/#insecure?ca={ca}")).await;
    assert!(error.to_string().contains("verified"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_a_cluster_names_are_trusted_alike() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let tls_port = free_port();
    let options = tls_server(&certificates, tls_port).set("tls-cluster", "yes");
    let Some(cluster) = require(with_tls(RedisCluster::start_with(&options, 1, 0))) else { return };
    // The map of slots names the node again, and transactions go to the one that it names.
    let url = format!("rediss+cluster://127.0.0.1:{tls_port}?ca={}", pem_path(&certificates, "ca.pem"));
    let store = store_on(&url).await;
    assert_eq!(hit(&store.scope(arena("tls")), "first".into(), 5).await, Ok(5));
    assert_eq!(cluster.nodes()[0].client().call(&["GET", "{tls}sum:tls"]).text(), "5");
}
