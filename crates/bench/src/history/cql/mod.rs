//! CQL: our store beside the driver alone, on one Cassandra, each with a keyspace of its own.
//!
//! The driver sends the same statements in the same batches, as many at once, and decodes the same rows into types. It has
//! no checks of arguments, no bounds of what waits, no errors that say what to do. Cassandra runs on the same cores.

mod raw;
mod raw_totals;

use super::load::{PLAYERS, batch};
use super::totals;
use crate::measure::{Samples, process_core};
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::{Context, Result, ensure};
use emberkeep_history::testing::{CombatEvent, PlayerStats, kills, schema};
use emberkeep_history::{History, HistoryStore as _, Source};
use emberkeep_history_cql::schema::{LiveKeyspace, Replication};
use emberkeep_history_cql::{CqlOptions, CqlStore, SchemaMode};
use emberkeep_schema::{CqlLayout, Timestamp};
use emberkeep_testkit::CassandraCluster;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use raw::Raw;
use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;

/// Requests under way at most, on both sides. More let one node with secondary indexes run into its own timeouts.
const IN_FLIGHT_MAX: usize = 32;
/// Calls at the same time.
const CALLERS: usize = 4;
/// Calls of a sample: batches of a thousand events, or folds of a thousand increments.
const CALLS: usize = 12;
const CALLS_QUICK: usize = 4;
const READS: usize = 600;
const READS_QUICK: usize = 100;
/// Reads at the same time.
const READERS: usize = 16;
const RANGE_ROWS: usize = 100;
const ATTACKER_ROWS: usize = 20;
const FOLD_ENTRIES: usize = 1_000;

/// Ours and the driver, with tables of the same layout.
struct Pair {
    ours: History,
    raw: Raw,
    now: i64,
}

impl Pair {
    async fn open(cassandra: &CassandraCluster, layout: CqlLayout) -> Result<Pair> {
        let word = if layout == CqlLayout::Scaled { "scaled" } else { "document" };
        let options = || CqlOptions {
            schema: SchemaMode::Apply,
            in_flight_max: IN_FLIGHT_MAX,
            ..CqlOptions::default()
        };
        let mut stores = Vec::new();
        for side in ["ours", "raw"] {
            let url = cassandra.url(&format!("{side}_{word}"));
            LiveKeyspace::connect(&url).await?.create(&Replication::Simple(1)).await?;
            stores.push(CqlStore::connect(&format!("{url}?layout={word}"), schema(), options()).await?);
        }
        let raw = Raw::connect(&cassandra.addresses(), &format!("raw_{word}"), layout).await?;
        let ours = stores.swap_remove(0);
        Ok(Pair { now: ours.now(), ours: History::new(Arc::new(ours)), raw })
    }

    fn insert(&self, bench: &Bench, runtime: &Runtime, name: &str) -> Result<Row> {
        let calls = if bench.quick { CALLS_QUICK } else { CALLS };
        let ours = async |call: usize| {
            self.ours.insert_many(batch(self.now, call)).await?;
            Ok(())
        };
        let raw = async |call: usize| self.raw.insert(&batch(self.now, call)).await;
        let (samples, note) = compare(bench, runtime, name, "events/s", (calls, CALLERS, 1_000), ours, raw)?;
        Ok(row(name, "events/s", samples, format!("{note}; batches of 1000 by {CALLERS} callers")))
    }

    fn totals(&self, bench: &Bench, runtime: &Runtime, name: &str) -> Result<Row> {
        let calls = if bench.quick { 1 } else { CALLS / 3 };
        let source = |call: usize| Source::of_log("shard-1", "log:combat", &call.to_string());
        let players = |call: usize| totals::players(call).into_iter().take(FOLD_ENTRIES);
        let ours = async |call: usize| {
            let entries = (1..).zip(players(call)).map(|(position, player)| kills(position, player, 1));
            let folded = self.ours.fold(&source(call), entries.collect::<Vec<_>>()).await?;
            ensure!(folded.added == FOLD_ENTRIES, "{} of {FOLD_ENTRIES} were added", folded.added);
            Ok(())
        };
        let raw = async |call: usize| {
            let source = source(call);
            self.raw.fold(source.text(), &players(call).collect::<Vec<_>>()).await
        };
        let found = compare(bench, runtime, name, "increments/s", (calls, 1, FOLD_ENTRIES), ours, raw)?;
        let counted = runtime.block_on(self.ours.totals::<PlayerStats>(totals::players(0)[0]))?;
        ensure!(counted.is_some_and(|totals| totals.sums.total_kills > 0), "a kill is missing");
        Ok(row(name, "increments/s", found.0, format!("{}; folds of {FOLD_ENTRIES}", found.1)))
    }

    fn range(&self, bench: &Bench, runtime: &Runtime, name: &str) -> Result<Row> {
        let at = |number: usize| Timestamp(self.now - 3_600_000 + (number * 7_919 % 100) as i64);
        let ours = async |number: usize| {
            let at = at(number);
            let query = self.ours.range(CombatEvent::partition(at.day())).between(..=at).rows_max(RANGE_ROWS);
            let found = query.page(None).await?.into_rows()?.len();
            ensure!(found == RANGE_ROWS, "{found} rows of {RANGE_ROWS}");
            Ok(())
        };
        let raw = async |number: usize| {
            let found = self.raw.range(at(number), RANGE_ROWS).await?;
            ensure!(found == RANGE_ROWS, "{found} rows of {RANGE_ROWS} by the driver");
            Ok(())
        };
        self.reads(bench, runtime, name, "100 rows of a day", ours, raw)
    }

