//! Servers that answer "not now" under load, one alone and three in a Cluster: busy, loading, without
//! replicas; then what only one server can be: read-only, gone, silent. What proves "not executed" is tried
//! again.

mod fault_harness;

use emberkeep_hot::Error;
use emberkeep_testkit::{Flavor, RedisOptions, RedisServer, Resp, report};
use fault_harness::*;
use std::time::{Duration, Instant};

on_both_servers! {
    read_only_for_a_while,
    gone_for_good,
    silent_from_the_start,
}

/// Loads slowly, and answers meanwhile.
fn slow_to_load() -> RedisOptions {
    let options = RedisServer::options().appendonly();
    options.set("key-load-delay", "300").set("loading-process-events-interval-bytes", "1024")
}

on_every_deployment! {
    busy_with_another_clients_script: RedisServer::options().set("busy-reply-threshold", "20"),
    loading_its_data: slow_to_load(),
    without_replicas_for_a_while: RedisServer::options(),
}

/// A hit with little patience on the first server; its error must contain one of these words.
async fn impatient(load: &Load, words: &[&str]) {
    let arena = load.deployment.arena_on(load.deployment.victim(0), "other");
    let scope = load.store.scope(arena).deadline(Duration::from_millis(400));
    let started = Instant::now();
    let error = hit(&scope, "x".into(), 1).await.expect_err("not now");
    let fits = |reason: &str| words.iter().any(|word| reason.contains(word));
    assert!(matches!(&error, Error::Unavailable { reason, .. } if fits(reason)), "{error}");
    assert!(started.elapsed() < Duration::from_millis(400) + SLACK);
}

