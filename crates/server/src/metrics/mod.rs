//! Metrics in the Prometheus text format.
//!
//! Requests update plain atomics; a scrape reads them. An operation is a method and the pattern of a path,
//! never the path itself, so that the number of series is bounded.

mod darkages;
mod galaxy;
mod histogram;
mod history;
pub(crate) mod key_counts;
mod limit_counters;
mod text;

pub(crate) use text::Page;

use crate::history::HistoryTier;
use axum::http::Method;
pub(crate) use darkages::DarkAgesCounters;
use emberkeep_hot::engine::Stats;
use emberkeep_hot::store::OperationStats;
use galaxy::GalaxyCounters;
use histogram::Histogram;
use limit_counters::LimitCounters;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Metrics {
    routes: RwLock<HashMap<Box<str>, Route>>,
    /// Client messages over WebSocket by type; only known types, so they are few.
    messages: RwLock<HashMap<&'static str, Operation>>,
    /// Keys by family, from the last count.
    pub(crate) families: Mutex<BTreeMap<&'static str, u64>>,
    /// WebSockets that are open now.
    pub(crate) sockets: AtomicI64,
    /// Rooms with a WebSocket on this server.
    pub(crate) rooms: AtomicI64,
    /// Messages sent over WebSocket.
    pub(crate) messages_sent: AtomicU64,
    /// WebSockets that were closed because the client was too slow.
    pub(crate) sockets_too_slow: AtomicU64,
    pub(crate) limits: LimitCounters,
    pub(crate) darkages: DarkAgesCounters,
    pub(crate) galaxy: GalaxyCounters,
}

/// Methods that are counted by name. All others share one series, because clients can invent methods.
const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS];
const OTHER: &str = "other";

/// Operations of a path by method.
type Route = [OnceLock<Box<Operation>>; METHODS.len() + 1];

#[derive(Default)]
struct Operation {
    latency: Histogram,
    /// Failed calls by error code.
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Counts a request. After the first request of a pattern it takes only a shared lock and a few atomics.
    pub(crate) fn count(&self, method: &Method, path: &str, took: Duration, error: Option<&'static str>) {
        if let Some(route) = self.routes.read().get(path) {
            return count(route, method, took, error);
        }
        count(self.routes.write().entry(path.into()).or_default(), method, took, error);
    }

    /// Counts a client message over WebSocket.
    pub(crate) fn count_message(&self, kind: &'static str, took: Duration, error: Option<&'static str>) {
        if let Some(operation) = self.messages.read().get(kind) {
            return operation.count(took, error);
        }
        self.messages.write().entry(kind).or_default().count(took, error);
    }

    /// Counts a restart of a background task.
    pub(crate) fn count_restart(&self, task: &'static str) {
        self.limits.count_restart(task);
    }

    /// All metrics in the Prometheus text format.
    pub(crate) fn page(
        &self,
        stats: &Stats,
        operations: &[OperationStats],
        history: Option<&HistoryTier>,
    ) -> String {
        let mut page = Page::default();
        self.write_operations(&mut page);
        self.write_messages(&mut page);
        write_engine(stats, &mut page);
        write_named_transactions(operations, &mut page);
        page.family("emberkeep_keys_by_family", "gauge", "Keys of a family, from the last count");
        for (family, keys) in &*self.families.lock() {
            page.line("emberkeep_keys_by_family", &[("family", family)], *keys as f64);
        }
        let websocket_metrics = [
            ("emberkeep_sockets", "gauge", "Open WebSockets", self.sockets.load(Relaxed) as f64),
            (
                "emberkeep_rooms",
                "gauge",
                "Rooms with a WebSocket on this server",
                self.rooms.load(Relaxed) as f64,
            ),
            (
                "emberkeep_socket_messages_total",
                "counter",
                "Messages sent over WebSocket",
                self.messages_sent.load(Relaxed) as f64,
            ),
            (
                "emberkeep_sockets_too_slow_total",
                "counter",
                "WebSockets closed because the client was too slow",
                self.sockets_too_slow.load(Relaxed) as f64,
            ),
        ];
        for (name, kind, help, value) in websocket_metrics {
            page.single(name, kind, help, value);
        }
        self.darkages.write(&mut page);
        self.galaxy.write(&mut page);
        history::write(history, &mut page);
        self.limits.write(&mut page);
        page.text()
    }

    fn write_messages(&self, page: &mut Page) {
        let messages = self.messages.read();
        let sorted: BTreeMap<_, _> = messages.iter().collect();
        let help = "Time to handle a client message over WebSocket";
        page.family("emberkeep_socket_message_seconds", "histogram", help);
        for (kind, operation) in &sorted {
            operation.latency.write(page, "emberkeep_socket_message_seconds", &[("type", kind)]);
        }
        let help = "Client messages over WebSocket that failed";
        page.family("emberkeep_socket_message_errors_total", "counter", help);
        for (kind, operation) in &sorted {
            for (error, count) in &*operation.errors.lock() {
                let labels = [("type", **kind), ("error", *error)];
                page.line("emberkeep_socket_message_errors_total", &labels, *count as f64);
            }
        }
    }

