//! Servers far away, and commits that come late: time, lives and leases follow the distance, and nothing
//! happens twice.

mod fault_harness;

use emberkeep_hot::{Error, Scope};
use emberkeep_schema::{Number, Text, family};
use emberkeep_testkit::{FaultProxy, RedisServer, Reply, Resp, report, require};
use fault_harness::*;
use std::time::{Duration, Instant};

family! {
    /// Lives shorter than the way to the server.
    pub SPARK = "spark:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: fixed(50), owner: "test" }
}
family! {
    /// Lives as long as the caller says.
    pub GIVEN = "given:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: given, owner: "test" }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn time_ms(client: &mut Resp) -> i64 {
    let time = client.call(&["TIME"]);
    let part = |i: usize| time.items()[i].text().parse::<i64>().expect("a number");
    part(0) * 1000 + part(1) / 1000
}

/// A life that is over before the commit arrives: the key is gone afterwards, as it is on every engine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_shorter_than_the_way() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let store = store_on(&proxy.url()).await;
    proxy.delay(ms(65), Duration::ZERO);
    let mut client = server.client();
    for round in 0..3 {
        let scope = store.scope(arena(format!("spark{round}")));
        let spark = scope.transact(|tx| {
            tx.incr_by(&SPARK.key(), 100)?;
            tx.incr_by(&SPARK.key(), 7)?;
            tx.deadline(&SPARK.key())
        });
        let deadline = spark.await.expect("a plain transaction").expect("it has an end");
        while time_ms(&mut client) <= deadline {
            tokio::time::sleep(ms(1)).await;
        }
        let left = client.call(&["GET", &format!("spark:spark{round}")]);
        assert_eq!(left, Reply::Nil, "it should have ended");
    }
}

/// Transactions that use the time or set a deadline, alone on a long way: none is refused, and their times
/// are right. Many of them: the deviation of the round trip, which allows for much at first, has shrunk by
/// then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_from_far_away() {
    let ways = [(76, 76), (150, 150), (300, 0), (0, 300), (300, 300)];
    let ways = ways.map(|(request, reply)| tokio::spawn(time_from(request, reply)));
    for way in ways {
        way.await.expect("its times are right");
    }
}

async fn time_from(request: u64, reply: u64) {
    const TRANSACTIONS: i64 = 30;
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let store = store_on(&proxy.url()).await;
    proxy.delay(ms(request), ms(reply));
    // Replies that a busy machine loses are asked for again; a time that is refused is so until the deadline.
    let scope = store.scope(arena(format!("far{request}-{reply}"))).deadline(LONG);
    let (started, most) = (Instant::now(), 100 + (request + reply) as i64);
    let mut client = server.client();
    for n in 0..TRANSACTIONS {
        let before = time_ms(&mut client);
        let timed = scope.transact(move |tx| {
            tx.put_for(&GIVEN.key(), &n, Duration::from_secs(60))?;
            Ok::<_, Error>(tx.now())
        });
        let shown = timed.await.unwrap_or_else(|error| panic!("{request}+{reply} ms, {n}: {error}"));
        let may_be = before - most..time_ms(&mut client) + most;
        assert!(may_be.contains(&shown), "{request}+{reply} ms: {shown} is not in {may_be:?}");
    }
    report!("time from {request}+{reply} ms away: {TRANSACTIONS} transactions in {:?}", started.elapsed());
}

/// A deadline that is too short for the round trips of a body: the error does not say that the server is
/// silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_shorter_than_the_reads_of_a_body() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let store = store_on(&proxy.url()).await;
    hit(&store.scope(arena("other")), "one".into(), 1).await.expect("the server has the scripts");
    let scope = store.scope(arena("reads")).deadline(ms(700));
    proxy.delay(ms(150), ms(150));
    let reads = scope.transact(|tx| {
        tx.get(&SUM.key())?;
        tx.get(&COUNT.key())?;
        tx.get(&SPARK.key())?;
        tx.get(&GIVEN.key())?;
        tx.llen(&HITS.key())
    });
    let error = reads.await.expect_err("five round trips take longer");
    let Error::Unavailable { reason, advice, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("its reads were answered") && advice.contains("deadline"), "{error}");
}

