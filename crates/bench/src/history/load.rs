//! Combat events of 100,000 players in 200 zones, 100 in a millisecond, and writers of them at a rate or as fast as they can.

use crate::measure::process_core;
use anyhow::Result;
use emberkeep_history::embedded::Options;
use emberkeep_history::testing::{CombatEvent, event, schema};
use emberkeep_history::{Embedded, History, HistoryStore as _};
use emberkeep_schema::Timestamp;
use hdrhistogram::Histogram;
use std::cell::Cell;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use uuid::Uuid;

pub(super) const PLAYERS: i64 = 100_000;
pub(super) const BATCH_ROWS: usize = 1_000;
pub(super) const PEER: &str = "SQLite in WAL mode, synchronous = NORMAL, three indexes";
/// Events of one millisecond.
const PER_MS: i64 = 100;
/// Calls in flight of a writer that is as fast as it can be.
const WRITERS: usize = 4;

/// A runtime as a server has it.
pub(super) fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// What operations cost this process on its cores, whatever else the machine does.
#[derive(Default)]
pub(super) struct CoreCost {
    core: Cell<Duration>,
    count: Cell<usize>,
}

impl CoreCost {
    /// Adds the cost of so many operations.
    pub(super) fn of<T>(&self, count: usize, work: impl FnOnce() -> T) -> T {
        let before = process_core();
        let result = work();
        self.core.set(self.core.get() + (process_core() - before));
        self.count.set(self.count.get() + count);
        result
    }

    /// Microseconds of one operation.
    pub(super) fn micros(&self) -> f64 {
        self.core.get().as_secs_f64() * 1e6 / self.count.get().max(1) as f64
    }
}

/// Opens a store in a folder.
pub(super) fn open(folder: &Path) -> Result<(History, i64)> {
    let store = Embedded::open(folder, schema(), Options::default())?;
    let now = store.now();
    Ok((History::new(Arc::new(store)), now))
}

/// The events of a batch; ours and the peer's are the same.
pub(super) fn batch(now: i64, number: usize) -> Vec<CombatEvent> {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let first = (number * BATCH_ROWS) as i64;
    (0..BATCH_ROWS as i64)
        .map(|n| CombatEvent {
            // An hour ago: whatever the number of events, none is in the future.
            timestamp: Timestamp(now - 3_600_000 + (first + n) / PER_MS),
            event_id: Uuid::from_u128(random.u128(..)),
            target_id: random.i64(0..PLAYERS),
            zone_id: random.i32(0..200),
            ability_name: Some("fireball".into()),
            ..event(random.i64(0..PLAYERS), 0, 0)
        })
        .collect()
}

/// Events per second of so many batches, by a few callers at once.
pub(super) async fn write_all(history: &History, now: i64, first: usize, batches: usize) -> Result<f64> {
    let next = Arc::new(AtomicUsize::new(first));
    let begun = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let (history, next) = (history.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + batches {
                        return anyhow::Ok(());
                    }
                    history.insert_many(batch(now, number)).await?;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    Ok((batches * BATCH_ROWS) as f64 / begun.elapsed().as_secs_f64())
}

/// Batches at a rate that does not wait for their replies: microseconds from when each was due to its reply.
pub(super) async fn open_loop<F>(
    events_per_second: f64,
    first: usize,
    batches: usize,
    write: impl Fn(usize) -> F,
) -> Result<Histogram<u64>>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let every = Duration::from_secs_f64(BATCH_ROWS as f64 / events_per_second);
    let begun = Instant::now();
    let mut replies = Vec::with_capacity(batches);
    for number in 0..batches {
        let due = begun + every * number as u32;
        tokio::time::sleep_until(due.into()).await;
        let writing = write(first + number);
        replies.push(tokio::spawn(async move {
            writing.await?;
            anyhow::Ok(due.elapsed())
        }));
    }
    let mut times = crate::measure::latencies();
    for reply in replies {
        times.saturating_record(reply.await??.as_micros() as u64);
    }
    Ok(times)
}

/// Writes at a rate in the background until it is told to end.
pub(super) fn write_in_background(
    history: &History,
    now: i64,
    first: usize,
    events_per_second: f64,
) -> (Arc<AtomicBool>, tokio::task::JoinHandle<Result<()>>) {
    let ends = Arc::new(AtomicBool::new(false));
    let (history, is_over) = (history.clone(), ends.clone());
    let task = tokio::spawn(async move {
        let every = Duration::from_secs_f64(BATCH_ROWS as f64 / events_per_second);
        let mut tick = tokio::time::interval(every);
        for number in first.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            tick.tick().await;
            history.insert_many(batch(now, number)).await?;
        }
        Ok(())
    });
    (ends, task)
}
