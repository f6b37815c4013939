//! A server that is disturbed under load: scripts flushed, connections killed, restarted, paused, busy, loading,
//! read-only, gone. Whatever callers are told is true afterwards.

mod arena;

use arena::*;
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_testkit::{RedisServer, require};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);
/// What a caller may wait beyond its deadline on a busy machine.
const SLACK: Duration = Duration::from_millis(1_500);

struct Battle {
    server: RedisServer,
    store: Store,
    scope: Scope<Arena>,
    stop: Arc<AtomicBool>,
    running: tokio::task::JoinHandle<Ledger>,
}

impl Battle {
    /// A server under load; every hit has this deadline.
    async fn begin(server: RedisServer, deadline: Duration) -> Battle {
        let store = store_on(&server.url()).await;
        let scope = store.scope(arena("battle")).deadline(deadline);
        let stop = flag();
        let running = tokio::spawn({
            let (scope, until) = (scope.clone(), Until::Flag(stop.clone()));
            async move { assault(scope, "t", 8, until).await }
        });
        let battle = Battle { server, store, scope, stop, running };
        battle.some_time(150).await;
        battle
    }

    async fn some_time(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Ends the load, audits and prints.
    async fn end(self, title: &str) -> (Ledger, Audit) {
        self.some_time(200).await;
        self.stop.store(true, Ordering::Release);
        let ledger = self.running.await.expect("the tasks end");
        let audit = audit(&mut self.server.client(), self.store.naming(), self.scope.partition(), &ledger);
        println!(
            "{title}: {} hits, {} done, {} refused, {} unknown, receipts asked {}, slowest {:?}; {audit}",
            ledger.entries.len(),
            ledger.done(),
            ledger.refused(),
            ledger.unknown(),
            self.store.stats().receipts_asked,
            ledger.slowest(),
        );
        ledger.errors().iter().for_each(|(error, times)| println!("  {times} x {error}"));
        (ledger, audit)
    }
}

fn assert_all_done(ledger: &Ledger) {
    assert_eq!((ledger.refused(), ledger.unknown()), (0, 0), "{:?}", ledger.errors());
    assert!(ledger.done() > 100, "too little happened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_flushed() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let battle = Battle::begin(server, LONG).await;
    for _ in 0..100 {
        assert!(battle.server.client().call(&["SCRIPT", "FLUSH"]).is_ok());
        battle.some_time(3).await;
    }
    let (ledger, audit) = battle.end("scripts flushed 100 times").await;
    audit.assert_exact();
    assert_all_done(&ledger);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_killed() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let battle = Battle::begin(server, LONG).await;
    for _ in 0..100 {
        battle.server.client().call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        battle.some_time(5).await;
    }
    let (ledger, audit) = battle.end("connections killed 100 times").await;
    audit.assert_exact();
    assert_all_done(&ledger);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_with_its_data() {
    let Some(server) = require(RedisServer::options().appendonly().start()) else { return };
    let battle = Battle::begin(server, LONG).await;
    for _ in 0..5 {
        battle.server.restart().expect("it comes back");
        battle.some_time(100).await;
    }
    let (ledger, audit) = battle.end("restarted 5 times with its data").await;
    audit.assert_exact();
    assert_all_done(&ledger);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_empty() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let battle = Battle::begin(server, LONG).await;
    battle.server.restart().expect("it comes back");
    let back = Instant::now();
    let (ledger, audit) = battle.end("restarted empty").await;
    audit.assert_nothing_wrong();
    assert_all_done(&ledger);
    let after = ledger.entries.values().filter(|entry| entry.started > back).count();
    assert!(audit.present >= after, "{after} hits were made after it came back, {} are there", audit.present);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_and_resumed() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let battle = Battle::begin(server, LONG).await;
    for _ in 0..2 {
        battle.server.pause();
        battle.some_time(1_000).await;
        battle.server.resume();
        battle.some_time(100).await;
    }
    let (ledger, audit) = battle.end("paused for 1 s, twice").await;
    audit.assert_exact();
    assert_all_done(&ledger);
}

/// The deadline passes while the server hangs: nobody waits longer, and "not made" is never said of a hit that was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_beyond_the_deadline() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let deadline = Duration::from_millis(300);
    let battle = Battle::begin(server, deadline).await;
    for _ in 0..3 {
        battle.server.pause();
        battle.some_time(900).await;
        battle.server.resume();
        battle.some_time(150).await;
    }
    let (ledger, audit) = battle.end("paused 3 times beyond the deadline of 300 ms").await;
    audit.assert_exact();
    assert!(ledger.unknown() > 0, "commits were in flight when it stopped");
    assert!(ledger.slowest() < deadline + SLACK, "{:?}", ledger.slowest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_with_somebody_elses_script() {
    let Some(server) = require(RedisServer::options().set("busy-reply-threshold", "20").start()) else {
        return;
    };
    let battle = Battle::begin(server, LONG).await;
    let mut hog = battle.server.client();
    hog.send(&["EVAL", "while true do end", "0"]).expect("sent");
    battle.some_time(900).await;
    let impatient = battle.store.scope(arena("other")).deadline(Duration::from_millis(400));
    let error = hit(&impatient, "x".into(), 1).await.expect_err("it is busy");
    assert!(matches!(&error, Error::Unavailable { reason, .. } if reason.contains("BUSY")), "{error}");
    assert!(battle.server.client().call(&["SCRIPT", "KILL"]).is_ok());
    let (ledger, audit) = battle.end("busy for 1.3 s").await;
    audit.assert_exact();
    assert_all_done(&ledger);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loading_its_data() {
    let options = RedisServer::options()
        .appendonly()
        .set("key-load-delay", "300")
        .set("loading-process-events-interval-bytes", "1024");
    let Some(server) = require(options.start()) else { return };
    let mut client = server.client();
    assert!(client.call(&["DEBUG", "POPULATE", "4000", "filler", "50"]).is_ok());
    client.call(&["BGREWRITEAOF"]);
    while !client.call(&["INFO", "persistence"]).text().contains("aof_rewrite_in_progress:0") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let battle = Battle::begin(server, LONG).await;
    battle.server.kill9();
    let (sender, loaded) = tokio::sync::oneshot::channel();
    let server = &battle.server;
    let impatient = battle.store.scope(arena("other")).deadline(Duration::from_millis(400));
    let told = std::thread::scope(|threads| {
        threads.spawn(|| {
            server.restart().expect("it comes back");
            let _ = sender.send(());
        });
        std::thread::sleep(Duration::from_millis(500));
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| runtime.block_on(hit(&impatient, "x".into(), 1)))
    });
    loaded.await.expect("it has loaded");
    let error = told.expect_err("it is loading");
    assert!(matches!(&error, Error::Unavailable { reason, .. } if reason.contains("LOADING")), "{error}");
    let (ledger, audit) = battle.end("loading for more than 1 s").await;
    audit.assert_exact();
    assert_all_done(&ledger);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_for_a_while() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let battle = Battle::begin(server, LONG).await;
    let mut client = battle.server.client();
    // A replica of nobody: it keeps its data and refuses writes.
    let nobody = emberkeep_testkit::free_port().to_string();
    assert!(client.call(&["REPLICAOF", "127.0.0.1", &nobody]).is_ok());
    let impatient = battle.store.scope(arena("other")).deadline(Duration::from_millis(300));
    let error = hit(&impatient, "x".into(), 1).await.expect_err("it is read-only");
    assert!(matches!(&error, Error::Unavailable { reason, .. } if reason.contains("READONLY")), "{error}");
    assert!(client.call(&["REPLICAOF", "NO", "ONE"]).is_ok());
    battle.some_time(100).await;
    assert!(client.call(&["CONFIG", "SET", "min-replicas-to-write", "1"]).is_ok());
    let error = hit(&impatient, "x".into(), 1).await.expect_err("it lacks replicas");
    assert!(matches!(&error, Error::Unavailable { reason, .. } if reason.contains("NOREPLICAS")), "{error}");
    assert!(client.call(&["CONFIG", "SET", "min-replicas-to-write", "0"]).is_ok());
    let (ledger, audit) = battle.end("read-only, then without replicas, 0.3 s each").await;
    audit.assert_exact();
    assert_all_done(&ledger);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gone_for_good() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("gone"));
    scope.put(&SUM.key(), 1).await.expect("it is there");
    server.kill9();
    let deadline = Duration::from_secs(2);
    let mut told = Vec::new();
    for n in 0..3 {
        let started = Instant::now();
        told.push(hit(&scope, format!("h{n}"), 1).await.expect_err("it is gone"));
        assert!(started.elapsed() < deadline + SLACK, "{:?}", started.elapsed());
    }
    let started = Instant::now();
    told.push(scope.get(&SUM.key()).await.expect_err("it is gone"));
    assert!(started.elapsed() < deadline + SLACK, "{:?}", started.elapsed());
    for (n, error) in told.iter().enumerate() {
        // The first may have been sent on the connection that broke.
        let fits = matches!(error, Error::Unavailable { .. })
            || (n == 0 && matches!(error, Error::OutcomeUnknown { .. }));
        assert!(fits, "{error}");
    }
    println!("gone for good: {}", told[1]);
}

/// A server that accepts connections and never says a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_from_the_start() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("silent")).deadline(Duration::from_millis(500));
    scope.put(&SUM.key(), 1).await.expect("it is there");
    server.client().call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    server.pause();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut told = Vec::new();
    for n in 0..3 {
        let started = Instant::now();
        told.push(hit(&scope, format!("h{n}"), 1).await.expect_err("it says nothing"));
        assert!(started.elapsed() < Duration::from_millis(500) + SLACK, "{:?}", started.elapsed());
    }
    let connecting = Instant::now();
    let refused = emberkeep_hot_redis::RedisEngine::connect(&server.url()).await.err();
    assert!(matches!(refused, Some(Error::Unavailable { .. })), "{refused:?}");
    assert!(connecting.elapsed() < Duration::from_secs(1) + SLACK);
    server.resume();
    println!("silent from the start: {}; then {}", told[0], told[2]);
    assert!(matches!(told[2], Error::Unavailable { .. }), "nothing was ever sent: {}", told[2]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let list = server.client().call(&["LRANGE", "hits:silent", "0", "-1"]);
    assert!(!list.items().iter().any(|id| id.text() == "h2"), "it was reported as not made");
}
