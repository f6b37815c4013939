//! What is bounded and supervised: how much of each bound is in use, and how often it refused.

use super::text::Page;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Counters of the server's own bounds.
#[derive(Default)]
pub(crate) struct Bounds {
    /// Open connections, sockets included.
    pub(crate) connections: AtomicI64,
    /// Connections that were closed at once because there were too many.
    pub(crate) connections_refused: AtomicU64,
    /// Connections that could not be accepted, such as for want of file descriptors.
    pub(crate) accept_errors: AtomicU64,
    /// Bytes of request bodies that have arrived in part.
    pub(crate) body_bytes: AtomicI64,
    /// Requests that were refused because too many bytes of bodies were waiting.
    pub(crate) bodies_refused: AtomicU64,
    /// Calls that were refused because their address named too many rooms that do not exist.
    pub(crate) room_codes_refused: AtomicU64,
    /// Lines that the log could not write, counted by the log.
    pub(crate) log_lines_dropped: OnceLock<Arc<AtomicU64>>,
    /// Background tasks that were started again, by name.
    restarts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Bounds {
    pub(super) fn count_restart(&self, task: &'static str) {
        *self.restarts.lock().entry(task).or_default() += 1;
    }

    pub(super) fn write(&self, page: &mut Page) {
        let gauges = [
            ("emberkeep_connections", "Open connections, sockets included", &self.connections),
            (
                "emberkeep_body_bytes",
                "Bytes of request bodies of which a part is still to come",
                &self.body_bytes,
            ),
        ];
        for (name, help, value) in gauges {
            page.single(name, "gauge", help, value.load(Relaxed) as f64);
        }
        let counters = [
            ("connections_refused", "Connections closed at once: too many", &self.connections_refused),
            ("accept_errors", "Connections that could not be accepted", &self.accept_errors),
            ("bodies_refused", "Requests refused: too many bytes of bodies waited", &self.bodies_refused),
            (
                "room_codes_refused",
                "Calls refused: their address named too many missing rooms",
                &self.room_codes_refused,
            ),
        ];
        for (name, help, value) in counters {
            page.single(&format!("emberkeep_{name}_total"), "counter", help, value.load(Relaxed) as f64);
        }
        let dropped = self.log_lines_dropped.get().map_or(0, |dropped| dropped.load(Relaxed));
        let help = "Lines of the log that could not be written";
        page.single("emberkeep_log_lines_dropped_total", "counter", help, dropped as f64);
        page.family("emberkeep_task_restarts_total", "counter", "Background tasks that were started again");
        for (task, count) in &*self.restarts.lock() {
            page.line("emberkeep_task_restarts_total", &[("task", task)], *count as f64);
        }
    }
}
