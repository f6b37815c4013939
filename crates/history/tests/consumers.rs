//! Many consumers at once: one that panics or fails does not stop the others, and a store that comes late.

mod arena;
mod folders;

use arena::*;
use emberkeep_history::outbox::Consumers;
use emberkeep_history::{Deferred, Error, History};
use folders::Folder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_panics_is_started_again_and_the_others_go_on() {
    let (folder, store) = (Folder::new(), in_memory());
    let panics = AtomicU32::new(0);
    let faults = Faults::new(store_in(folder.path()), move |call| {
        let is_first = call == "get ember_log_positions" && panics.fetch_add(1, Ordering::Relaxed) < 2;
        assert!(!is_first, "a defect of the test's store");
        None
    });
    let (broken, history) = (History::new(faults.clone()), History::new(faults));
    let (first, second) = (store.scope(Arena(1)), store.scope(Arena(2)));
    kills(&first, [7, 7]).await;
    kills(&second, [8]).await;
    let consumers: Consumers = [consumer(&first, &broken), consumer(&second, &history)].into_iter().collect();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let consumers = consumers.clone();
        async move { consumers.run(async { drop(stopped.await) }).await }
    });
    until("both logs are drained", async || {
        kills_of(&history, 7).await == 2 && kills_of(&history, 8).await == 1
    })
    .await;
    assert_eq!(consumers.stats().iter().map(|stats| stats.restarts).sum::<u64>(), 2, "two panics");
    assert!(consumers.of_log("1/log:kills:1").is_some() && consumers.of_log("3").is_none());
    stop.send(()).unwrap();
    running.await.unwrap();
    assert!(consumers.stats().iter().all(|stats| !stats.is_holder), "the leases are released");
    history.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lag_is_read_without_a_lease_and_draining_reports_each_log() {
    let (folder, store) = (Folder::new(), in_memory());
    let history = history_in(folder.path());
    let (first, second) = (store.scope(Arena(1)), store.scope(Arena(2)));
    kills(&first, [7, 7, 7]).await;
    kills(&second, [REJECTED]).await;
    let consumers: Consumers =
        [consumer(&first, &history), consumer(&second, &history)].into_iter().collect();
    let one = consumers.iter().next().unwrap();
    let lag = one.lag().await.unwrap();
    assert_eq!((lag.entries, lag.is_set_back), (3, false));
    assert_eq!(lag.oldest.map(|at| at.0), Some(emberkeep_history::testing::NOW));
    let drained: Vec<_> = consumers.drain_once().await.into_iter().map(|one| one.unwrap().unwrap()).collect();
    assert_eq!((drained[0].delivered, drained[0].dead_letters), (3, 0));
    assert_eq!((drained[1].delivered, drained[1].dead_letters), (1, 1));
    assert_eq!(one.lag().await.unwrap().entries, 0);
    history.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_for_a_store_that_is_opened_later() {
    let (folder, store) = (Folder::new(), in_memory());
    let deferred = Arc::new(Deferred::new("history", "not there"));
    let history = History::new(deferred.clone());
    let scope = store.scope(Arena(1));
    kills(&scope, [7, 7]).await;
    let consumers: Consumers = [consumer(&scope, &history)].into_iter().collect();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let consumers = consumers.clone();
        async move { consumers.run(async { drop(stopped.await) }).await }
    });
    // How much waits is visible although history does not answer.
    until("an error is reported", async || consumers.stats()[0].lag_entries == 2).await;
    assert!(consumers.stats()[0].errors > 0 && !history.store().is_open());
    assert!(matches!(history.acknowledged("x").await, Err(Error::Unavailable { .. })));
    let (path, tries) = (folder.path().to_owned(), AtomicU32::new(0));
    deferred
        .open(|| match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Box::pin(async { Err("still not there") }),
            _ => Box::pin(std::future::ready(Ok(history_in(&path)))),
        })
        .await;
    until("the log is drained", async || kills_of(&history, 7).await == 2).await;
    stop.send(()).unwrap();
    running.await.unwrap();
    history.close().await.unwrap();
    assert_eq!(history.acknowledged("x").await, Err(Error::Closed));
}
