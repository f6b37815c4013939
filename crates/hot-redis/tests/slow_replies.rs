//! A link so slow that a large reply takes seconds: it is read, on the connection that all callers share, and
//! every caller that waits behind it waits for the transfer and no longer. A link that is silent is still
//! given up at once.

mod fault_harness;

use emberkeep_schema::{Text, Utf8, family};
use emberkeep_testkit::{Certificates, FaultProxy, RedisServer, free_port, report, require};
use fault_harness::*;
use std::time::{Duration, Instant};

family! {
    /// Something large.
    pub LOAD = "load:{arena}" { kind: Text<Utf8>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}

const BYTES: usize = 8 * 1024 * 1024;
/// Four seconds for the large value: longer than any wait for a reply, and than a plain read is tried.
const BYTES_PER_S: u64 = BYTES as u64 / 4;
const TRANSFER: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_value_over_a_slow_link_is_read_and_does_not_disturb_others() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    is_read(&server, &proxy, &proxy.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_value_over_a_slow_link_is_read_with_tls_as_well() {
    let Some(certificates) = require(Certificates::make()) else { return };
    let tls_port = free_port();
    let Some(server) = require(with_tls(tls_server(&certificates, tls_port).start())) else { return };
    let proxy = FaultProxy::start(format!("127.0.0.1:{tls_port}")).expect("a port is free");
    let url = proxy.url().replacen("redis://", "rediss://", 1);
    is_read(&server, &proxy, &format!("{url}?ca={}", pem_path(&certificates, "ca.pem"))).await;
}

/// Reads the large value through the proxy, twice, while another partition uses the same connection.
async fn is_read(server: &RedisServer, proxy: &FaultProxy, url: &str) {
    assert!(server.client().call(&["SET", "load:slow", &"x".repeat(BYTES)]).is_ok());
    let store = store_on(url).await;
    let (slow, other) =
        (store.scope(arena("slow")).deadline(LONG), store.scope(arena("other")).deadline(LONG));
    hit(&other, "before".into(), 1).await.expect("the link is fast");
    let connections = proxy.counts().connections;
    proxy.bandwidth(BYTES_PER_S);
    for plain in [true, false] {
        let (reader, started) = (slow.clone(), Instant::now());
        let reading = tokio::spawn(async move {
            match plain {
                true => reader.get(&LOAD.key()).await,
                false => reader.transact(|tx| tx.get(&LOAD.key())).await,
            }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        hit(&other, format!("beside {plain}"), 1).await.expect("it waits for the transfer");
        let beside = started.elapsed();
        let value = reading.await.expect("the task ends").expect("a large value");
        assert_eq!(value.map(|value| value.len()), Some(BYTES));
        let took = started.elapsed();
        assert!(took >= TRANSFER / 2, "the link was not slow: {took:?}");
        assert!(beside < took + SLACK, "{beside:?}");
        report!(
            "8 MiB at 2 MiB/s, plain read {plain}: read in {took:?}, a transaction beside it in {beside:?}"
        );
    }
    assert_eq!(proxy.counts().connections, connections, "no connection was given up");
    proxy.bandwidth(0);
    let list = server.client().call(&["LRANGE", "hits:other", "0", "-1"]);
    assert_eq!(list.items().len(), 3, "each hit once");
    // A peer that vanishes is noticed as before.
    proxy.silence();
    let (waiting, since) = (other.clone(), Instant::now());
    let waiting = tokio::spawn(async move { hit(&waiting, "after".into(), 1).await });
    while proxy.counts().connections == connections {
        assert!(since.elapsed() < LONG, "the silent connection is kept");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let noticed = since.elapsed();
    proxy.speak();
    waiting.await.expect("the task ends").expect("it is done in the end");
    report!("a silent connection is given up after {noticed:?}");
    assert!(noticed < Duration::from_millis(700) + SLACK, "{noticed:?}");
}
