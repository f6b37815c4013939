//! Reads while events are written at half the rate that the store can do.

use super::load::{BATCH_ROWS, PEER, PLAYERS, batch, open, runtime, write_all, write_in_background};
use super::sqlite::{self, Sqlite};
use crate::measure::{Samples, latencies};
use crate::row::{Goal, Row};
use crate::suite::Bench;
use anyhow::Result;
use emberkeep_history::History;
use emberkeep_history::testing::CombatEvent;
use emberkeep_schema::Timestamp;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const BATCHES: usize = 300;
const BATCHES_QUICK: usize = 50;
const READS: usize = 2_000;
const READS_QUICK: usize = 200;
const RANGE_ROWS: usize = 100;
const ATTACKER_ROWS: usize = 20;

/// The call that is measured.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    Range,
    Attacker,
}

/// A time among those that were written before.
fn time(now: i64, batches: usize, random: &mut fastrand::Rng) -> Timestamp {
    Timestamp(now - 3_600_000 + random.i64(0..(batches * BATCH_ROWS / 100) as i64))
}

/// 100 rows of a day, from a time backwards: p99 in milliseconds.
pub(crate) fn range(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    read(bench, name, Read::Range, Goal::AtMost(5.0))
}

/// The 20 newest rows of an attacker: p99 in milliseconds.
pub(crate) fn by_attacker(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    read(bench, name, Read::Attacker, Goal::AtMost(10.0))
}

fn read(bench: &mut Bench, name: &'static str, what: Read, goal: Goal) -> Result<Vec<Row>> {
    let folder = bench.folder(name);
    let runtime = runtime()?;
    let (batches, count) = if bench.quick { (BATCHES_QUICK, READS_QUICK) } else { (BATCHES, READS) };
    let (history, now) = open(&folder.join("ours"))?;
    let rate = runtime.block_on(write_all(&history, now, 0, batches))? / 2.0;
    let ours = runtime.block_on(async {
        let (ends, writer) = write_in_background(&history, now, batches, rate);
        let times = read_ours(&history, what, now, batches, count).await;
        ends.store(true, Ordering::Relaxed);
        writer.await??;
        history.close().await?;
        times
    })?;
    let peer = read_peer(&Sqlite::new(&folder.join("sqlite"))?, what, now, batches, count)?;
    drop(history);
    let _ = std::fs::remove_dir_all(&folder);
    let p99 = |times: &Histogram<u64>| Samples::from_iter([times.value_at_quantile(0.99) as f64 / 1_000.0]);
    let row = Row::new(name, "ms", &p99(&ours), &p99(&peer), goal).beside(PEER);
    Ok(vec![row.note(format!(
        "p99 of {count} reads beside {rate:.0} events/s; the peer beside half of its own rate"
    ))])
}

async fn read_ours(
    history: &History,
    what: Read,
    now: i64,
    batches: usize,
    count: usize,
) -> Result<Histogram<u64>> {
    let (mut random, mut times) = (fastrand::Rng::with_seed(3), latencies());
    for _ in 0..count {
        let at = time(now, batches, &mut random);
        let attacker = random.i64(0..PLAYERS);
        let begun = Instant::now();
        let query = match what {
            Read::Range => {
                history.range(CombatEvent::partition(at.day())).between(..=at).rows_max(RANGE_ROWS)
            }
            Read::Attacker => {
                history.range(CombatEvent::by_attacker(attacker, at.day())).rows_max(ATTACKER_ROWS)
            }
        };
        query.page(None).await?.into_rows()?;
        times.saturating_record(begun.elapsed().as_micros() as u64);
    }
    Ok(times)
}

fn read_peer(sqlite: &Sqlite, what: Read, now: i64, batches: usize, count: usize) -> Result<Histogram<u64>> {
    let (mut writing, reading) = (sqlite.connect()?, sqlite.connect()?);
    let rate = sqlite::write_all(&mut writing, |number| batch(now, number), 0, batches)? / 2.0;
    let every = std::time::Duration::from_secs_f64(BATCH_ROWS as f64 / rate);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let begun = Instant::now();
            for number in 0.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep((begun + every * number).saturating_duration_since(Instant::now()));
                sqlite::insert(&mut writing, &batch(now, batches + number as usize))?;
            }
            anyhow::Ok(())
        });
        let (mut random, mut times) = (fastrand::Rng::with_seed(3), latencies());
        for _ in 0..count {
            let at = time(now, batches, &mut random);
            let attacker = random.i64(0..PLAYERS);
            let (day, begun) = (at.day().to_string(), Instant::now());
            match what {
                Read::Range => sqlite::range(&reading, &day, at.0, RANGE_ROWS)?,
                Read::Attacker => sqlite::by_attacker(&reading, attacker, &day, ATTACKER_ROWS)?,
            };
            times.saturating_record(begun.elapsed().as_micros() as u64);
        }
        ends.store(true, Ordering::Relaxed);
        writer.join().expect("a thread of the benchmark does not panic")?;
        Ok(times)
    })
}
