//! Draining: how fast a full outbox is emptied into the embedded store, and how it grows at 20,000 events a second.

use super::{DRAINER, HITS, place_monsters, project, strike};
use crate::history::load::{open, runtime};
use crate::measure::{Samples, scattered};
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::{Result, ensure};
use emberkeep::games::world::Tenant;
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Scope, Store};
use emberkeep_history::outbox::Consumer;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Events a second that must not be too many.
const RATE: u64 = 20_000;
/// Events that wait when a full outbox is drained.
const WAITING: u64 = 200_000;
const WAITING_QUICK: u64 = 20_000;
/// Seconds at the rate.
const SECONDS: u64 = 20;
const SECONDS_QUICK: u64 = 3;
/// Looks at the queue in a second.
const LOOKS: u64 = 10;
/// The number of the first hit at the rate: no hit before has it.
const RATED_FIRST: u64 = 100_000_000;
/// How long the rest of the queue may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both rows: how fast the log is filled, and how fast it is drained.
pub(crate) fn drain(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let (waiting, seconds) = if bench.quick { (WAITING_QUICK, SECONDS_QUICK) } else { (WAITING, SECONDS) };
    let (folder, runtime) = (bench.folder(name), runtime()?);
    let (history, now) = open(&folder)?;
    let scope = Store::new(Arc::new(Embedded::in_memory())).scope(Tenant(Uuid::new_v4()));
    let consumer = Arc::new(Consumer::new(&scope, HITS.key(), DRAINER.key(), history.clone(), project)?);
    let (drained, queue) = runtime.block_on(async {
        place_monsters(&scope).await?;
        let mut drained = Samples::default();
        for round in 1..=bench.rounds as u64 {
            hits(&scope, now, round * waiting, waiting).await?;
            let begun = Instant::now();
            let done = consumer.drain_once().await?.map_or(0, |done| done.delivered);
            ensure!(done as u64 == waiting, "{done} of {waiting} events were drained");
            let rate = waiting as f64 / begun.elapsed().as_secs_f64();
            say(&format!("{name}  round {round}/{}  {rate:.0} events/s", bench.rounds));
            drained.push(rate);
        }
        let queue = at_the_rate(&scope, &consumer, now, seconds).await?;
        history.close().await?;
        anyhow::Ok((drained, queue))
    })?;
    drop((consumer, history));
    let _ = std::fs::remove_dir_all(&folder);
    Ok(vec![full_row(name, waiting, &drained), queue_row(name, seconds, &queue)])
}

fn full_row(name: &str, waiting: u64, drained: &Samples) -> Row {
    Row::new(name, "events/s", drained, &drained.constant(RATE as f64), Goal::AtLeast(RATE as f64))
        .beside("the rate that it must keep up with")
        .note(format!(
            "{waiting} events that wait, hot state in memory; each becomes a row with three lookups and a part of totals, synced every second"
        ))
}

/// What waited over the time: no more in the last quarter than a second brings.
fn queue_row(name: &str, seconds: u64, queue: &[f64]) -> Row {
    let quarter = queue.len() / 4;
    let most = |part: &[f64]| Samples::from_iter([part.iter().copied().fold(0.0, f64::max)]);
    let (first, last) = (most(&queue[..quarter]), most(&queue[queue.len() - quarter..]));
    Row::new(&format!("{name}-queue"), "entries", &last, &first, Goal::AtMost(RATE as f64))
        .beside("the most that waited in the first quarter of the time")
        .note(format!("the most that waited in the last quarter of {seconds} s at {RATE} events/s, hits and drain on the same cores"))
}

async fn hits(scope: &Scope<Tenant>, now: i64, first: u64, count: u64) -> Result<()> {
    for number in first..first + count {
        let random = scattered(number);
        // Within the last hour, so that none is in the future.
        let at = now - 3_600_000 + (number % RATED_FIRST / 1_000) as i64;
        scope.transact(move |tx| strike(tx, random, at, true)).await?;
    }
    Ok(())
}

/// Entries that wait, looked at several times a second while hits come at the rate; in the end all are in history.
async fn at_the_rate(
    scope: &Scope<Tenant>,
    consumer: &Arc<Consumer>,
    now: i64,
    seconds: u64,
) -> Result<Vec<f64>> {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let draining = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.run(async { drop(stopped.await) }).await }
    });
    let before = consumer.stats().delivered;
    let delivered = || consumer.stats().delivered - before;
    let (begun, mut queue) = (Instant::now(), Vec::new());
    let per_look = RATE / LOOKS;
    for look in 0..seconds * LOOKS {
        tokio::time::sleep_until((begun + Duration::from_millis(look * 1_000 / LOOKS)).into()).await;
        hits(scope, now, RATED_FIRST + look * per_look, per_look).await?;
        queue.push(((look + 1) * per_look).saturating_sub(delivered()) as f64);
    }
    let (all, patience) = (seconds * RATE, Instant::now() + PATIENCE);
    while delivered() < all && Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let delivered = delivered();
    let _ = stop.send(());
    draining.await?;
    ensure!(delivered == all, "{delivered} of {all} events are in history");
    Ok(queue)
}
