//! Readers of single ships at a fixed rate, beside ticks and beside the plain pipeline. A reader that has to wait delays no
//! other: latencies count from when a read was due.

use super::{SHIPS, Space, pipeline, prefixed};
use crate::measure::{Samples, latencies};
use crate::peer::Peer;
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::Result;
use emberkeep::games::galaxy::{GalaxyState, ShipId};
use emberkeep::hot::Store;
use emberkeep::redis::RedisEngine;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Reads per second.
const READS_PER_SECOND: u64 = 2_000;
/// Reads that are begun together: timers are no finer than a millisecond.
const READS_AT_ONCE: u64 = 4;

/// p99 of reads at 2,000 a second.
pub(super) fn readers(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let ships = if bench.quick { SHIPS / 10 } else { SHIPS };
    let mut space = Space::on_redis(&peer, ships)?;
    space.tick()?;
    let reader = Reader::on(&peer, ships)?;
    let world = space.world.clone();
    let time = bench.sample.max(Duration::from_millis(500)) * 2;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for round in 1..=bench.rounds {
        ours.push(reader.beside(time, || space.tick().map(drop))?);
        theirs.push(reader.beside(time, || pipeline(&peer, &world).map(drop))?);
        say(&format!("{name}  round {round}/{}", bench.rounds));
    }
    let row = Row::new(name, "µs p99", &ours, &theirs, Goal::RatioAtMost(2.0));
    Ok(vec![row.beside("reads beside a torn pipeline of HSETs")])
}

/// Reads ships on a connection of its own.
struct Reader {
    state: GalaxyState,
    ships: u128,
    runtime: Runtime,
}

impl Reader {
    fn on(peer: &Peer, ships: u128) -> Result<Reader> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let store = Store::new(runtime.block_on(RedisEngine::connect(&prefixed(peer.url())))?);
        Ok(Reader { state: GalaxyState::new(store), ships, runtime })
    }

    /// The 99th percentile in microseconds while `work` is repeated.
    fn beside(&self, time: Duration, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
        let stop = Arc::new(AtomicBool::new(false));
        let reads = self.runtime.spawn(read_at_rate(self.state.clone(), self.ships, stop.clone()));
        let started = Instant::now();
        let worked = (|| {
            while started.elapsed() < time {
                work()?;
            }
            anyhow::Ok(())
        })();
        stop.store(true, Ordering::Relaxed);
        let recorded = self.runtime.block_on(reads)??;
        worked?;
        Ok(recorded.value_at_quantile(0.99) as f64)
    }
}

async fn read_at_rate(state: GalaxyState, ships: u128, stop: Arc<AtomicBool>) -> Result<Histogram<u64>> {
    let mut every =
        tokio::time::interval(Duration::from_micros(1_000_000 * READS_AT_ONCE / READS_PER_SECOND));
    let mut pending: Vec<JoinHandle<Result<u64>>> = Vec::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = every.tick().await.into_std();
        for _ in 0..READS_AT_ONCE {
            number += 1;
            let (state, ship) = (state.clone(), ShipId(Uuid::from_u128(1 + number % ships)));
            pending.push(tokio::spawn(async move {
                state.ship(&ship).await?;
                Ok(due.elapsed().as_micros() as u64)
            }));
        }
    }
    let mut recorded = latencies();
    for read in pending {
        recorded.saturating_record(read.await??);
    }
    Ok(recorded)
}
