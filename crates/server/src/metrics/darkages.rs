//! The series of DarkAges' background work and streams.

use super::text::Page;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

#[derive(Default)]
pub(crate) struct DarkAgesCounters {
    /// Expired sessions that this process closed into history.
    pub(crate) sessions_closed: AtomicU64,
    /// Players that this process sent back, because no zone server accepted them.
    pub(crate) hand_offs_returned: AtomicU64,
    /// Players that this process brought back, because a failover had lost them where they went.
    pub(crate) players_restored: AtomicU64,
    /// Players that this process logged out, because a failover had left nothing of them.
    pub(crate) players_lost: AtomicU64,
    /// Passes of the sweep that failed.
    pub(crate) sweep_errors: AtomicU64,
    /// Sessions, arrivals and entries of the directory that failed in a pass.
    pub(crate) sweep_failed: AtomicU64,
    /// Logins without a look at the profile.
    pub(crate) logins_unchecked: AtomicU64,
    /// Open streams of zone channels.
    pub(crate) streams: AtomicI64,
    /// Messages sent to streams.
    pub(crate) stream_messages: AtomicU64,
    /// Gaps that streams were told of.
    pub(crate) stream_gaps: AtomicU64,
}

impl DarkAgesCounters {
    pub(super) fn write(&self, page: &mut Page) {
        let series = [
            (
                "sessions_closed_total",
                "counter",
                "Expired sessions that this process closed into history",
                self.sessions_closed.load(Relaxed) as f64,
            ),
            (
                "hand_offs_returned_total",
                "counter",
                "Players that this process sent back to the shard that they left: no zone server accepted them",
                self.hand_offs_returned.load(Relaxed) as f64,
            ),
            (
                "players_restored_total",
                "counter",
                "Players that this process brought back to the shard that they left: a failover had lost them where they went",
                self.players_restored.load(Relaxed) as f64,
            ),
            (
                "players_lost_total",
                "counter",
                "Players that this process logged out: a failover had left nothing of them but their entry",
                self.players_lost.load(Relaxed) as f64,
            ),
            (
                "sweep_errors_total",
                "counter",
                "Passes over expired sessions or hand-offs that failed",
                self.sweep_errors.load(Relaxed) as f64,
            ),
            (
                "sweep_failed_total",
                "counter",
                "Sessions, arrivals and entries of the directory that failed in a pass, and are tried again",
                self.sweep_failed.load(Relaxed) as f64,
            ),
            (
                "logins_unchecked_total",
                "counter",
                "Logins whose profile could not be read or written: history was away, so a ban was not seen or the login not noted",
                self.logins_unchecked.load(Relaxed) as f64,
            ),
            ("streams", "gauge", "Open streams of zone channels", self.streams.load(Relaxed) as f64),
            (
                "stream_messages_total",
                "counter",
                "Messages sent to streams of zone channels",
                self.stream_messages.load(Relaxed) as f64,
            ),
            (
                "stream_gaps_total",
                "counter",
                "Gaps in streams of zone channels: the client was too slow, or the store's connection broke",
                self.stream_gaps.load(Relaxed) as f64,
            ),
        ];
        for (name, kind, help, value) in series {
            page.single(&format!("emberkeep_darkages_{name}"), kind, help, value);
        }
    }
}
