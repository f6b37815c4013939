//! Dumps: one moment, beside writers, sweeps and rewrites of the journal.

use super::*;
use crate::journal::fault_disk::FaultDisk;
use std::future::poll_fn;
use std::task::Poll;

/// Begins a dump of all keys.
async fn begin(engine: &Embedded) -> Box<dyn DumpSteps> {
    engine.dump(Arc::new(|_| Some(Kind::Text))).expect("it has moments").await.unwrap()
}

async fn rest(mut steps: Box<dyn DumpSteps>) -> Vec<KeyDump> {
    let mut all = Vec::new();
    while let Some(dumps) = steps.next().await.unwrap() {
        all.extend(dumps);
    }
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all
}

#[tokio::test]
async fn what_is_written_after_the_cut_is_not_in_it() {
    let (engine, clock) = by_hand();
    (0..2_000).for_each(|n| set(&engine, &format!("k{n}"), "before"));
    let ends = Write::Set(bytes("ends"), Expiry::At(T0 + 5));
    write(&engine, vec![(key("ends"), ends)]).unwrap();
    let before = dump(&engine.inner);
    let mut steps = begin(&engine).await;
    let first = steps.next().await.unwrap().expect("there are keys");
    for n in 0..2_000 {
        match n % 3 {
            0 => set(&engine, &format!("k{n}"), "after"),
            1 => write(&engine, vec![(key(format!("k{n}")), Write::Del)]).unwrap(),
            _ => set(&engine, &format!("new{n}"), "after"),
        }
    }
    clock.advance(50);
    engine.sweep_once(Duration::from_secs(1));
    let mut all = rest(steps).await;
    all.extend(first);
    all.sort_by(|a, b| a.key.cmp(&b.key));
    // A key that expired meanwhile may be left out.
    let without =
        |dumps: Vec<KeyDump>| dumps.into_iter().filter(|dump| dump.key != "ends").collect::<Vec<_>>();
    assert_eq!(without(all), without(before));
    assert!(engine.inner.shards.iter().all(|shard| shard.lock().pending_copies.is_none()));
}

#[tokio::test]
async fn one_dump_runs_at_a_time_and_one_that_is_dropped_leaves_no_copies() {
    let (engine, _) = by_hand();
    (0..500).for_each(|n| set(&engine, &format!("k{n}"), "v"));
    let first = begin(&engine).await;
    let mut second = engine.dump(Arc::new(|_| Some(Kind::Text))).expect("it has moments");
    let waits = poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx).is_pending())).await;
    assert!(waits, "it waits for the first one");
    set(&engine, "k1", "after");
    drop(first);
    assert_eq!(rest(second.await.unwrap()).await, dump(&engine.inner));
    drop(begin(&engine).await);
    assert!(engine.inner.shards.iter().all(|shard| shard.lock().pending_copies.is_none()));
}

#[tokio::test]
async fn a_rewrite_of_the_journal_is_refused_beside_a_dump_and_works_after_it() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = options(&clock).data("/data").files(Arc::new(disk)).open().unwrap();
    set(&engine, "k", "v");
    let steps = begin(&engine).await;
    let refused = engine.rewrite_journal();
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    assert_eq!(rest(steps).await.len(), 1);
    engine.rewrite_journal().unwrap();
}

#[tokio::test]
async fn a_closed_engine_ends_a_dump() {
    let (engine, _) = by_hand();
    set(&engine, "k", "v");
    let mut steps = begin(&engine).await;
    engine.close().await.unwrap();
    assert_eq!(steps.next().await, Err(Error::Closed));
}
