//! Hits with an event each beside the same hits without.

use super::{MONSTERS, check_and_empty, last, place_monsters, strike};
use crate::measure::{Counts, core_nanos, nanos_per_operation, per_second, scattered};
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::Bench;
use anyhow::Result;
use emberkeep::games::world::Tenant;
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Scope, Store};
use emberkeep::redis::RedisEngine;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Callers at the same time on Redis.
const TASKS: u64 = 64;
/// The log has room for the hits of so long a sample.
const SAMPLE_MAX: Duration = Duration::from_secs(3);

/// In memory, one after the other on one core.
pub(crate) fn embedded(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let runtime = runtime()?;
    let scope = Store::new(Arc::new(Embedded::in_memory())).scope(Tenant(Uuid::new_v4()));
    runtime.block_on(place_monsters(&scope))?;
    let time = bench.sample.min(SAMPLE_MAX);
    let rate = |is_recorded: bool| {
        runtime.block_on(async {
            let (before, hits) = (last(&scope).await?, Cell::new(0));
            let nanos = nanos_per_operation(Counts::Core, time, async |number| {
                let random = scattered(number);
                scope.transact(move |tx| strike(tx, random, number as i64, is_recorded)).await?;
                hits.set(hits.get() + 1);
                Ok(())
            });
            let nanos = nanos.await?;
            check_and_empty(&scope, before, if is_recorded { hits.get() } else { 0 }).await?;
            anyhow::Ok(per_second(nanos))
        })
    };
    let (ours, peer) = bench.take_turns(name, "hits/s", || rate(true), || rate(false))?;
    let row = Row::new(name, "hits/s", &ours, &peer, Goal::RatioAtLeast(0.6));
    let note = format!("core time, {MONSTERS} monsters, in memory; the log is emptied between samples");
    Ok(vec![row.beside("the same hits without an event").note(note)])
}

/// On Redis, 64 callers on one connection.
pub(crate) fn redis(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    // On one thread, as the processes of the other rows: its core time is what a hit costs us.
    let runtime = runtime()?;
    let store = Store::new(runtime.block_on(RedisEngine::connect(peer.url()))?);
    let scope = store.scope(peer.tenant);
    runtime.block_on(place_monsters(&scope))?;
    let (time, costs) = (bench.sample.min(SAMPLE_MAX), Cell::new([0.0; 2]));
    let rate = |is_recorded: bool| {
        runtime.block_on(async {
            let before = last(&scope).await?;
            let (core_before, begun) = (core_nanos(), Instant::now());
            let hits = strike_until(&scope, begun + time, is_recorded).await?;
            let seconds = begun.elapsed().as_secs_f64();
            let core = core_nanos().zip(core_before).map_or(0, |(after, before)| after - before);
            let mut all = costs.get();
            all[usize::from(is_recorded)] = core as f64 / hits as f64 / 1e3;
            costs.set(all);
            check_and_empty(&scope, before, if is_recorded { hits } else { 0 }).await?;
            anyhow::Ok(hits as f64 / seconds)
        })
    };
    let (ours, plain) = bench.take_turns(name, "hits/s", || rate(true), || rate(false))?;
    peer.remove_monsters(MONSTERS)?;
    let [without, with] = costs.get();
    let row = Row::new(name, "hits/s", &ours, &plain, Goal::RatioAtLeast(0.6));
    let note = format!(
        "{TASKS} callers, {MONSTERS} monsters, Redis in memory; core µs a hit {with:.1}, without {without:.1}"
    );
    Ok(vec![row.beside(format!("the same hits without an event, {}", peer.name())).note(note)])
}

/// Hits of all callers until then.
async fn strike_until(scope: &Scope<Tenant>, until: Instant, is_recorded: bool) -> Result<u64> {
    let mut callers = JoinSet::new();
    for caller in 0..TASKS {
        let scope = scope.clone();
        callers.spawn(async move {
            let mut hits = 0;
            while Instant::now() < until {
                let random = scattered(caller << 40 | hits);
                scope.transact(move |tx| strike(tx, random, hits as i64, is_recorded)).await?;
                hits += 1;
            }
            anyhow::Ok(hits)
        });
    }
    let mut hits = 0;
    while let Some(done) = callers.join_next().await {
        hits += done??;
    }
    Ok(hits)
}
