//! History: combat events, counters, and reads of both.

use super::{CALLERS, Found, Target, measure, rows};
use crate::history::load::{BATCH_ROWS, PLAYERS, batch, open, runtime, write_all};
use crate::history::totals::players;
use crate::measure::scattered;
use crate::row::Row;
use crate::suite::Bench;
use anyhow::Result;
use emberkeep_history::testing::{CombatEvent, kills};
use emberkeep_history::{History, Source};
use emberkeep_schema::Timestamp;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;

/// Events that are there before reads.
const BATCHES: usize = 200;
const BATCHES_QUICK: usize = 50;

const INSERT: Target = Target { operation: "insert-event", ms: 10.0, rate: 100_000.0 };
const COUNT: Target = Target { operation: "update-counters", ms: 5.0, rate: 200_000.0 };
const PARTITION: Target = Target { operation: "select-partition", ms: 50.0, rate: 10_000.0 };
const INDEX: Target = Target { operation: "select-index", ms: 100.0, rate: 5_000.0 };

/// Section 4.2 on the embedded store.
pub(crate) fn history(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let (folder, runtime) = (bench.folder(name), runtime()?);
    let (history, now) = open(&folder)?;
    let batches = if bench.quick { BATCHES_QUICK } else { BATCHES };
    let on = "embedded, synced every second";
    let rate = runtime.block_on(write_all(&history, now, 0, batches))?;
    let single = singles(bench, &runtime, &history, now)?;
    let mut all = Vec::new();
    let note = format!(
        "{on}; the rate in batches of {BATCH_ROWS} by 4 callers, three lookups; p99 of single events by {CALLERS}"
    );
    all.extend(rows(name, &INSERT, &Found { rate, ..single }, &note));
    let found = counters(bench, &runtime, &history, batches / 20)?;
    all.extend(rows(
        name,
        &COUNT,
        &found,
        &format!("{on}; the rate in folds of 10000, p99 of single ones by one caller"),
    ));
    let span = (batches * BATCH_ROWS / 100) as i64;
    let time = move |number: u64| Timestamp(now - 3_600_000 + (scattered(number) % span as u64) as i64);
    let of = history.clone();
    let found = measure(&runtime, bench.sample, CALLERS, move |number| {
        let (history, at) = (of.clone(), time(number));
        async move {
            history
                .range(CombatEvent::partition(at.day()))
                .between(..=at)
                .rows_max(100)
                .page(None)
                .await?
                .into_rows()?;
            Ok(())
        }
    })?;
    all.extend(rows(name, &PARTITION, &found, &format!("{on}; 100 rows of a day, {CALLERS} readers")));
    let of = history.clone();
    let found = measure(&runtime, bench.sample, CALLERS, move |number| {
        let (history, at, attacker) = (of.clone(), time(number), (scattered(number) >> 7) as i64 % PLAYERS);
        async move {
            history
                .range(CombatEvent::by_attacker(attacker, at.day()))
                .rows_max(20)
                .page(None)
                .await?
                .into_rows()?;
            Ok(())
        }
    })?;
    all.extend(rows(name, &INDEX, &found, &format!("{on}; 20 rows of an attacker, {CALLERS} readers")));
    runtime.block_on(history.close())?;
    drop(history);
    let _ = std::fs::remove_dir_all(&folder);
    Ok(all)
}

fn singles(bench: &Bench, runtime: &Runtime, history: &History, now: i64) -> Result<Found> {
    let (of, events) = (history.clone(), Arc::new(batch(now, 1 << 20)));
    measure(runtime, bench.sample, CALLERS, move |number| {
        let (history, mut event) = (of.clone(), events[number as usize % BATCH_ROWS].clone());
        event.event_id = uuid::Uuid::from_u64_pair(number, scattered(number));
        event.timestamp = Timestamp(now - 3_600_000 + (number & 0xFFFF) as i64);
        async move {
            history.insert(event).await?;
            Ok(())
        }
    })
}

/// The rate of large folds and the latency of single ones.
fn counters(bench: &Bench, runtime: &Runtime, history: &History, calls: usize) -> Result<Found> {
    let source = Source::of_log("shard-1", "log:combat", "document");
    let begun = Instant::now();
    runtime.block_on(async {
        for call in 0..calls {
            let players = players(call);
            let first = (call * players.len()) as u64 + 1;
            history
                .fold(&source, (first..).zip(players.iter()).map(|(at, player)| kills(at, *player, 1)))
                .await?;
        }
        anyhow::Ok(())
    })?;
    let rate = (calls * players(0).len()) as f64 / begun.elapsed().as_secs_f64();
    let of = history.clone();
    let single = measure(runtime, bench.sample, 1, move |number| {
        let history = of.clone();
        async move {
            let source = Source::of_log("shard-1", "log:combat", "single");
            let player = (scattered(number) % PLAYERS as u64) as i64;
            history.fold(&source, [kills(number + 1, player, 1)]).await?;
            Ok(())
        }
    })?;
    Ok(Found { rate, ..single })
}
