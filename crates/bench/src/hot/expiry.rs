//! 100,000 keys that end in one millisecond, beside a reader that wants an answer every 100 µs.
//!
//! The reader is an open loop: it reads on schedule, and what it waits counts from the scheduled time, so a pause of
//! the engine is seen by all reads that fall into it. The machine makes pauses too; the peer is the same reader on
//! the same engine while nothing ends.

use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::sessions::{PASSING, Realm, scope, session, session_key};
use crate::suite::Bench;
use anyhow::{Context, Result};
use emberkeep::hot::Scope;
use emberkeep::hot::embedded::Embedded;
use std::time::{Duration, Instant};

const ENDING: u64 = 100_000;
const LIVING: u64 = 10_000;
/// Time between two reads.
const EVERY: Duration = Duration::from_micros(100);
/// The reader begins this long before the end of the keys, and goes on for as long as the sweep may take.
const BEFORE: Duration = Duration::from_millis(300);
const AFTER: Duration = Duration::from_millis(900);
/// Time to store the keys before the reader begins.
const SETUP: Duration = Duration::from_millis(600);
/// An hour: for keys that do not end while we look.
const LATER_MS: i64 = 3_600_000;

/// The reader's longest wait.
pub(crate) fn expiry(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let mut left = 0;
    let (ours, peer) =
        bench.take_turns(name, "ms", || longest_wait(true, &mut left), || longest_wait(false, &mut 0))?;
    let row = Row::new(name, "ms", &ours, &peer, Goal::AtMost(5.0));
    let note = format!("longest wait of each run; {left} ended keys were left when the last reader stopped");
    Ok(vec![row.beside("the same reader while nothing ends").note(note)])
}

/// Runs the reader; `left` becomes the number of ended keys that were not swept when it stopped.
fn longest_wait(ending: bool, left: &mut u64) -> Result<f64> {
    let scope = scope(Embedded::in_memory());
    let setup = runtime()?;
    let (reader_starts, end_ms) = setup.block_on(async {
        let end_ms = scope.store().now().await? + (SETUP + BEFORE).as_millis() as i64;
        let reader_starts = Instant::now() + SETUP;
        fill(&scope, if ending { end_ms } else { end_ms + LATER_MS }).await?;
        anyhow::Ok((reader_starts, end_ms))
    })?;
    let reader = scope.clone();
    let thread =
        std::thread::Builder::new().name("reader".into()).spawn(move || read(&reader, reader_starts))?;
    let waits = thread.join().ok().context("the reader panicked")??;
    debug_assert!(setup.block_on(scope.store().now()).is_ok_and(|now| now > end_ms));
    *left = scope.store().stats()?.keys.saturating_sub(LIVING);
    Ok(waits.spread()[1])
}

async fn fill(scope: &Scope<Realm>, end_ms: i64) -> Result<()> {
    for player in 0..LIVING {
        scope.put(&session_key(player), session(player)).await?;
    }
    let value = session(0);
    for number in 0..ENDING {
        let (key, value) = (PASSING.key(number), value.clone());
        scope.transact(move |tx| tx.put_until(&key, &value, end_ms)).await?;
    }
    Ok(())
}

/// Reads on schedule; answers each wait in milliseconds.
fn read(scope: &Scope<Realm>, starts: Instant) -> Result<Samples> {
    let reads = ((BEFORE + AFTER).as_micros() / EVERY.as_micros()) as u64;
    let mut waits = Samples::default();
    runtime()?.block_on(async {
        for number in 0..reads {
            let scheduled = starts + EVERY * number as u32;
            wait_until(scheduled);
            scope.get(&session_key(number * 7_919 % LIVING)).await?.context("a session is gone")?;
            waits.push(scheduled.elapsed().as_secs_f64() * 1e3);
        }
        Ok(waits)
    })
}

/// Sleeps while there is time, then spins: a sleeping thread wakes too late for this schedule.
pub(super) fn wait_until(due: Instant) {
    while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if left > Duration::from_millis(2) {
            std::thread::sleep(left - Duration::from_millis(1));
        } else {
            std::hint::spin_loop();
        }
    }
}
