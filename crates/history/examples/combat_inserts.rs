//! Measures inserts of combat events with three lookups, in batches of 1,000, on the embedded store.
//!
//! `cargo run --release -p emberkeep-history --features testing --example combat_inserts -- 1000000`

use emberkeep_history::embedded::Options;
use emberkeep_history::testing::{CombatEvent, event, kills, schema};
use emberkeep_history::{Embedded, History, Source};
use emberkeep_schema::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const BATCH_ROWS: usize = 1_000;
const PLAYERS: i64 = 100_000;

fn percentile(sorted: &[Duration], per_mille: usize) -> Duration {
    sorted[(sorted.len() * per_mille / 1_000).min(sorted.len() - 1)]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(200_000), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("emberkeep-history-inserts-{}", std::process::id()));
    let history = History::new(Arc::new(Embedded::open(&folder, schema(), Options::default())?));
    let now = history.store().now();
    let (mut numbers, mut times) = (fastrand::Rng::with_seed(1), Vec::new());
    let begun = Instant::now();
    for batch in 0..count / BATCH_ROWS {
        let rows = (0..BATCH_ROWS).map(|n| CombatEvent {
            timestamp: Timestamp(now - 60_000 + (batch * BATCH_ROWS + n) as i64 / 100),
            event_id: Uuid::from_u128(numbers.u128(..)),
            target_id: numbers.i64(0..PLAYERS),
            zone_id: numbers.i32(0..200),
            ability_name: Some("fireball".into()),
            ..event(numbers.i64(0..PLAYERS), 0, 0)
        });
        let rows: Vec<_> = rows.collect();
        let sent = Instant::now();
        history.insert_many(rows).await?;
        times.push(sent.elapsed());
    }
    let took = begun.elapsed();
    times.sort_unstable();
    println!(
        "inserts: {:.0} rows/s; batch of {BATCH_ROWS}: p50 {:?}, p99 {:?}, max {:?}",
        count as f64 / took.as_secs_f64(),
        percentile(&times, 500),
        percentile(&times, 990),
        times[times.len() - 1],
    );
    let source = Source::of_log("s", "l", "i");
    let begun = Instant::now();
    for batch in 0..count / 10_000 {
        let first = batch as u64 * 10_000 + 1;
        let entries: Vec<_> = (first..first + 10_000).map(|p| kills(p, numbers.i64(0..PLAYERS), 1)).collect();
        history.fold(&source, entries).await?;
    }
    println!(
        "totals: {:.0} increments/s over {PLAYERS} players",
        count as f64 / begun.elapsed().as_secs_f64()
    );
    let mut reads = Vec::new();
    for _ in 0..1_000 {
        let rows = CombatEvent::by_attacker(numbers.i64(0..PLAYERS), Timestamp(now).day());
        let sent = Instant::now();
        history.range(rows).rows_max(20).page(None).await?;
        reads.push(sent.elapsed());
    }
    reads.sort_unstable();
    println!("by attacker, 20 rows: p50 {:?}, p99 {:?}", percentile(&reads, 500), percentile(&reads, 990));
    history.close().await?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