/// Every partition of a server sees one time, which does not run backwards when the server's clock does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_does_not_run_backwards_from_partition_to_partition() {
    let Some(server) = require(RedisServer::options().clock_offset(0).start()) else { return };
    let store = store_on(&server.url()).await;
    let mut last = 0;
    for n in 0..200 {
        if n == 100 {
            server.set_clock_offset(-180);
        }
        let scope = store.scope(arena(format!("part{}", if n % 10 == 9 { n } else { n % 3 })));
        let shown = scope.transact(|tx| {
            tx.incr_by(&COUNT.key(), 1)?;
            Ok::<_, Error>(tx.now())
        });
        let shown = shown.await.expect("a plain transaction");
        assert!(shown >= last, "transaction {n}: {} ms back", last - shown);
        last = shown;
        let reported = store.now().await.expect("the server answers");
        assert!(reported >= last, "the engine's own time after {n}: {} ms back", last - reported);
    }
}

/// A transaction gets a lease on a key that it only reads. Its commit ends that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_of_a_key_that_is_only_read_ends_with_the_commit() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let scope = store_on(&proxy.url()).await.scope(arena("lease"));
    let mut client = server.client();
    proxy.delay(ms(20), ms(20));
    let reads_and_writes = || {
        let scope = scope.clone();
        async move {
            let body = scope.transact(|tx| {
                let sum = tx.get(&SUM.key())?;
                tx.incr_by(&COUNT.key(), 1)?;
                Ok::<_, Error>(sum)
            });
            body.await
        }
    };
    let mut leases = 0;
    for n in 0..10 {
        reads_and_writes().await.expect("a plain transaction");
        client.call(&["SET", "sum:lease", &n.to_string()]);
        let stale = tokio::spawn(reads_and_writes());
        while !stale.is_finished() {
            leases += client.call(&["EXISTS", "ember:turn:sum:lease"]).int();
            tokio::time::sleep(ms(1)).await;
        }
        let found = stale.await.expect("the task ends").expect("a plain transaction");
        let left = client.call(&["PTTL", "ember:turn:sum:lease"]).int();
        assert_eq!((found, left), (Some(n), -2), "the lease outlives its owner's commit");
    }
    assert!(leases > 0, "no lease was found");
}

/// A transaction that gets a lease on a key and does not write it after all: others do not wait for the
/// lease's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_ends_with_a_transaction_that_does_not_commit() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let far = store_on(&proxy.url()).await.scope(arena("claim")).deadline(LONG);
    let near = store_on(&server.url()).await.scope(arena("claim")).deadline(LONG);
    let mut client = server.client();
    near.put(&SUM.key(), 0).await.expect("it is free");
    // The way was long and varied, so leases are long; now it is short.
    for (request, reply) in [(0, 0), (200, 200), (0, 0), (200, 200), (200, 200)] {
        proxy.delay(ms(request), ms(reply));
        far.put(&COUNT.key(), 1).await.expect("a plain transaction");
    }
    proxy.delay(ms(20), ms(20));
    client.call(&["DEL", "sum:claim"]);
    assert_eq!(far.transact(|tx| tx.get(&SUM.key())).await, Ok(None));
    client.call(&["SET", "sum:claim", "1"]);
    let claim = tokio::spawn(async move {
        let claim = far.transact(|tx| match tx.get(&SUM.key())? {
            Some(_) => Ok::<_, Error>(false),
            None => tx.put(&SUM.key(), &7).map(|_| true),
        });
        claim.await
    });
    let mut lease = -2;
    while lease < 0 && !claim.is_finished() {
        lease = client.call(&["PTTL", "ember:turn:sum:claim"]).int();
    }
    assert!(lease > 600, "no long lease was found: {lease} ms");
    let started = Instant::now();
    near.put(&SUM.key(), 2).await.expect("the lease ends");
    let waited = started.elapsed();
    assert_eq!(claim.await.expect("the task ends"), Ok(false));
    report!("a lease of {lease} ms of a transaction that did not commit: another waited for {waited:?}");
    assert!(waited < ms(lease as u64 / 2), "{waited:?} of {lease} ms");
}

