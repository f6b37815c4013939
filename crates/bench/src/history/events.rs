//! Combat events with lookups by attacker, target and zone: as many as can be, and at a rate.

use super::load::{BATCH_ROWS, CoreCost, PEER, batch, open, open_loop, runtime, write_all};
use super::sqlite::{self, Sqlite};
use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::suite::Bench;
use anyhow::Result;
use std::sync::Arc;

const EVENTS: usize = 2_000_000;
const EVENTS_QUICK: usize = 100_000;
/// Batches of the open loop.
const LATENCY_BATCHES: usize = 1_000;
const LATENCY_BATCHES_QUICK: usize = 50;

/// Events per second, each round behind the others in the same store until there are two million.
pub(crate) fn sustained(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let folder = bench.folder(name);
    let (runtime, events) = (runtime()?, if bench.quick { EVENTS_QUICK } else { EVENTS });
    let (history, now) = open(&folder.join("ours"))?;
    let mut connection = Sqlite::new(&folder.join("sqlite"))?.connect()?;
    let per_round = events / BATCH_ROWS / bench.rounds;
    let (mut ours_next, mut peer_next) = (0, 0);
    let (rows, costs) = (per_round * BATCH_ROWS, [CoreCost::default(), CoreCost::default()]);
    let (ours, peer) = bench.take_turns(
        name,
        "events/s",
        || {
            let write = || runtime.block_on(write_all(&history, now, ours_next, per_round));
            let rate = costs[0].of(rows, write);
            ours_next += per_round;
            rate
        },
        || {
            let write =
                || sqlite::write_all(&mut connection, |number| batch(now, number), peer_next, per_round);
            let rate = costs[1].of(rows, write);
            peer_next += per_round;
            rate
        },
    )?;
    runtime.block_on(history.close())?;
    drop((history, connection));
    let _ = std::fs::remove_dir_all(&folder);
    let [of_ours, of_peer] = costs.map(|cost| cost.micros());
    let note = format!(
        "{events} events in the end; batches of {BATCH_ROWS}; synced every second; core µs an event {of_ours:.1}, the peer {of_peer:.1}, with the making of the events"
    );
    let row = |name: &str, goal| Row::new(name, "events/s", &ours, &peer, goal).beside(PEER).note(&note);
    Ok(vec![row(name, Goal::AtLeast(65_000.0)), row(&format!("{name}-ratio"), Goal::RatioAtLeast(3.5))])
}

/// Milliseconds of a batch at half the rate that ours can do, from when it was due.
pub(crate) fn latency(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let folder = bench.folder(name);
    let runtime = runtime()?;
    let batches = if bench.quick { LATENCY_BATCHES_QUICK } else { LATENCY_BATCHES };
    let (history, now) = open(&folder.join("ours"))?;
    let sqlite = Sqlite::new(&folder.join("sqlite"))?;
    let rate = runtime.block_on(write_all(&history, now, 0, batches / 5))? / 2.0;
    let connection = Arc::new(parking_lot::Mutex::new(sqlite.connect()?));
    let ours = runtime.block_on(open_loop(rate, batches, batches, |number| {
        let history = history.clone();
        async move {
            history.insert_many(batch(now, number)).await?;
            Ok(())
        }
    }))?;
    // The peer gets a rate that it can do, or its queue would only grow.
    let peer_rate =
        sqlite::write_all(&mut connection.lock(), |number| batch(now, number), 0, batches / 20)? / 2.0;
    let peer = runtime.block_on(open_loop(rate.min(peer_rate), batches, batches / 5, |number| {
        let connection = connection.clone();
        async move {
            let write = move || sqlite::insert(&mut connection.lock(), &batch(now, number));
            tokio::task::spawn_blocking(write).await?
        }
    }))?;
    runtime.block_on(history.close())?;
    drop((history, connection));
    let _ = std::fs::remove_dir_all(&folder);
    let ms = |micros: u64| Samples::from_iter([micros as f64 / 1_000.0]);
    let note =
        format!("at {rate:.0} events/s in batches of {BATCH_ROWS}; the peer at {:.0}", rate.min(peer_rate));
    let row = |what: &str, ours: u64, peer: u64, goal| {
        Row::new(&format!("{name}-{what}"), "ms", &ms(ours), &ms(peer), goal).beside(PEER).note(&note)
    };
    let p99 = |times: &hdrhistogram::Histogram<u64>| times.value_at_quantile(0.99);
    Ok(vec![
        row("p99", p99(&ours), p99(&peer), Goal::AtMost(120.0)),
        row("max", ours.max(), peer.max(), Goal::AtMost(500.0)),
    ])
}
