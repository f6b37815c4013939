//! What transactions cost: runs of the body, and calls to the server by the engine's own counters.

mod fault_harness;

use emberkeep_hot::command::ZSlice;
use emberkeep_hot::{Error, Scope};
use emberkeep_schema::{Id, Log, Number, RefuseAbove, SortedSet, Text, Utf8, family};
use fault_harness::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

family! {
    /// Lives for a minute from its first write.
    pub LOT = "lot:{arena}:{id}" { kind: Text<Number<i64>>, partition: Arena, parts: (id: u32), ttl: fixed(60_000), owner: "test" }
}
family! {
    /// The last id.
    pub NEXT = "next:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}

family! {
    /// Refuses what it has no room for.
    pub OUTBOX = "log:outbox:{arena}" {
        kind: Log<Utf8, RefuseAbove<100>>, partition: Arena, parts: (), ttl: persistent, owner: "test"
    }
}

family! {
    /// Deadlines.
    pub DUE = "due:{arena}" { kind: SortedSet<Id<u32>>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}

/// Commits and reads since the last look.
fn calls(scope: &Scope<Arena>, before: &mut (u64, u64)) -> (u64, u64) {
    let stats = scope.store().stats().expect("outside a transaction");
    let now = (stats.commit_calls, stats.read_calls);
    let since = (now.0 - before.0, now.1 - before.1);
    *before = now;
    since
}

/// Writes of a `fixed` family read nothing: one run of the body, one call, also where the keys exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_hundred_puts_of_a_fixed_family_are_one_call() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let scope = store_on(&server.url()).await.scope(arena("lots"));
    scope.put(&NEXT.key(), 0).await.expect("the partition's task is running");
    let mut before = (0, 0);
    calls(&scope, &mut before);
    for round in 1..=3 {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let body = move |tx: &mut emberkeep_hot::Tx<'_, Arena>| {
            counted.fetch_add(1, Ordering::Relaxed);
            (0..600).try_for_each(|id| tx.put(&LOT.key(id), &round))
        };
        scope.transact(body).await.expect("a transaction");
        assert_eq!(runs.load(Ordering::Relaxed), 1, "round {round}");
        assert_eq!(calls(&scope, &mut before), (1, 0), "round {round}");
    }
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "lot:lots:599"]).text(), "3");
    assert!(client.call(&["PTTL", "lot:lots:599"]).int() > 0);
}

/// The next id from a counter, then a new key of a fixed family: tasks of one process share their commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_id_then_put_shares_commits() {
    const TASKS: u32 = 64;
    const EACH: u32 = 10;
    let Some(server) = emberkeep_testkit::redis() else { return };
    let scope = store_on(&server.url()).await.scope(arena("ids"));
    scope.put(&NEXT.key(), 0).await.expect("the partition's task is running");
    let mut before = (0, 0);
    calls(&scope, &mut before);
    let tasks = (0..TASKS).map(|_| {
        let scope = scope.clone();
        tokio::spawn(async move {
            for _ in 0..EACH {
                let body = |tx: &mut emberkeep_hot::Tx<'_, Arena>| {
                    let id = tx.get(&NEXT.key())?.unwrap_or(0) + 1;
                    tx.put(&NEXT.key(), &id)?;
                    tx.put(&LOT.key(id as u32), &id)
                };
                scope.transact(body).await?;
            }
            Ok::<_, Error>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic").expect("transactions");
    }
    let (commits, reads) = calls(&scope, &mut before);
    let transactions = u64::from(TASKS * EACH);
    assert!(
        commits <= transactions / 4 && reads <= 2,
        "{commits} commits and {reads} reads for {transactions}"
    );
    assert_eq!(scope.get(&NEXT.key()).await, Ok(Some(i64::from(TASKS * EACH))));
    let ids: Vec<_> = (1..=TASKS * EACH).map(|id| LOT.key(id)).collect();
    let lots = scope.get_many(&ids).await.expect("a read");
    assert!(lots.iter().zip(1..).all(|(lot, id)| *lot == Some(id)));
}

/// An entry of a log that refuses depends on the last number and on the length: both are read in one call, or in
/// none if they were prefetched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_numbered_entry_of_a_log_that_refuses_reads_once() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let (near, other) = (store_on(&server.url()).await, store_on(&server.url()).await);
    let (scope, other) = (near.scope(arena("outbox")), other.scope(arena("outbox")));
    scope.put(&NEXT.key(), 0).await.expect("the partition's task is running");
    let append = |scope: Scope<Arena>| {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        async move {
            let body = move |tx: &mut emberkeep_hot::Tx<'_, Arena>| {
                counted.fetch_add(1, Ordering::Relaxed);
                tx.append_numbered(&OUTBOX.key(), &"entry".to_owned())
            };
            let number = scope.transact(body).await.expect("there is room");
            (number, runs.load(Ordering::Relaxed))
        }
    };
    assert_eq!(append(other.clone()).await.0, 1);
    let mut before = (0, 0);
    calls(&scope, &mut before);
    assert_eq!(append(scope.clone()).await, (2, 2), "the first run misses both reads");
    assert_eq!(calls(&scope, &mut before), (1, 1));
    assert_eq!(append(scope.clone()).await, (3, 1), "what it wrote is cached");
    assert_eq!(calls(&scope, &mut before), (1, 0));
    let fresh = store_on(&server.url()).await.scope(arena("outbox"));
    let mut before = (0, 0);
    assert_eq!(append(fresh.clone().prefetch_log(&OUTBOX.key())).await, (4, 1), "both were prefetched");
    assert_eq!(calls(&fresh, &mut before), (1, 1));
}

