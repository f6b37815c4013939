//! Latency of reads while an index of 100,000 entries is swept, half of them stale. In process and on Redis.
//!
//! The reader is an open loop, as in `expiry`. The peer is the same reader without a sweep.

use super::expiry::wait_until;
use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::Bench;
use crate::targets;
use anyhow::{Context, Result, ensure};
use emberkeep::games::monsters::{Monsters, field_key};
use emberkeep::games::world::Tenant;
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Error, Store};
use emberkeep::redis::RedisEngine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

const ENTRIES: u64 = 100_000;
const ENTRIES_QUICK: u64 = 20_000;
/// Entries that one transaction adds to the index.
const ENTRIES_PER_TRANSACTION: u64 = 100;
/// One in this many entries has a record.
const LIVING_EVERY: u64 = 2;
/// Time between two reads in process, and on Redis, where each takes a round trip.
const READ_EVERY_EMBEDDED: Duration = Duration::from_micros(100);
const READ_EVERY_REDIS: Duration = Duration::from_millis(1);
/// How long the reader runs without a sweep.
const BASELINE: Duration = Duration::from_secs(1);
/// Maximum number of reads of a run.
const READS_MAX: u32 = 2_000_000;
/// Pause of the sweep after each turn.
const PAUSE: Duration = Duration::from_micros(500);
/// Few, because filling the index takes longer than sweeping it.
const ROUNDS_MAX: usize = 3;

/// The store that holds the index.
#[derive(Clone)]
enum Backend {
    Embedded(Store),
    Redis(String),
}

impl Backend {
    /// A store of the caller's own: a connection belongs to the runtime that made it.
    async fn open(&self) -> Result<Store> {
        match self {
            Backend::Embedded(store) => Ok(store.clone()),
            Backend::Redis(url) => Ok(Store::new(RedisEngine::connect(url).await?)),
        }
    }

    fn every(&self) -> Duration {
        match self {
            Backend::Embedded(_) => READ_EVERY_EMBEDDED,
            Backend::Redis(_) => READ_EVERY_REDIS,
        }
    }
}

/// The reader's highest latency, in process.
pub(crate) fn embedded(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, || Backend::Embedded(Store::new(Arc::new(Embedded::in_memory()))))
}

/// The reader's highest latency, on Redis, over a connection of its own.
pub(crate) fn redis(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let url = bench.redis()?.url().to_owned();
    compare(bench, name, || Backend::Redis(url.clone()))
}

fn compare(bench: &mut Bench, name: &'static str, backend: impl Fn() -> Backend) -> Result<Vec<Row>> {
    let entries = if bench.quick { ENTRIES_QUICK } else { ENTRIES };
    let rounds = bench.rounds;
    bench.rounds = rounds.min(ROUNDS_MAX);
    let mut took = Duration::ZERO;
    let taken = bench.take_turns(
        name,
        "ms",
        || highest_latency(&backend(), entries, Some(&mut took)),
        || highest_latency(&backend(), entries / 10, None),
    );
    bench.rounds = rounds;
    let (ours, peer) = taken?;
    let row = Row::new(name, "ms", &ours, &peer, Goal::AtMost(5.0));
    let note = format!("highest latency of each run; the last sweep of {entries} entries took {took:.1?}");
    Ok(vec![row.beside("the same reader without a sweep").note(note)])
}

/// Runs the reader with a sweep, or without one.
fn highest_latency(backend: &Backend, entries: u64, took: Option<&mut Duration>) -> Result<f64> {
    let runtime = runtime()?;
    let tenant = Tenant(Uuid::new_v4());
    let store = runtime.block_on(backend.open())?;
    let monsters = Monsters::new(store.clone());
    runtime.block_on(fill(&store, tenant, entries))?;
    let over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (backend, over) = (backend.clone(), over.clone());
        let read = move || read(&backend, tenant, entries, &over);
        std::thread::Builder::new().name("reader".into()).spawn(read)?
    };
    let started = Instant::now();
    let swept = match took {
        Some(took) => {
            let swept = runtime.block_on(monsters.sweep().run(PAUSE));
            *took = started.elapsed();
            swept.map(drop)
        }
        None => {
            std::thread::sleep(BASELINE);
            Ok(())
        }
    };
    over.store(true, Ordering::Release);
    let waits = reader.join().ok().context("the reader panicked")??;
    swept?;
    runtime.block_on(check_and_clean(&store, &monsters, tenant, entries))?;
    Ok(waits.spread()[1])
}

/// Adds entries to one index, and records for some of them.
async fn fill(store: &Store, tenant: Tenant, entries: u64) -> Result<()> {
    let (scope, index) = (store.scope(tenant), field_key(&targets::monster(tenant, 0, 0).field()));
    for first in (0..entries).step_by(ENTRIES_PER_TRANSACTION as usize) {
        let index = index.clone();
        let transaction = scope.transact(move |tx| {
            for number in first..first + ENTRIES_PER_TRANSACTION {
                tx.sadd(&index, &targets::id(number))?;
                if number % LIVING_EVERY == 0 {
                    tx.put(&targets::key(number), &targets::monster(tenant, number, 0))?;
                }
            }
            Ok::<_, Error>(())
        });
        transaction.await?;
    }
    Ok(())
}

/// Reads on schedule until the sweep is over. Returns the latencies in milliseconds.
fn read(backend: &Backend, tenant: Tenant, entries: u64, over: &AtomicBool) -> Result<Samples> {
    let mut waits = Samples::default();
    runtime()?.block_on(async {
        let store = backend.open().await?;
        let scope = store.scope(tenant);
        let starts = Instant::now();
        for number in 0..READS_MAX {
            if over.load(Ordering::Acquire) {
                break;
            }
            let scheduled = starts + backend.every() * number;
            wait_until(scheduled);
            let one = u64::from(number) * 7_919 % (entries / LIVING_EVERY) * LIVING_EVERY;
            scope.get(&targets::key(one)).await?.context("a monster is gone")?;
            waits.push(scheduled.elapsed().as_secs_f64() * 1e3);
        }
        Ok(waits)
    })
}

/// Fails unless exactly the living monsters are listed.
async fn check_and_clean(store: &Store, monsters: &Monsters, tenant: Tenant, entries: u64) -> Result<()> {
    let field = targets::monster(tenant, 0, 0).field();
    let listed = monsters.in_field(tenant, field).await?.living.len() as u64;
    let entered = store.scope(tenant).scard(&field_key(&field)).await? as u64;
    let living = entries / LIVING_EVERY;
    ensure!((listed, entered) == (living, living), "{listed} of {living} listed, {entered} entries");
    monsters.teardown(tenant).await?;
    Ok(())
}
