//! Totals: increments uniform over 100,000 players, each counted once, durable in the end.

use super::load::{CoreCost, PLAYERS, open, runtime};
use super::sqlite::{self, Sqlite};
use crate::row::{Goal, Row};
use crate::suite::Bench;
use anyhow::{Result, ensure};
use emberkeep_history::Source;
use emberkeep_history::testing::{PlayerStats, kills};
use std::time::Instant;

const PER_CALL: usize = 10_000;
const INCREMENTS: usize = 2_000_000;
const INCREMENTS_QUICK: usize = 200_000;
const PEER_INCREMENTS: usize = 200_000;

/// The players of a call.
pub(super) fn players(call: usize) -> Vec<i64> {
    let mut random = fastrand::Rng::with_seed(call as u64);
    (0..PER_CALL).map(|_| random.i64(0..PLAYERS)).collect()
}

/// Increments per second, with the time of a proper stop.
pub(crate) fn totals(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let folder = bench.folder(name);
    let runtime = runtime()?;
    let calls = if bench.quick { INCREMENTS_QUICK } else { INCREMENTS } / PER_CALL;
    let (mut round, costs) = (0, [CoreCost::default(), CoreCost::default()]);
    let (ours, peer) = bench.take_turns(
        name,
        "increments/s",
        || {
            round += 1;
            let (history, now) = open(&folder.join(format!("ours-{round}")))?;
            let source = Source::of_log("shard-1", "log:combat", "a");
            let work = async {
                let begun = Instant::now();
                for call in 0..calls {
                    let first = (call * PER_CALL) as u64 + 1;
                    let entries =
                        (first..).zip(players(call)).map(|(position, player)| kills(position, player, 1));
                    history.fold(&source, entries).await?;
                }
                let counted = history.totals::<PlayerStats>(players(0)[0]).await?;
                ensure!(counted.is_some_and(|totals| totals.sums.total_kills > 0), "a kill is missing");
                history.close().await?;
                let _ = now;
                Ok((calls * PER_CALL) as f64 / begun.elapsed().as_secs_f64())
            };
            costs[0].of(calls * PER_CALL, || runtime.block_on(work))
        },
        || {
            let mut connection =
                Sqlite::new(&folder.join(format!("sqlite-{}", fastrand::u64(..))))?.connect()?;
            let begun = Instant::now();
            costs[1].of(PEER_INCREMENTS, || {
                for call in 0..PEER_INCREMENTS / PER_CALL {
                    sqlite::add(&mut connection, (call * PER_CALL) as u64 + 1, &players(call), 0)?;
                }
                connection.pragma_update(None, "wal_checkpoint", "TRUNCATE")?;
                anyhow::Ok(())
            })?;
            Ok(PEER_INCREMENTS as f64 / begun.elapsed().as_secs_f64())
        },
    )?;
    let _ = std::fs::remove_dir_all(&folder);
    let row = Row::new(name, "increments/s", &ours, &peer, Goal::AtLeast(400_000.0));
    let [of_ours, of_peer] = costs.map(|cost| cost.micros());
    let note = format!(
        "{} of ours in calls of {PER_CALL}, {PEER_INCREMENTS} of the peer, each of ten sums, with the time of closing; core µs an increment {of_ours:.2}, the peer {of_peer:.2}",
        calls * PER_CALL
    );
    Ok(vec![row.beside("SQLite in WAL mode, synchronous = NORMAL, the same calls").note(note)])
}