/// A member of a sorted set whose members are all cached: what the body read of it is compared, so an external client may
/// change other members meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_does_not_conflict_with_its_neighbours() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let scope = store_on(&server.url()).await.scope(arena("dues"));
    let fill = |tx: &mut emberkeep_hot::Tx<'_, Arena>| {
        (0..20).try_for_each(|id| tx.zadd(&DUE.key(), &id, f64::from(id)))
    };
    scope.transact(fill).await.expect("a transaction");
    let all = |tx: &mut emberkeep_hot::Tx<'_, Arena>| tx.zrange(&DUE.key(), ZSlice::Rank(0, 99), false);
    assert_eq!(scope.transact(all).await.expect("a transaction").len(), 20);
    assert_eq!(server.client().call(&["ZADD", "due:dues", "50", "99"]).int(), 1);
    let mut before = (0, 0);
    calls(&scope, &mut before);
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let cancel = move |tx: &mut emberkeep_hot::Tx<'_, Arena>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let at = tx.zscore(&DUE.key(), &7)?;
        tx.zrem(&DUE.key(), &7)?;
        Ok::<_, Error>(at)
    };
    assert_eq!(scope.transact(cancel).await, Ok(Some(7.0)));
    assert_eq!((runs.load(Ordering::Relaxed), calls(&scope, &mut before)), (1, (1, 0)));
    // The set itself was changed: a transaction on all of it runs again, once.
    let taken = scope.transact(|tx| {
        let all = tx.zrange(&DUE.key(), ZSlice::Rank(0, 99), false)?;
        tx.zrem_many(&DUE.key(), all.iter().map(|(id, _)| id))?;
        Ok::<_, Error>(all.len())
    });
    assert_eq!(taken.await, Ok(20));
    assert_eq!(server.client().call(&["EXISTS", "due:dues"]).int(), 0);
}

/// Transactions of many partitions share commits where their scopes are of one group, and not otherwise.
#[tokio::test]
async fn scopes_of_a_group_share_commits() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    for (is_grouped, calls) in [(false, 50..=50), (true, 1..=10)] {
        let store = store_on(&server.url()).await;
        let scope = |n: i64| {
            let scope = store.scope(arena(format!("group-{is_grouped}-{n}")));
            if is_grouped { scope.sharing_commits("group") } else { scope }
        };
        let puts = (0..50).map(|n| {
            let scope = scope(n);
            async move { scope.put(&NEXT.key(), n).await }
        });
        assert!(futures_util::future::join_all(puts).await.iter().all(Result::is_ok));
        let stats = store.stats().unwrap();
        assert!(calls.contains(&stats.commit_calls), "{stats:?}");
        for n in 0..50 {
            assert_eq!(scope(n).get(&NEXT.key()).await, Ok(Some(n)), "each in its own partition");
        }
    }
}
