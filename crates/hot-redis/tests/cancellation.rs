//! A caller that goes away before its commit was sent takes its transaction along.

mod fault_harness;

use emberkeep_hot::Store;
use emberkeep_testkit::{FaultProxy, RedisServer};
use fault_harness::*;
use futures_util::future::join_all;
use std::time::Duration;

/// Calls that are dropped together: more than two commits carry, which is how many are in flight.
const CALLS: usize = 600;

/// Starts calls, drops them while the server answers nothing, and returns what the next call finds.
async fn dropped_while(store: &Store, server: &RedisServer, patience: Duration) -> (i64, usize) {
    let scope = store.scope(arena("a"));
    server.pause();
    let calls = (0..CALLS).map(|n| hit(&scope, format!("dropped {n}"), 1));
    let dropped = tokio::time::timeout(patience, join_all(calls)).await;
    assert!(dropped.is_err(), "the server does not answer");
    server.resume();
    // In the queue behind all others: afterwards none of them can come.
    let sum = hit(&scope, "the last".into(), 1).await.expect("the server answers again");
    let hits = scope.lrange(&HITS.key(), 0, -1).await.expect("a plain read");
    assert_eq!(hits.last().map(String::as_str), Some("the last"));
    (sum, hits.len())
}

/// No body has its reads yet, so no commit was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_dropped_before_their_commit_are_never_made() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    for patience in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(60)] {
        server.client().call(&["FLUSHALL"]);
        // A new engine: it has cached nothing.
        let store = store_on(&server.url()).await;
        assert_eq!(dropped_while(&store, &server, patience).await, (1, 1), "{patience:?}");
    }
}

/// With a warm cache the first commits are in flight. What is in the queue behind them is withdrawn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_the_queue_are_withdrawn() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("a"));
    hit(&scope, "the first".into(), 1).await.expect("a server");
    server.pause();
    let in_flight = hit(&scope, "in flight".into(), 1);
    let dropped = async {
        let calls = (0..CALLS).map(|n| hit(&scope, format!("dropped {n}"), 1));
        tokio::time::timeout(Duration::from_millis(60), join_all(calls)).await.expect_err("no answer");
        server.resume();
    };
    let (first, ()) = tokio::join!(in_flight, dropped);
    first.expect("its caller has waited");
    let sum = hit(&scope, "the last".into(), 1).await.expect("the server answers again");
    let hits = scope.lrange(&HITS.key(), 0, -1).await.expect("a plain read").len();
    assert_eq!(sum as usize, hits, "each is whole or not there");
    assert!(hits < 3 + CALLS, "all {hits} were sent");
    assert_eq!(scope.get(&COUNT.key()).await, Ok(Some(sum)));
}

/// The calls of the review: a slow way to the server, and callers with less patience than that. Their reads
/// are under way when they leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_way_commits_nothing_of_those_who_left() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port");
    let store = store_on(&proxy.url()).await;
    let delay = Duration::from_millis(40);
    proxy.delay(delay, delay);
    for n in 0..30 {
        let scope = store.scope(arena(format!("slow-{n}")));
        let call = hit(&scope, "dropped".into(), 1);
        tokio::time::timeout(delay / 2, call).await.expect_err("the read alone takes longer");
    }
    proxy.delay(Duration::ZERO, Duration::ZERO);
    for n in 0..30 {
        let scope = store.scope(arena(format!("slow-{n}")));
        assert_eq!(hit(&scope, "the last".into(), 1).await, Ok(1), "alone");
    }
}
