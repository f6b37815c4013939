//! What the server counted, in Prometheus' text form.
//!
//! Counters are plain atomics on the way of a request, and are read when somebody asks. An operation is a method and the
//! pattern of its path, never the path itself, so that their number is bounded.

mod histogram;
mod text;

pub(crate) use text::Page;

use emberkeep_hot::engine::Stats;
use histogram::Histogram;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A method and the pattern of a path.
type Name = (String, String);

/// Counters of the server.
#[derive(Default)]
pub(crate) struct Metrics {
    operations: RwLock<HashMap<Name, Arc<Operation>>>,
    /// Keys by family, as of the last census.
    pub(crate) families: Mutex<BTreeMap<&'static str, u64>>,
    /// Open sockets.
    pub(crate) sockets: AtomicI64,
    /// Rooms with a socket on this server.
    pub(crate) rooms: AtomicI64,
    /// Messages that left through sockets.
    pub(crate) messages_sent: AtomicU64,
    /// Sockets that were closed because they did not keep up.
    pub(crate) sockets_too_slow: AtomicU64,
}

/// Counters of an operation.
#[derive(Default)]
struct Operation {
    latency: Histogram,
    /// By the stable word of the problem.
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Counts a call.
    pub(crate) fn count(&self, method: &str, path: &str, took: Duration, error: Option<&'static str>) {
        let operation = self.operation(method, path);
        operation.latency.record(took);
        if let Some(error) = error {
            *operation.errors.lock().entry(error).or_default() += 1;
        }
    }

    fn operation(&self, method: &str, path: &str) -> Arc<Operation> {
        let name = (method.to_owned(), path.to_owned());
        if let Some(known) = self.operations.read().get(&name) {
            return known.clone();
        }
        self.operations.write().entry(name).or_default().clone()
    }

    /// All of it, as it is scraped.
    pub(crate) fn page(&self, stats: &Stats) -> String {
        let mut page = Page::default();
        self.operations_on(&mut page);
        engine_on(stats, &mut page);
        page.family("emberkeep_keys_by_family", "gauge", "Keys of a family, as of the last census");
        for (family, keys) in &*self.families.lock() {
            page.line("emberkeep_keys_by_family", &[("family", family)], *keys as f64);
        }
        let of_sockets = [
            ("emberkeep_sockets", "gauge", "Open sockets", self.sockets.load(Relaxed) as f64),
            (
                "emberkeep_rooms",
                "gauge",
                "Rooms with a socket on this server",
                self.rooms.load(Relaxed) as f64,
            ),
            (
                "emberkeep_socket_messages_total",
                "counter",
                "Messages that left through sockets",
                self.messages_sent.load(Relaxed) as f64,
            ),
            (
                "emberkeep_sockets_too_slow_total",
                "counter",
                "Sockets that were closed because they did not keep up",
                self.sockets_too_slow.load(Relaxed) as f64,
            ),
        ];
        for (name, kind, help, value) in of_sockets {
            page.single(name, kind, help, value);
        }
        page.text()
    }

    fn operations_on(&self, page: &mut Page) {
        let operations: BTreeMap<Name, Arc<Operation>> = self
            .operations
            .read()
            .iter()
            .map(|(name, operation)| (name.clone(), operation.clone()))
            .collect();
        let help = "Time from a request's arrival to its answer";
        page.family("emberkeep_request_seconds", "histogram", help);
        for ((method, path), operation) in &operations {
            operation.latency.write(page, "emberkeep_request_seconds", &[("method", method), ("path", path)]);
        }
        page.family(
            "emberkeep_request_errors_total",
            "counter",
            "Requests that were answered with a problem",
        );
        for ((method, path), operation) in &operations {
            for (error, count) in &*operation.errors.lock() {
                let labels = [("method", method.as_str()), ("path", path), ("error", error)];
                page.line("emberkeep_request_errors_total", &labels, *count as f64);
            }
        }
    }
}

fn engine_on(stats: &Stats, page: &mut Page) {
    let counters = [
        ("committed", "Steps that were committed", stats.committed),
        ("conflicts", "Runs of a step that were repeated", stats.conflicts),
        ("combined_commits", "Commits that carried more than one step", stats.combined_commits),
        ("combined_steps", "Steps in those commits", stats.combined_steps),
        ("commit_calls", "Calls to the backend for commits", stats.commit_calls),
        ("read_calls", "Calls to the backend for reads of steps", stats.read_calls),
        ("turn_waits", "Times a commit waited for another process' turn", stats.turn_waits),
        ("receipts_asked", "Lost replies whose outcome was asked for", stats.receipts_asked),
        ("expired", "Keys removed because their deadline passed", stats.expired),
    ];
    for (name, help, value) in counters {
        page.single(&format!("emberkeep_engine_{name}_total"), "counter", help, value as f64);
    }
    let gauges = [
        ("keys", "Living keys of the embedded engine", stats.keys),
        ("memory_bytes", "Bytes that keys and values use in the embedded engine", stats.memory_bytes),
        (
            "journal_pending_bytes",
            "Bytes of the journal that are not on disk yet",
            stats.journal_pending_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        page.single(&format!("emberkeep_engine_{name}"), "gauge", help, value as f64);
    }
}
