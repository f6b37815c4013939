//! Three nodes, three replicas, LOCAL_QUORUM: one node is killed, then one hangs, while rows and totals are written.

mod cassandra;

use emberkeep_history::testing::{CombatEvent, PlayerStats, event, kills, schema};
use emberkeep_history::{History, Source};
use emberkeep_history_cql::CqlStore;
use emberkeep_history_cql::limits::REQUEST_TIMEOUT_DEFAULT;
use emberkeep_history_cql::schema::{LiveKeyspace, Replication};
use emberkeep_testkit::{cassandra_of_three, report};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u64 = 8;
const ROWS_A_CALL: u64 = 20;
/// How long each phase lasts.
const PHASE: Duration = Duration::from_secs(6);
/// No call waits longer than its request may take; the rest is for a machine that does other things.
const CALL_MAX: Duration = Duration::from_secs(REQUEST_TIMEOUT_DEFAULT.as_secs() + 2);

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    errors: AtomicU64,
    slowest_us: AtomicU64,
}

impl Counters {
    fn add(&self, took: Duration, is_ok: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(!is_ok), Ordering::Relaxed);
        self.slowest_us.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
    }

    /// Calls, errors and the slowest call since the last time.
    fn take(&self) -> (u64, u64, Duration) {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        (take(&self.calls), take(&self.errors), Duration::from_micros(take(&self.slowest_us)))
    }
}

/// Writes rows of an attacker of its own until the end; returns how many calls were acknowledged.
async fn write_rows(history: History, writer: u64, end: Arc<AtomicBool>, counters: Arc<Counters>) -> u64 {
    let mut call = 0;
    while !end.load(Ordering::Relaxed) {
        let id = |n: u64| u128::from(writer) << 64 | u128::from(call * ROWS_A_CALL + n);
        let rows: Vec<_> = (0..ROWS_A_CALL)
            .map(|n| event(writer as i64, (id(n) as u64 % 3_600_000) as i64, id(n)))
            .collect();
        let began = Instant::now();
        let written = history.insert_many(rows).await;
        counters.add(began.elapsed(), written.is_ok());
        // What was not acknowledged is written again: rows overwrite themselves.
        call += u64::from(written.is_ok());
    }
    call
}

/// Adds one kill after the other to a player; an error is delivered again.
async fn fold_kills(history: History, end: Arc<AtomicBool>, counters: Arc<Counters>) -> u64 {
    let (source, mut position) = (Source::of_log("shard", "log", "a"), 1);
    while !end.load(Ordering::Relaxed) {
        let began = Instant::now();
        let folded = history.fold(&source, [kills(position, 7, 1)]).await;
        counters.add(began.elapsed(), folded.is_ok());
        position += u64::from(folded.is_ok());
    }
    position - 1
}

async fn all_rows(history: &History, writer: u64) -> Vec<CombatEvent> {
    let day = event(0, 0, 0).timestamp.day();
    let query = history.range(CombatEvent::by_attacker(writer as i64, day)).rows_max(1_000);
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = query.page(after.as_ref()).await.expect("two of three nodes are there");
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_and_a_hung_node_lose_and_double_nothing() {
    let Some(nodes) = cassandra_of_three() else { return };
    let url = nodes.url("faults");
    let replication = Replication::DataCentres(vec![("datacenter1".into(), 3)]);
    LiveKeyspace::connect(&url).await.unwrap().create(&replication).await.unwrap();
    let url = url + "?layout=scaled&dc=datacenter1";
    let store = CqlStore::connect(&url, schema(), cassandra::options()).await.unwrap();
    let history = History::new(Arc::new(store));

    let (end, counters) = (Arc::new(AtomicBool::new(false)), Arc::new(Counters::default()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_rows(history.clone(), writer, end.clone(), counters.clone())))
        .collect();
    let folder = tokio::spawn(fold_kills(history.clone(), end.clone(), counters.clone()));
    let phase = |name: &'static str| {
        let (calls, errors, slowest) = counters.take();
        report!("history on Cassandra, {name}: {calls} calls, {errors} errors, slowest {slowest:.1?}");
        assert!(slowest < CALL_MAX, "{name}: a call took {slowest:?}");
        assert!(calls > errors, "{name}: nothing was acknowledged");
    };

    tokio::time::sleep(PHASE).await;
    phase("three nodes");
    nodes.kill9(2);
    tokio::time::sleep(PHASE).await;
    phase("one of three killed");
    tokio::task::block_in_place(|| nodes.restart(2)).unwrap();
    phase("it starts again");
    nodes.pause(1);
    tokio::time::sleep(PHASE).await;
    phase("one of three hangs");
    nodes.resume(1);
    tokio::time::sleep(PHASE / 2).await;
    phase("it goes on");
    end.store(true, Ordering::Relaxed);

    let (mut acknowledged, mut unacknowledged) = (0, 0);
    for (writer, task) in writers.into_iter().enumerate() {
        let calls = task.await.unwrap();
        let rows = all_rows(&history, writer as u64).await;
        let ids: HashSet<_> = rows.iter().map(|row| row.event_id).collect();
        assert_eq!(ids.len(), rows.len(), "no row is there twice");
        let of_writer = |n: u64| event(writer as i64, 0, (writer as u128) << 64 | u128::from(n)).event_id;
        let missing = (0..calls * ROWS_A_CALL).filter(|n| !ids.contains(&of_writer(*n))).count();
        assert_eq!(missing, 0, "every acknowledged row is there");
        acknowledged += calls * ROWS_A_CALL;
        unacknowledged += rows.len() as u64 - calls * ROWS_A_CALL;
    }
    let folded = folder.await.unwrap();
    let totals = history.totals::<PlayerStats>(7).await.unwrap().unwrap();
    let extra = totals.sums.total_kills - folded as i64;
    assert!((0..=1).contains(&extra), "{folded} acknowledged, {} counted", totals.sums.total_kills);
    report!(
        "history on Cassandra, a node killed and a node hung: {acknowledged} rows acknowledged, 0 missing, 0 doubled, {unacknowledged} stored without an answer; {folded} kills folded, {} counted",
        totals.sums.total_kills
    );
}
