//! Figures: how long a tick waits while a snapshot is made, and how long a restore takes. They belong to a release build:
//! `cargo test --release -p emberkeep-snapshot-postgres --test figures -- --ignored --nocapture`

use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_snapshot::testing::{Ring, fresh_ring, keys_of, put_ships};
use emberkeep_snapshot::{FileStore, KeyChoice, Label, SnapshotStore, Snapshots};
use emberkeep_snapshot_postgres::PostgresStore;
use emberkeep_testkit::{block_on, postgres, redis, scratch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SHIPS: u32 = 10_000;
const TICK: Duration = Duration::from_millis(100);
const SNAPSHOTS: usize = 20;
/// Not a multiple of a tick, so that snapshots begin anywhere in one.
const PAUSE: Duration = Duration::from_millis(370);

/// How long ticks took, of those beside a snapshot and of the others, in the same seconds: what else the machine does
/// slows both.
#[derive(Default)]
struct Ticks {
    beside: Vec<Duration>,
    alone: Vec<Duration>,
}

/// Ticks until it is stopped.
async fn tick(hot: Store, ring: Ring, stop: Arc<AtomicBool>, running: Arc<AtomicUsize>) -> Ticks {
    let (begin, mut ticks) = (tokio::time::Instant::now(), Ticks::default());
    for number in 0u32.. {
        tokio::time::sleep_until(begin + TICK * number).await;
        let (before, started) = (running.load(Ordering::SeqCst), Instant::now());
        put_ships(&hot, &ring, 0..SHIPS, i64::from(number)).await;
        let took = started.elapsed();
        // Odd while a snapshot is made: it ran at the begin or the end of the tick, or in between.
        let is_beside = before % 2 == 1 || running.load(Ordering::SeqCst) != before;
        if is_beside { &mut ticks.beside } else { &mut ticks.alone }.push(took);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    ticks
}

/// Worst and median.
fn shown(all: &[Duration]) -> String {
    let mut all = all.to_vec();
    all.sort();
    let worst = all.last().copied().unwrap_or_default();
    let median = all.get(all.len() / 2).copied().unwrap_or_default();
    format!("{} worst {worst:.1?} median {median:.1?}", all.len())
}

async fn measure(name: &str, hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    put_ships(&hot, &ring, 0..SHIPS, 0).await;
    let (stop, running) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let ticking = tokio::spawn(tick(hot.clone(), ring.clone(), stop.clone(), running.clone()));
    let (mut taken, mut took) = (None, Vec::new());
    for _ in 0..SNAPSHOTS {
        tokio::time::sleep(PAUSE).await;
        let started = Instant::now();
        running.fetch_add(1, Ordering::SeqCst);
        taken = Some(snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot"));
        running.fetch_add(1, Ordering::SeqCst);
        took.push(started.elapsed());
    }
    stop.store(true, Ordering::Relaxed);
    let ticks = ticking.await.expect("no panic");
    let taken = taken.expect("some were made");
    assert_eq!(taken.keys, u64::from(SHIPS));
    put_ships(&hot, &ring, 0..SHIPS, -1).await;
    let started = Instant::now();
    let report =
        snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    let restored = started.elapsed();
    assert_eq!(report.changes.changed, u64::from(SHIPS));
    let (beside, alone, took) = (shown(&ticks.beside), shown(&ticks.alone), shown(&took));
    println!("{name}: ticks beside {beside}; alone {alone}; snapshots {took}; restore {restored:.1?}");
}

fn embedded() -> Store {
    Store::new(Arc::new(Embedded::in_memory()))
}

#[test]
#[ignore = "figures of a release build"]
fn ticks_and_restores_of_ten_thousand_ships() {
    let (scratch, Some(server), Some(redis)) = (scratch(), postgres(), redis()) else { return };
    block_on(async {
        let folder = || FileStore::open(scratch.path()).expect("a folder").shared();
        measure("embedded, folder", embedded(), folder()).await;
        let durable = Embedded::builder().data(scratch.join("data")).open().expect("a folder");
        measure("embedded with a journal, folder", Store::new(Arc::new(durable)), folder()).await;
        let url = server.fresh_database();
        let database = PostgresStore::connect(&url).await.expect("it is up").shared();
        measure("embedded, PostgreSQL", embedded(), database).await;
        let engine = RedisEngine::connect(&redis.fresh_db()).await.expect("it is up");
        measure("redis, folder", Store::new(engine), folder()).await;
    });
}
