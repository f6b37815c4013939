//! Figures: how long a tick waits while a snapshot is made, and how long a restore takes. They belong to a release build:
//! `cargo test --release -p emberkeep-snapshot-postgres --test figures -- --ignored --nocapture`

use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_snapshot::testing::{Ring, fresh_ring, keys_of, put_ships};
use emberkeep_snapshot::{FileStore, KeyChoice, Label, SnapshotStore, Snapshots};
use emberkeep_snapshot_postgres::PostgresStore;
use emberkeep_testkit::{block_on, postgres, redis, scratch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SHIPS: u32 = 10_000;
const TICK: Duration = Duration::from_millis(100);

/// Ticks until it is stopped; how long each was late at its end, counted from its planned begin.
async fn tick(hot: Store, ring: Ring, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let (begin, mut late) = (tokio::time::Instant::now(), Vec::new());
    for number in 0u32.. {
        tokio::time::sleep_until(begin + TICK * number).await;
        put_ships(&hot, &ring, 0..SHIPS, i64::from(number)).await;
        late.push((begin + TICK * number).elapsed());
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    late
}

fn worst_and_median(mut all: Vec<Duration>) -> (Duration, Duration) {
    all.sort();
    (all[all.len() - 1], all[all.len() / 2])
}

async fn ticks_during(hot: &Store, ring: &Ring, work: impl Future<Output = ()>) -> (Duration, Duration) {
    let stop = Arc::new(AtomicBool::new(false));
    let ticking = tokio::spawn(tick(hot.clone(), ring.clone(), stop.clone()));
    work.await;
    stop.store(true, Ordering::Relaxed);
    worst_and_median(ticking.await.expect("no panic"))
}

async fn measure(name: &str, hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    put_ships(&hot, &ring, 0..SHIPS, 0).await;
    let alone = ticks_during(&hot, &ring, tokio::time::sleep(Duration::from_secs(4))).await;
    let (mut taken, mut took) = (None, Vec::new());
    let beside = ticks_during(&hot, &ring, async {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(6) {
            let started = Instant::now();
            taken = Some(snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot"));
            took.push(started.elapsed());
        }
    })
    .await;
    let taken = taken.expect("some were made");
    assert_eq!(taken.keys, u64::from(SHIPS));
    put_ships(&hot, &ring, 0..SHIPS, -1).await;
    let started = Instant::now();
    let report =
        snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    let restored = started.elapsed();
    assert_eq!(report.changes.changed, u64::from(SHIPS));
    let (worst, median) = worst_and_median(took.clone());
    println!(
        "{name}: tick alone worst {:.1?} median {:.1?}; beside {} snapshots worst {:.1?} median {:.1?}; \
         a snapshot worst {worst:.1?} median {median:.1?}; restore {restored:.1?}",
        alone.0,
        alone.1,
        took.len(),
        beside.0,
        beside.1
    );
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
