//! A crowd of tasks in two processes on one key: nothing is lost, and bodies do not run over and over in
//! vain.

mod fault_harness;

use emberkeep_hot::limits::TRANSACTION_BYTES_MAX;
use emberkeep_schema::{Text, Utf8, family};
use emberkeep_testkit::report;
use fault_harness::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TASKS: usize = 1_000;
const ROUNDS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_in_each_of_two_engines() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let runs = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let scope = store_on(&server.url()).await.scope(arena("crowd")).deadline(Duration::from_secs(40));
        for _ in 0..TASKS {
            let (scope, runs) = (scope.clone(), runs.clone());
            tasks.push(tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let runs = runs.clone();
                    let transaction = scope.transact(move |tx| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        let sum = tx.get(&SUM.key())?.unwrap_or(0);
                        tx.put(&SUM.key(), &(sum + 1))
                    });
                    transaction.await.expect("time enough");
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("a task ends");
    }
    let transactions = (2 * TASKS * ROUNDS) as u64;
    let per_transaction = runs.load(Ordering::Relaxed) as f64 / transactions as f64;
    report!(
        "crowd: {transactions} transactions of {} tasks, {per_transaction:.1} runs per transaction, {:?}",
        2 * TASKS,
        started.elapsed()
    );
    assert_eq!(server.client().call(&["GET", "sum:crowd"]).text(), transactions.to_string());
    assert!(per_transaction < 25.0, "bodies run in vain: {per_transaction:.1} runs per transaction");
}

family! {
    /// Large values.
    pub BULK = "bulk:{arena}:{n}" { kind: Text<Utf8>, partition: Arena, parts: (n: u32), ttl: persistent, owner: "test" }
}

/// The largest transactions, one after the other. Others wait for the server while it takes one in, and those
/// of the same process for the connection, but not for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_transactions_beside_others() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let (store, other) = (store_on(&server.url()).await, store_on(&server.url()).await);
    let stop = flag();
    let beside = |scope, name| tokio::spawn(assault(scope, name, 1, Until::Flag(stop.clone())));
    let bystanders = [
        beside(store.scope(arena("same")), "the same process"),
        beside(other.scope(arena("other")), "another process"),
    ];
    let bulk = "x".repeat(TRANSACTION_BYTES_MAX / 16);
    let mut slowest = Duration::ZERO;
    for _ in 0..5 {
        let (bulk, started) = (bulk.clone(), Instant::now());
        let scope = store.scope(arena("bulk")).deadline(LONG);
        let large = scope.transact(move |tx| (0..15).try_for_each(|n| tx.put(&BULK.key(n), &bulk)));
        large.await.expect("within the bound");
        slowest = slowest.max(started.elapsed());
    }
    stop.store(true, Ordering::Release);
    for (name, bystander) in ["the same process", "another process"].into_iter().zip(bystanders) {
        let ledger = bystander.await.expect("a task ends");
        report!(
            "5 transactions of 15 MiB, slowest {slowest:?}; {name}: {} hits, slowest {:?}",
            ledger.done(),
            ledger.slowest()
        );
        assert_eq!((ledger.refused(), ledger.unknown()), (0, 0), "{:?}", ledger.errors());
        assert!(ledger.slowest() < slowest + SLACK, "{name}: {:?}", ledger.slowest());
    }
}
