//! The series of Galaxy's stream and presence.

use super::text::Page;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

#[derive(Default)]
pub(crate) struct GalaxyCounters {
    /// Open WebSockets to the stream.
    pub(crate) sockets: AtomicI64,
    /// Ticks of a system that were prepared for its watchers.
    pub(crate) frames: AtomicU64,
    /// Ticks that were sent as a whole.
    pub(crate) states: AtomicU64,
    /// Ticks that were sent as changes.
    pub(crate) deltas: AtomicU64,
    /// Failed reads of the present tick.
    pub(crate) feed_errors: AtomicU64,
    /// Failed changes of presence.
    pub(crate) presence_errors: AtomicU64,
    /// Connections of other gateways that this process closed, because their lease had ended.
    pub(crate) connections_swept: AtomicU64,
}

impl GalaxyCounters {
    pub(super) fn write(&self, page: &mut Page) {
        let sockets = self.sockets.load(Relaxed) as f64;
        page.single("emberkeep_galaxy_sockets", "gauge", "Open WebSockets to the stream of ticks", sockets);
        let counters = [
            ("frames", "Ticks of a system that were prepared for its watchers", &self.frames),
            ("states", "Ticks that were sent to a watcher as a whole", &self.states),
            ("deltas", "Ticks that were sent to a watcher as changes", &self.deltas),
            ("feed_errors", "Failed reads of the present tick for watchers", &self.feed_errors),
            (
                "presence_errors",
                "Failed changes or renewals of the presence of players",
                &self.presence_errors,
            ),
            (
                "connections_swept",
                "Connections that this process closed, because the lease of their gateway had ended",
                &self.connections_swept,
            ),
        ];
        for (name, help, value) in counters {
            page.single(
                &format!("emberkeep_galaxy_{name}_total"),
                "counter",
                help,
                value.load(Relaxed) as f64,
            );
        }
    }
}
