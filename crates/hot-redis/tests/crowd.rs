//! A crowd of tasks in two processes on one key: nothing is lost, and bodies do not run over and over in vain.

mod arena;

use arena::*;
use emberkeep_testkit::report;
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
                    let step = scope.transact(move |tx| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        let sum = tx.get(&SUM.key())?.unwrap_or(0);
                        tx.put(&SUM.key(), &(sum + 1))
                    });
                    step.await.expect("time enough");
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("a task ends");
    }
    let steps = (2 * TASKS * ROUNDS) as u64;
    let per_step = runs.load(Ordering::Relaxed) as f64 / steps as f64;
    report!(
        "crowd: {steps} steps of {} tasks, {per_step:.1} runs per step, {:?}",
        2 * TASKS,
        started.elapsed()
    );
    assert_eq!(server.client().call(&["GET", "sum:crowd"]).text(), steps.to_string());
    assert!(per_step < 25.0, "bodies run in vain: {per_step:.1} runs per step");
}
