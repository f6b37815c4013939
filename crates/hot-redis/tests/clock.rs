//! Servers whose clock is minutes off, or jumps: lives are right by the server's clock, nothing vanishes or
//! stays for ever, and a jump never makes a transaction happen twice.

mod fault_harness;

use emberkeep_hot::{Error, Scope};
use emberkeep_schema::{Number, Set, Text, Utf8, family};
use emberkeep_testkit::{FaultProxy, RedisCluster, RedisServer, Resp, key_slot, report, require};
use fault_harness::*;
use std::time::{Duration, Instant};

const LIFE_MS: i64 = 60_000;
/// What the clock of a transaction may differ by from the server's at its commit. A busy machine adds nothing
/// to it: the server's clock is looked at before and after the transaction, so a transaction that is held up
/// only widens what is allowed.
const TOLERANCE_MS: i64 = 100;

family! {
    /// Lives for a minute after the last write.
    pub FRESH = "fresh:{arena}" { kind: Set<Utf8>, partition: Arena, parts: (), ttl: refresh(60_000), owner: "test" }
}
family! {
    /// Lives for a minute after the first write.
    pub FIXED = "fixed:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: fixed(60_000), owner: "test" }
}
family! {
    /// Lives as long as the caller says.
    pub GIVEN = "given:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: given, owner: "test" }
}

fn time_ms(client: &mut Resp) -> i64 {
    let time = client.call(&["TIME"]);
    let part = |i: usize| time.items()[i].text().parse::<i64>().expect("a number");
    part(0) * 1000 + part(1) / 1000
}

/// Writes one key of each kind of life; returns what the transaction took for now.
async fn write_all(scope: &Scope<Arena>) -> Result<i64, Error> {
    scope
        .transact(|tx| {
            tx.sadd(&FRESH.key(), &"m".to_owned())?;
            let n = tx.get(&FIXED.key())?.unwrap_or(0);
            tx.put(&FIXED.key(), &(n + 1))?;
            tx.put_for(&GIVEN.key(), &1, Duration::from_secs(60))?;
            Ok(tx.now())
        })
        .await
}