async fn busy_with_another_clients_script(deployment: Deployment) {
    let load = Load::begin(deployment, LONG).await;
    let mut hog = load.deployment.victim(0).client();
    hog.send(&["EVAL", "while true do end", "0"]).expect("sent");
    load.some_time(900).await;
    // A Cluster may have given up the server that is too busy to say that it lives.
    impatient(&load, &["BUSY", "CLUSTERDOWN"]).await;
    assert!(load.deployment.victim(0).client().call(&["SCRIPT", "KILL"]).is_ok());
    let outcome = load.end("a server busy for 1.3 s").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

/// Puts keys on the server that take three seconds to load: long enough to be seen at it on a busy machine. Before there is any
/// load: the server pauses after each command of its file, too, and a busy machine takes long to write it anew.
async fn fill(deployment: &Deployment) {
    let server = deployment.victim(0);
    // In a slot of its own, or a Cluster's server would disown them when it starts again.
    let tag = deployment.arena_on(server, "filler");
    let mut client = server.client();
    assert!(client.call(&["DEBUG", "POPULATE", "10000", &format!("{{{}}}", tag.0), "50"]).is_ok());
    client.call(&["BGREWRITEAOF"]);
    let is_written =
        |info: &str| info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0");
    while !is_written(&client.call(&["INFO", "persistence"]).text()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the server says that it is loading.
async fn until_loading(load: &Load) {
    let address = load.deployment.victim(0).address();
    let deadline = Instant::now() + LONG;
    let is_loading = || {
        let info = Resp::connect(&address).and_then(|mut client| client.try_call(&["INFO", "persistence"]));
        info.is_ok_and(|info| info.text().contains("loading:1"))
    };
    while !is_loading() {
        assert!(Instant::now() < deadline, "it was never found loading");
        load.some_time(1).await;
    }
}

async fn loading_its_data(deployment: Deployment) {
    fill(&deployment).await;
    let load = Load::begin(deployment, LONG).await;
    load.some_time(200).await;
    let server = load.deployment.victim(0);
    server.kill9();
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        std::thread::scope(|threads| {
            let back = threads.spawn(|| server.restart().expect("it comes back"));
            runtime.block_on(async {
                until_loading(&load).await;
                // A Cluster's server that loads says first that it knows of no Cluster yet.
                impatient(&load, &["LOADING", "CLUSTERDOWN"]).await;
            });
            back.join().expect("it has loaded");
        });
    });
    let outcome = load.end("a server loading for 3 s").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

fn want_replicas(deployment: &Deployment, count: &str) {
    for node in deployment.nodes() {
        assert!(node.client().call(&["CONFIG", "SET", "min-replicas-to-write", count]).is_ok());
    }
}

async fn without_replicas_for_a_while(deployment: Deployment) {
    let load = Load::begin(deployment, LONG).await;
    want_replicas(&load.deployment, "1");
    impatient(&load, &["NOREPLICAS"]).await;
    want_replicas(&load.deployment, "0");
    let outcome = load.end("without replicas for 0.4 s").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

/// Only one server alone can be this: a Cluster's replica says MOVED, never READONLY, to who did not ask for
/// reads.
async fn read_only_for_a_while(flavor: Flavor) {
    let Some(deployment) = Deployment::single(RedisServer::options().flavor(flavor)) else { return };
    let load = Load::begin(deployment, LONG).await;
    let mut client = load.deployment.victim(0).client();
    // A replica of a server that does not exist: it keeps its data and refuses writes.
    let absent = emberkeep_testkit::free_port().to_string();
    assert!(client.call(&["REPLICAOF", "127.0.0.1", &absent]).is_ok());
    impatient(&load, &["READONLY"]).await;
    assert!(client.call(&["REPLICAOF", "NO", "ONE"]).is_ok());
    let outcome = load.end("read-only for 0.4 s").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

async fn gone_for_good(flavor: Flavor) {
    let Some(server) = emberkeep_testkit::server_of(flavor) else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("gone"));
    scope.put(&SUM.key(), 1).await.expect("it is there");
    server.kill9();
    let deadline = Duration::from_secs(2);
    let mut reported = Vec::new();
    for n in 0..3 {
        let started = Instant::now();
        reported.push(hit(&scope, format!("h{n}"), 1).await.expect_err("it is gone"));
        assert!(started.elapsed() < deadline + SLACK, "{:?}", started.elapsed());
    }
    let started = Instant::now();
    reported.push(scope.get(&SUM.key()).await.expect_err("it is gone"));
    assert!(started.elapsed() < deadline + SLACK, "{:?}", started.elapsed());
    for (n, error) in reported.iter().enumerate() {
        // The first may have been sent on the connection that broke.
        let fits = matches!(error, Error::Unavailable { .. })
            || (n == 0 && matches!(error, Error::OutcomeUnknown { .. }));
        assert!(fits, "{error}");
    }
    report!("gone for good: {}", reported[1]);
}

/// A server that accepts connections and never says a word.
async fn silent_from_the_start(flavor: Flavor) {
    let Some(server) = emberkeep_testkit::server_of(flavor) else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("silent")).deadline(Duration::from_millis(500));
    scope.put(&SUM.key(), 1).await.expect("it is there");
    server.client().call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    server.pause();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut reported = Vec::new();
    for n in 0..3 {
        let started = Instant::now();
        reported.push(hit(&scope, format!("h{n}"), 1).await.expect_err("it says nothing"));
        assert!(started.elapsed() < Duration::from_millis(500) + SLACK, "{:?}", started.elapsed());
    }
    let connecting = Instant::now();
    let refused = emberkeep_hot_redis::RedisEngine::connect(&server.url()).await.err();
    assert!(matches!(refused, Some(Error::Unavailable { .. })), "{refused:?}");
    assert!(connecting.elapsed() < Duration::from_secs(1) + SLACK);
    server.resume();
    report!("silent from the start: {}; then {}", reported[0], reported[2]);
    assert!(matches!(reported[2], Error::Unavailable { .. }), "nothing was ever sent: {}", reported[2]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let list = server.client().call(&["LRANGE", "hits:silent", "0", "-1"]);
    assert!(!list.items().iter().any(|id| id.text() == "h2"), "it was reported as not made");
}