    fn by_attacker(&self, bench: &Bench, runtime: &Runtime, name: &str) -> Result<Row> {
        let day = Timestamp(self.now - 3_600_000).day();
        let attacker = |number: usize| (number as i64 * 7_919) % PLAYERS;
        let ours = async |number: usize| {
            let query = self.ours.range(CombatEvent::by_attacker(attacker(number), day));
            query.rows_max(ATTACKER_ROWS).page(None).await?.into_rows()?;
            Ok(())
        };
        let raw =
            async |number: usize| self.raw.by_attacker(attacker(number), day, ATTACKER_ROWS).await.map(drop);
        self.reads(bench, runtime, name, "20 rows of an attacker", ours, raw)
    }

    fn reads(
        &self,
        bench: &Bench,
        runtime: &Runtime,
        name: &str,
        what: &str,
        ours: impl AsyncFn(usize) -> Result<()>,
        raw: impl AsyncFn(usize) -> Result<()>,
    ) -> Result<Row> {
        let reads = if bench.quick { READS_QUICK } else { READS };
        let (samples, note) = compare(bench, runtime, name, "reads/s", (reads, READERS, 1), ours, raw)?;
        Ok(row(name, "reads/s", samples, format!("{note}; {what}, {READERS} readers")))
    }
}

/// The rows of all workloads on CQL, one after the other.
pub(crate) fn cql(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    say(&format!("{name}  starting Cassandra"));
    let cassandra = match CassandraCluster::start_one() {
        Ok(cassandra) => cassandra,
        Err(error) => {
            say(&format!("{name}  left out: {error}"));
            return Ok(Vec::new());
        }
    };
    let runtime = super::load::runtime()?;
    let open = |layout| runtime.block_on(Pair::open(&cassandra, layout)).context("cannot make the keyspaces");
    let (document, scaled) = (open(CqlLayout::Document)?, open(CqlLayout::Scaled)?);
    let of = |what: &str| format!("{name}-{what}");
    let rows = vec![
        document.insert(bench, &runtime, &of("insert-document"))?,
        scaled.insert(bench, &runtime, &of("insert-scaled"))?,
        document.totals(bench, &runtime, &of("totals"))?,
        document.range(bench, &runtime, &of("range"))?,
        scaled.by_attacker(bench, &runtime, &of("attacker"))?,
    ];
    runtime.block_on(async { document.ours.close().await.and(scaled.ours.close().await) })?;
    Ok(rows)
}

fn row(name: &str, unit: &'static str, (ours, raw): (Samples, Samples), note: String) -> Row {
    let row = Row::new(name, unit, &ours, &raw, Goal::RatioAtLeast(0.9));
    row.beside("the driver alone with the same statements on the same Cassandra 5, one node, LOCAL_QUORUM")
        .note(note)
}

/// Samples of both sides in turns after one that does not count, and what an operation cost this process.
fn compare(
    bench: &Bench,
    runtime: &Runtime,
    name: &str,
    unit: &str,
    (calls, at_once, per_call): (usize, usize, usize),
    ours: impl AsyncFn(usize) -> Result<()>,
    raw: impl AsyncFn(usize) -> Result<()>,
) -> Result<((Samples, Samples), String)> {
    let costs = [Cell::new(0.0), Cell::new(0.0)];
    let (mut ours_next, mut raw_next) = (0, 0);
    let mut of_ours = || {
        ours_next += calls;
        let work = all(ours_next - calls, calls, at_once, &ours);
        timed(runtime, (calls * per_call) as f64, &costs[0], work)
    };
    let mut of_raw = || {
        raw_next += calls;
        let work = all(raw_next - calls, calls, at_once, &raw);
        timed(runtime, (calls * per_call) as f64, &costs[1], work)
    };
    // A server in Java is slow until it has compiled what it does.
    of_raw()?;
    of_ours()?;
    of_raw()?;
    of_ours()?;
    costs.iter().for_each(|cost| cost.set(0.0));
    let samples = bench.take_turns(name, unit, of_ours, of_raw)?;
    let each = |cost: &Cell<f64>| cost.get() / bench.rounds as f64;
    Ok((
        samples,
        format!("core µs each in this process {:.1}, the driver {:.1}", each(&costs[0]), each(&costs[1])),
    ))
}

async fn all(
    first: usize,
    calls: usize,
    at_once: usize,
    call: &impl AsyncFn(usize) -> Result<()>,
) -> Result<()> {
    stream::iter(first..first + calls)
        .map(|number| call(number))
        .buffer_unordered(at_once)
        .try_collect::<()>()
        .await
}

/// Operations per second; adds what each cost to `cost`.
fn timed(
    runtime: &Runtime,
    count: f64,
    cost: &Cell<f64>,
    work: impl Future<Output = Result<()>>,
) -> Result<f64> {
    let (core, begun) = (process_core(), Instant::now());
    runtime.block_on(work)?;
    let seconds = begun.elapsed().as_secs_f64();
    cost.set(cost.get() + (process_core() - core).as_secs_f64() * 1e6 / count);
    Ok(count / seconds)
}
