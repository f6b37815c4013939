//! Servers that are disturbed under load, one alone and three in a Cluster: scripts flushed, connections
//! killed, restarted, stopped and paused. Every result that a caller got is true afterwards.

mod fault_harness;

use emberkeep_testkit::{RedisOptions, RedisServer};
use fault_harness::*;
use std::time::{Duration, Instant};

fn usual() -> RedisOptions {
    RedisServer::options()
}

on_every_deployment! {
    scripts_flushed: usual(),
    connections_killed: usual(),
    restarted_with_its_data: usual().appendonly(),
    restarted_empty: usual(),
    stopped_and_continued: usual(),
    stopped_beyond_the_deadline: usual(),
    clients_paused: usual(),
    clients_paused_beyond_the_deadline: usual(),
}

async fn scripts_flushed(deployment: Deployment) {
    let load = Load::begin(deployment, LONG).await;
    for _ in 0..100 {
        for node in load.deployment.nodes() {
            assert!(node.client().call(&["SCRIPT", "FLUSH"]).is_ok());
        }
        load.some_time(3).await;
    }
    let outcome = load.end("scripts flushed 100 times").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

async fn connections_killed(deployment: Deployment) {
    let load = Load::begin(deployment, LONG).await;
    for _ in 0..100 {
        for node in load.deployment.nodes() {
            node.client().call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        }
        load.some_time(5).await;
    }
    let outcome = load.end("connections killed 100 times").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

async fn restarted_with_its_data(deployment: Deployment) {
    let load = Load::begin(deployment, LONG).await;
    for round in 0..3 {
        load.deployment.victim(round).restart().expect("it comes back");
        load.wait_ready();
        load.some_time(100).await;
    }
    let outcome = load.end("a server restarted with its data, 3 times").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

/// What was on the server is gone; what is made afterwards is exact, and nothing is made twice.
async fn restarted_empty(deployment: Deployment) {
    let load = Load::begin(deployment, LONG).await;
    load.deployment.victim(0).restart().expect("it comes back");
    load.wait_ready();
    let back = Instant::now();
    let outcome = load.end("a server restarted empty").await;
    outcome.audit.assert_nothing_wrong();
    outcome.assert_all_done();
    let entries = outcome.ledgers.iter().flat_map(|ledger| ledger.entries.values());
    let after = entries.filter(|entry| entry.started > back).count();
    assert!(outcome.audit.present >= after, "{after} hits were made after it came back");
}

/// How a server is stopped.
#[derive(Clone, Copy)]
enum Hold {
    /// SIGSTOP: also the Cluster's other servers hear nothing of it, and give it up if that lasts.
    Stop,
    /// CLIENT PAUSE: it lives, but serves no client.
    Pause,
}

async fn hold(load: &Load, round: usize, how: Hold, ms: u64) {
    let server = load.deployment.victim(round);
    match how {
        Hold::Stop => server.pause(),
        Hold::Pause => {
            assert!(server.client().call(&["CLIENT", "PAUSE", &ms.to_string(), "ALL"]).is_ok());
        }
    }
    load.some_time(ms).await;
    server.resume();
    load.wait_ready();
    load.some_time(100).await;
}

/// Shorter than the deadline: everything is done in the end.
async fn within_the_deadline(deployment: Deployment, how: Hold, title: &str) {
    let load = Load::begin(deployment, LONG).await;
    for round in 0..3 {
        hold(&load, round, how, 1_000).await;
    }
    let outcome = load.end(title).await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

/// The deadline passes while the server hangs: no caller waits longer, and "not made" is never said of a hit
/// that was.
async fn beyond_the_deadline(deployment: Deployment, how: Hold, title: &str) {
    let deadline = Duration::from_millis(300);
    let load = Load::begin(deployment, deadline).await;
    for round in 0..3 {
        hold(&load, round, how, 900).await;
    }
    let outcome = load.end(title).await;
    outcome.audit.assert_exact();
    assert!(outcome.unknown() > 0, "commits were in flight when it stopped");
    assert!(outcome.slowest() < deadline + SLACK, "{:?}", outcome.slowest());
}

async fn stopped_and_continued(deployment: Deployment) {
    within_the_deadline(deployment, Hold::Stop, "a server stopped for 1 s, 3 times").await;
}

async fn stopped_beyond_the_deadline(deployment: Deployment) {
    beyond_the_deadline(deployment, Hold::Stop, "a server stopped 3 times beyond the deadline of 300 ms")
        .await;
}

async fn clients_paused(deployment: Deployment) {
    within_the_deadline(deployment, Hold::Pause, "clients paused for 1 s, 3 times").await;
}

async fn clients_paused_beyond_the_deadline(deployment: Deployment) {
    beyond_the_deadline(deployment, Hold::Pause, "clients paused 3 times beyond the deadline of 300 ms")
        .await;
}