/// A commit ends the leases of earlier runs, also on keys that its last run did not touch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_ends_the_leases_of_earlier_runs() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let far = store_on(&proxy.url()).await.scope(arena("runs")).deadline(LONG);
    let mut client = server.client();
    proxy.delay(ms(100), ms(100));
    let both = far.transact(|tx| Ok::<_, Error>((tx.get(&COUNT.key())?, tx.get(&SUM.key())?)));
    assert_eq!(both.await, Ok((None, None)));
    client.call(&["MSET", "count:runs", "1", "sum:runs", "1"]);
    let stale = tokio::spawn(async move {
        let stale = far.transact(|tx| match tx.get(&COUNT.key())? {
            Some(_) => tx.rpush(&HITS.key(), &"late".to_owned()).map(drop),
            None => {
                tx.get(&SUM.key())?;
                tx.put(&SUM.key(), &7)
            }
        });
        stale.await
    });
    let mut leased = 0;
    while client.call(&["EXISTS", "hits:runs"]).int() == 0 {
        assert!(!stale.is_finished(), "it commits on another key");
        leased += client.call(&["EXISTS", "ember:turn:sum:runs"]).int();
    }
    assert!(leased > 0, "no lease was found");
    assert_eq!(client.call(&["EXISTS", "ember:turn:sum:runs"]).int(), 0, "it outlives the commit");
    stale.await.expect("the task ends").expect("a plain transaction");
}

async fn blind(scope: &Scope<Arena>, id: &'static str) -> Result<(), Error> {
    scope
        .transact(move |tx| {
            tx.incr_by(&COUNT.key(), 1)?;
            tx.append(&HIT_LOG.key(), &id.to_owned())?;
            Ok(())
        })
        .await
}

/// How long the copy is on its way. Within it the commit is made on another way, also on a busy machine.
const HELD: Duration = Duration::from_secs(10);

/// A copy of a commit that comes after everything that tells of the lost reply has ended: it is not executed.
async fn late_copy(commits_before: usize) {
    let Some(server) = require(RedisServer::options().clock_offset(0).start()) else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let scope = store_on(&proxy.url()).await.scope(arena("late"));
    let mut client = server.client();
    for _ in 0..commits_before {
        blind(&scope, "before").await.expect("no fault yet");
    }
    proxy.delay(HELD, Duration::ZERO);
    let before = proxy.counts().requests;
    let running = tokio::spawn({
        let scope = scope.clone().deadline(LONG);
        async move { blind(&scope, "late").await }
    });
    while proxy.counts().requests == before {
        tokio::time::sleep(ms(1)).await;
    }
    let held_since = Instant::now();
    proxy.delay(Duration::ZERO, Duration::ZERO);
    running.await.expect("the task ends").expect("it is made on another way");
    // The mark of the closed sequence expires; the copy is still on its way.
    server.set_clock_offset(125);
    assert!(held_since.elapsed() + ms(100) < HELD, "the machine is too busy for this test");
    let scripts = |client: &mut Resp| {
        let stats = client.call(&["INFO", "commandstats"]).text();
        let calls = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok();
        stats.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum::<u64>()
    };
    let found = scripts(&mut client);
    while scripts(&mut client) == found {
        assert!(held_since.elapsed() < LONG, "the copy never came");
        tokio::time::sleep(ms(5)).await;
    }
    let made = commits_before as i64 + 1;
    let count = client.call(&["GET", "count:late"]).text();
    let entries = client.call(&["LLEN", "log:hits:late"]).int();
    assert_eq!((count, entries), (made.to_string(), made), "the late copy was executed");
    blind(&scope, "after").await.expect("transactions go on");
    report!("late copy after {commits_before} commits: refused, count {made}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_copy_of_a_first_commit() {
    late_copy(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_copy_of_a_later_commit() {
    late_copy(3).await;
}