    fn write_operations(&self, page: &mut Page) {
        let routes = self.routes.read();
        let mut operations: Vec<(&str, &str, &Operation)> = Vec::new();
        for (path, route) in &*routes {
            let names = METHODS.iter().map(Method::as_str).chain([OTHER]);
            let called = names.zip(route).filter_map(|(name, operation)| Some((name, operation.get()?)));
            operations.extend(called.map(|(method, operation)| (&**path, method, &**operation)));
        }
        operations.sort_unstable_by_key(|(path, method, _)| (*path, *method));
        let help = "Time from the arrival of a request to its response";
        page.family("emberkeep_request_seconds", "histogram", help);
        for (path, method, operation) in &operations {
            operation.latency.write(page, "emberkeep_request_seconds", &[("method", method), ("path", path)]);
        }
        let help = "Requests that failed, by error code";
        page.family("emberkeep_request_errors_total", "counter", help);
        for (path, method, operation) in &operations {
            for (error, count) in &*operation.errors.lock() {
                let labels = [("method", *method), ("path", *path), ("error", *error)];
                page.line("emberkeep_request_errors_total", &labels, *count as f64);
            }
        }
    }
}

fn count(route: &Route, method: &Method, took: Duration, error: Option<&'static str>) {
    let index = METHODS.iter().position(|known| known == method).unwrap_or(METHODS.len());
    route[index].get_or_init(Box::default).count(took, error);
}

impl Operation {
    fn count(&self, took: Duration, error: Option<&'static str>) {
        self.latency.record(took);
        if let Some(error) = error {
            *self.errors.lock().entry(error).or_default() += 1;
        }
    }
}

fn write_engine(stats: &Stats, page: &mut Page) {
    let counters = [
        ("committed", "Committed transactions", stats.committed),
        ("conflicts", "Retries of transactions after a conflict", stats.conflicts),
        ("combined_commits", "Commits that carried more than one transaction", stats.combined_commits),
        ("combined_transactions", "Transactions in those commits", stats.combined_transactions),
        ("commit_calls", "Calls to the backend for commits", stats.commit_calls),
        ("read_calls", "Calls to the backend for reads of transactions", stats.read_calls),
        ("lease_waits", "Commits that waited for the fairness lease of another process", stats.lease_waits),
        ("receipts_asked", "Commit receipts read after a lost reply", stats.receipts_asked),
        ("expired", "Expired keys", stats.expired),
    ];
    for (name, help, value) in counters {
        page.single(&format!("emberkeep_engine_{name}_total"), "counter", help, value as f64);
    }
    let gauges = [
        ("keys", "Keys of the embedded engine", stats.keys),
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

/// The series of transactions by name. The names are constants of the code, and the store bounds their number.
fn write_named_transactions(operations: &[OperationStats], page: &mut Page) {
    type Value = fn(&OperationStats) -> f64;
    let counters: [(&str, &str, Value); 5] = [
        ("calls", "Transactions of a name that ended", |one| one.calls as f64),
        ("runs", "Runs of their closures", |one| one.runs as f64),
        ("conflicts", "Runs that were repeated after a conflict", |one| one.conflicts as f64),
        ("round_trips", "Calls to the backend that they took part in", |one| one.round_trips as f64),
        ("seconds", "Time from the call of a transaction to its answer", |one| one.micros as f64 / 1e6),
    ];
    for (counter, help, value) in counters {
        let name = format!("emberkeep_transaction_{counter}_total");
        page.family(&name, "counter", help);
        for operation in operations {
            page.line(&name, &[("name", operation.name)], value(operation));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_methods_are_counted_as_one() {
        let metrics = Metrics::default();
        for name in ["PURGE", "BREW", "POST"] {
            let method = Method::from_bytes(name.as_bytes()).unwrap();
            metrics.count(&method, "/a", Duration::from_micros(70), Some("no_such_route"));
        }
        let page = metrics.page(&Stats::default(), &[], None);
        for line in [
            "emberkeep_request_seconds_count{method=\"POST\",path=\"/a\"} 1",
            "emberkeep_request_seconds_count{method=\"other\",path=\"/a\"} 2",
            "emberkeep_request_errors_total{method=\"other\",path=\"/a\",error=\"no_such_route\"} 2",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
        assert!(!page.contains("BREW"));
    }

    #[test]
    fn transactions_are_counted_by_name() {
        let bid = OperationStats { name: "bid", calls: 3, runs: 5, micros: 1_500_000, ..Default::default() };
        let page = Metrics::default().page(&Stats::default(), &[bid], None);
        for line in [
            "emberkeep_transaction_calls_total{name=\"bid\"} 3",
            "emberkeep_transaction_runs_total{name=\"bid\"} 5",
            "emberkeep_transaction_conflicts_total{name=\"bid\"} 0",
            "emberkeep_transaction_seconds_total{name=\"bid\"} 1.5",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
    }
}
