//! What the server counted, in Prometheus' text form.
//!
//! Counters are plain atomics on the way of a request, and are read when somebody asks. An operation is a method and the
//! pattern of its path, never the path itself, so that their number is bounded.

mod bounds;
mod histogram;
mod text;

pub(crate) use text::Page;

use axum::http::Method;
use bounds::Bounds;
use emberkeep_hot::engine::Stats;
use histogram::Histogram;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters of the server.
#[derive(Default)]
pub(crate) struct Metrics {
    routes: RwLock<HashMap<Box<str>, Route>>,
    /// Messages of clients through sockets, by their type. Types are those that we know, so there are few.
    messages: RwLock<HashMap<&'static str, Operation>>,
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
    /// What is bounded and supervised.
    pub(crate) bounds: Bounds,
}

/// Methods that are counted by name. All others are one: callers can make up as many as they like.
const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS];
const OTHER: &str = "other";

/// Counters of a path's operations, by method.
type Route = [OnceLock<Box<Operation>>; METHODS.len() + 1];

/// Counters of an operation.
#[derive(Default)]
struct Operation {
    latency: Histogram,
    /// By the stable word of the problem.
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Counts a call of a path's pattern. Patterns are ours, so there are few, and after the first call of each there is
    /// only a shared lock and an atomic or two.
    pub(crate) fn count(&self, method: &Method, path: &str, took: Duration, error: Option<&'static str>) {
        if let Some(route) = self.routes.read().get(path) {
            return count(route, method, took, error);
        }
        count(self.routes.write().entry(path.into()).or_default(), method, took, error);
    }

    /// Counts a message of a client through a socket, by its type.
    pub(crate) fn count_message(&self, kind: &'static str, took: Duration, error: Option<&'static str>) {
        if let Some(operation) = self.messages.read().get(kind) {
            return operation.count(took, error);
        }
        self.messages.write().entry(kind).or_default().count(took, error);
    }

    /// Counts a background task that was started again.
    pub(crate) fn count_restart(&self, task: &'static str) {
        self.bounds.count_restart(task);
    }

    /// All of it, as it is scraped.
    pub(crate) fn page(&self, stats: &Stats) -> String {
        let mut page = Page::default();
        self.operations_on(&mut page);
        self.messages_on(&mut page);
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
        self.bounds.write(&mut page);
        page.text()
    }

    fn messages_on(&self, page: &mut Page) {
        let messages = self.messages.read();
        let sorted: BTreeMap<_, _> = messages.iter().collect();
        let help = "Time from a client's message through a socket to what came of it";
        page.family("emberkeep_socket_message_seconds", "histogram", help);
        for (kind, operation) in &sorted {
            operation.latency.write(page, "emberkeep_socket_message_seconds", &[("type", kind)]);
        }
        let help = "Messages of clients that were answered with a problem";
        page.family("emberkeep_socket_message_errors_total", "counter", help);
        for (kind, operation) in &sorted {
            for (error, count) in &*operation.errors.lock() {
                let labels = [("type", **kind), ("error", *error)];
                page.line("emberkeep_socket_message_errors_total", &labels, *count as f64);
            }
        }
    }

    fn operations_on(&self, page: &mut Page) {
        let routes = self.routes.read();
        let mut operations: Vec<(&str, &str, &Operation)> = Vec::new();
        for (path, route) in &*routes {
            let names = METHODS.iter().map(Method::as_str).chain([OTHER]);
            let called = names.zip(route).filter_map(|(name, operation)| Some((name, operation.get()?)));
            operations.extend(called.map(|(method, operation)| (&**path, method, &**operation)));
        }
        operations.sort_unstable_by_key(|(path, method, _)| (*path, *method));
        let help = "Time from a request's arrival to its answer";
        page.family("emberkeep_request_seconds", "histogram", help);
        for (path, method, operation) in &operations {
            operation.latency.write(page, "emberkeep_request_seconds", &[("method", method), ("path", path)]);
        }
        let help = "Requests that were answered with a problem";
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
    let place = METHODS.iter().position(|known| known == method).unwrap_or(METHODS.len());
    route[place].get_or_init(Box::default).count(took, error);
}

impl Operation {
    fn count(&self, took: Duration, error: Option<&'static str>) {
        self.latency.record(took);
        if let Some(error) = error {
            *self.errors.lock().entry(error).or_default() += 1;
        }
    }
}

fn engine_on(stats: &Stats, page: &mut Page) {
    let counters = [
        ("committed", "Transactions that were committed", stats.committed),
        ("conflicts", "Runs of a transaction that were repeated", stats.conflicts),
        ("combined_commits", "Commits that carried more than one transaction", stats.combined_commits),
        ("combined_transactions", "Transactions in those commits", stats.combined_transactions),
        ("commit_calls", "Calls to the backend for commits", stats.commit_calls),
        ("read_calls", "Calls to the backend for reads of transactions", stats.read_calls),
        ("lease_waits", "Times a commit waited for another process' turn", stats.lease_waits),
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
        let page = metrics.page(&Stats::default());
        for line in [
            "emberkeep_request_seconds_count{method=\"POST\",path=\"/a\"} 1",
            "emberkeep_request_seconds_count{method=\"other\",path=\"/a\"} 2",
            "emberkeep_request_errors_total{method=\"other\",path=\"/a\",error=\"no_such_route\"} 2",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
        assert!(!page.contains("BREW"));
    }
}