/// One write on a fresh arena, looked at with the server's own clock. Returns the largest error in ms.
async fn check_lives(title: &str, scope: &Scope<Arena>, client: &mut Resp, extra_ms: i64) -> i64 {
    let before = time_ms(client);
    let now = write_all(scope).await.unwrap_or_else(|error| panic!("{title}: {error}"));
    let after = time_ms(client);
    let mut worst = (before - now).max(now - after).max(0);
    assert!(now >= before - TOLERANCE_MS, "{title}: now {now}, the server's {before}..{after}");
    assert!(now <= after + TOLERANCE_MS + extra_ms, "{title}: now {now}, the server's {before}..{after}");
    let layout = scope.store().key_layout();
    for key in [
        FRESH.key().to_text(layout, scope.partition()),
        FIXED.key().to_text(layout, scope.partition()),
        GIVEN.key().to_text(layout, scope.partition()),
    ] {
        let at = client.call(&["PEXPIRETIME", &key]).int();
        let early = before + LIFE_MS - at;
        let late = at - (after + LIFE_MS);
        assert!(early <= TOLERANCE_MS, "{title}: {key} vanishes {early} ms early");
        assert!(late <= TOLERANCE_MS + extra_ms, "{title}: {key} stays {late} ms too long");
        worst = worst.max(early).max(late);
    }
    worst
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_minutes_off() {
    for offset in [-180, 180] {
        let Some(server) = require(RedisServer::options().clock_offset(offset).start()) else { return };
        let store = store_on(&server.url()).await;
        let mut client = server.client();
        let mut worst = 0;
        for n in 0..20 {
            let scope = store.scope(arena(format!("a{n}")));
            worst = worst.max(check_lives("off", &scope, &mut client, 0).await);
        }
        report!("clock {offset:+} s: 60 lives right by the server's clock, worst {worst} ms");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_while_transactions_run() {
    let Some(server) = require(RedisServer::options().clock_offset(0).start()) else { return };
    let store = store_on(&server.url()).await;
    let mut client = server.client();
    let scope = store.scope(arena("jump"));
    let stop = flag();
    let load =
        tokio::spawn(assault(store.scope(arena("load")).deadline(LONG), "t", 4, Until::Flag(stop.clone())));
    check_lives("before", &scope, &mut client, 0).await;
    let mut last = 0;
    // Forwards: what was to live for a minute has ended; what is written now lives for a minute.
    server.set_clock_offset(180);
    for n in 0..10 {
        let scope = store.scope(arena(format!("forward{n}")));
        check_lives("forward", &scope, &mut client, 0).await;
    }
    assert_eq!(scope.get(&FIXED.key()).await, Ok(None), "its minute is over by the server's clock");
    last = last.max(write_all(&scope).await.expect("a transaction"));
    // Backwards: a process' time never does, so lives are longer by at most the jump.
    server.set_clock_offset(0);
    for n in 0..10 {
        let scope_n = store.scope(arena(format!("backward{n}")));
        check_lives("backward", &scope_n, &mut client, 185_000).await;
        let now = write_all(&scope).await.expect("a transaction on old keys");
        assert!(now >= last, "a process' time ran backwards by {} ms", last - now);
        last = now;
    }
    // A process that did not see the jump is right at once.
    let other = store_on(&server.url()).await.scope(arena("other"));
    let worst = check_lives("another process", &other, &mut client, 0).await;
    stop.store(true, std::sync::atomic::Ordering::Release);
    let ledger = load.await.expect("the load ends");
    let audit = audit(&mut client, store.key_layout(), &arena("load"), &ledger);
    report!(
        "clock jumps +180 s and back: {} hits beside, {} refused, {} unknown, another process' worst {worst} ms; {audit}",
        ledger.entries.len(),
        ledger.refused(),
        ledger.unknown(),
    );
    audit.assert_exact();
    assert_eq!((ledger.refused(), ledger.unknown()), (0, 0), "{:?}", ledger.errors());
}

/// A receipt lives for a minute by the server's clock. When that jumps between a lost reply and the question
/// about it, its absence proves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jump_between_a_lost_reply_and_the_question_about_it() {
    let Some(server) = require(RedisServer::options().clock_offset(0).start()) else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let store = store_on(&proxy.url()).await;
    let scope = store.scope(arena("jump")).deadline(Duration::from_secs(10));
    hit(&scope, "warm".into(), 1).await.expect("no fault yet");
    proxy.only_requests_with("EVALSHA");
    proxy.drop_replies(1);
    proxy.delay(Duration::from_millis(300), Duration::ZERO);
    let asking = tokio::spawn({
        let scope = scope.clone();
        async move { hit(&scope, "lost".into(), 1).await }
    });
    let mut client = server.client();
    let patience = Instant::now() + LONG;
    while client.call(&["LLEN", "hits:jump"]).int() < 2 {
        assert!(Instant::now() < patience, "the hit never came to the server");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.set_clock_offset(180);
    let reported = asking.await.expect("the task ends");
    proxy.delay(Duration::ZERO, Duration::ZERO);
    let times = client.call(&["LRANGE", "hits:jump", "0", "-1"]);
    let times = times.items().iter().filter(|id| id.text() == "lost").count();
    report!("clock jump over a receipt: made {times} time(s), reported {reported:?}");
    assert_eq!(times, 1, "made twice");
    assert!(matches!(reported, Ok(_) | Err(Error::OutcomeUnknown { .. })), "{reported:?}");
    hit(&scope, "after".into(), 1).await.expect("transactions go on");
}

/// Servers of a Cluster need not agree on the time: each partition follows its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_a_cluster_that_differ() {
    let options = RedisServer::options().clock_offset(0);
    let Some(cluster) = require(RedisCluster::start_with(&options, 3, 0)) else { return };
    cluster.nodes()[1].set_clock_offset(180);
    cluster.nodes()[2].set_clock_offset(-180);
    cluster.wait_ready().expect("they still form a cluster");
    let store = store_on(&cluster_url(&cluster.ports())).await;
    let mut worst = 0;
    let mut found = [0; 3];
    for n in 0..30 {
        let name = format!("a{n}");
        let node = cluster.primary_of_slot(key_slot(format!("{{{name}}}").as_bytes()));
        found[node] += 1;
        let mut client = cluster.nodes()[node].client();
        worst = worst.max(check_lives(&name, &store.scope(arena(&name)), &mut client, 0).await);
    }
    assert!(found.iter().all(|times| *times > 0), "{found:?}");
    report!("cluster with clocks at 0, +180 and -180 s: 90 lives right, worst {worst} ms");
}

/// Servers of a Cluster that nearly agree: the process' time does not run backwards from one to another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_does_not_run_backwards_from_server_to_server() {
    let options = RedisServer::options().clock_offset(0);
    let Some(cluster) = require(RedisCluster::start_with(&options, 3, 0)) else { return };
    cluster.nodes()[1].set_clock_offset(1);
    cluster.nodes()[2].set_clock_offset(-1);
    cluster.wait_ready().expect("they still form a cluster");
    let store = store_on(&cluster_url(&cluster.ports())).await;
    let (mut last, mut servers) = (0, [0; 3]);
    for n in 0..60 {
        let name = format!("a{n}");
        servers[cluster.primary_of_slot(key_slot(format!("{{{name}}}").as_bytes()))] += 1;
        let now = write_all(&store.scope(arena(&name))).await.expect("no commit is refused for its time");
        assert!(now >= last, "transaction {n}: {} ms back", last - now);
        let reported = store.now().await.expect("a server answers");
        assert!(reported >= now, "the engine's own time after {n}: {} ms back", now - reported);
        last = reported;
    }
    assert!(servers.iter().all(|times| *times > 0), "{servers:?}");
    report!("cluster with clocks at 0, +1 and -1 s: 60 transactions, time never ran backwards");
}
