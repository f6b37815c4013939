//! Usage of the server's limits, refusals, and restarts of background tasks.

use super::text::Page;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

#[derive(Default)]
pub(crate) struct LimitCounters {
    /// Open connections, sockets included.
    pub(crate) connections: AtomicI64,
    /// Connections that were closed at once because of a limit.
    pub(crate) connections_refused: AtomicU64,
    /// Failed accepts, for example without a free file descriptor.
    pub(crate) accept_errors: AtomicU64,
    /// Bytes of partial request bodies.
    pub(crate) body_bytes: AtomicI64,
    /// Requests that were refused because of too many partial bodies.
    pub(crate) bodies_refused: AtomicU64,
    /// Requests that were refused because their address named too many missing rooms.
    pub(crate) room_codes_refused: AtomicU64,
    /// Log lines that could not be written, counted by the log.
    pub(crate) log_lines_dropped: OnceLock<Arc<AtomicU64>>,
    /// Restarts of background tasks by name.
    restarts: Mutex<BTreeMap<&'static str, u64>>,
}

impl LimitCounters {
    pub(super) fn count_restart(&self, task: &'static str) {
        *self.restarts.lock().entry(task).or_default() += 1;
    }

    pub(super) fn write(&self, page: &mut Page) {
        let gauges = [
            ("emberkeep_connections", "Open connections, WebSockets included", &self.connections),
            ("emberkeep_body_bytes", "Bytes of request bodies that have arrived in part", &self.body_bytes),
        ];
        for (name, help, value) in gauges {
            page.single(name, "gauge", help, value.load(Relaxed) as f64);
        }
        let counters = [
            (
                "connections_refused",
                "Connections closed at once because of a limit",
                &self.connections_refused,
            ),
            ("accept_errors", "Failed accepts of connections", &self.accept_errors),
            ("bodies_refused", "Requests refused because of too many partial bodies", &self.bodies_refused),
            (
                "room_codes_refused",
                "Requests refused because their address named too many missing rooms",
                &self.room_codes_refused,
            ),
        ];
        for (name, help, value) in counters {
            page.single(&format!("emberkeep_{name}_total"), "counter", help, value.load(Relaxed) as f64);
        }
        let dropped = self.log_lines_dropped.get().map_or(0, |dropped| dropped.load(Relaxed));
        let help = "Log lines that could not be written";
        page.single("emberkeep_log_lines_dropped_total", "counter", help, dropped as f64);
        page.family("emberkeep_task_restarts_total", "counter", "Restarts of background tasks");
        for (task, count) in &*self.restarts.lock() {
            page.line("emberkeep_task_restarts_total", &[("task", task)], *count as f64);
        }
    }
}
