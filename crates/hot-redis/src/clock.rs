//! The engine's one clock: the server's, followed by an offset to this machine's monotonic time.

use crate::limits::{CLOCK_DIFFERENCE_MAX, CLOCK_REFRESH};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// Follows the server's time.
pub(crate) struct Clock {
    start: Instant,
    /// Server's milliseconds at `start`, as last observed.
    offset_ms: AtomicI64,
    /// The latest time handed to a body: it never runs backwards within a process.
    latest_ms: AtomicI64,
    observed_ms: AtomicI64,
}

impl Clock {
    /// A clock that shows this time until it hears better.
    pub(crate) fn new(estimate_ms: i64) -> Clock {
        Clock {
            start: Instant::now(),
            offset_ms: AtomicI64::new(estimate_ms),
            latest_ms: AtomicI64::new(0),
            observed_ms: AtomicI64::new(i64::MIN / 2),
        }
    }

    fn elapsed_ms(&self) -> i64 {
        self.start.elapsed().as_millis() as i64
    }

    /// The server said what time it is, between `asked` and now: about half-way. Not more than a little is made of
    /// that, because a server that hung looked at its clock at the end of it.
    pub(crate) fn observe(&self, server_ms: i64, asked: Instant) {
        let elapsed = self.elapsed_ms();
        let back = (asked.elapsed() / 2).min(CLOCK_DIFFERENCE_MAX / 2).as_millis() as i64;
        self.offset_ms.store(server_ms + back - elapsed, Ordering::Relaxed);
        self.observed_ms.store(elapsed, Ordering::Relaxed);
    }

    /// What the server's clock probably shows; compared with it at the commit.
    pub(crate) fn estimate_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed) + self.elapsed_ms()
    }

    /// The time for a body: the estimate, but never before an earlier one. After a failover to a slower clock it
    /// stands still for a while; the estimate is what is compared, so steps go on.
    pub(crate) fn now_ms(&self) -> i64 {
        let estimate = self.estimate_ms();
        if self.is_borrowed() {
            // Perhaps far off: the commit will tell. If it refuses, nobody has seen it.
            return estimate;
        }
        self.latest_ms.fetch_max(estimate, Ordering::Relaxed).max(estimate)
    }

    /// Whether its time comes from another server: the partition's own has not told it yet.
    pub(crate) fn is_borrowed(&self) -> bool {
        self.observed_ms.load(Ordering::Relaxed) < 0
    }

    /// A commit whose bodies were shown this time was not refused: they have seen it, also if it was borrowed, and later
    /// ones see none before it.
    pub(crate) fn accepted(&self, shown_ms: i64) {
        self.latest_ms.fetch_max(shown_ms, Ordering::Relaxed);
    }

    /// Whether the server's time was not seen for a while.
    pub(crate) fn is_due(&self) -> bool {
        self.elapsed_ms() - self.observed_ms.load(Ordering::Relaxed) > CLOCK_REFRESH.as_millis() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_borrowed_time_binds_nobody() {
        let clock = Clock::new(5_000_000);
        assert!(clock.now_ms() >= 5_000_000);
        clock.observe(1_000_000, Instant::now());
        assert!(clock.now_ms() < 2_000_000);
    }

    #[test]
    fn a_borrowed_time_that_a_commit_accepted_is_not_taken_back() {
        let clock = Clock::new(1_000_050);
        let seen = clock.now_ms();
        assert!(clock.is_borrowed());
        clock.observe(1_000_000, Instant::now());
        clock.accepted(seen);
        assert!(clock.now_ms() >= seen, "the step that saw it has been answered");
        assert!(clock.estimate_ms() < seen, "the estimate follows the server");
    }

    #[test]
    fn time_follows_the_server_and_never_runs_backwards() {
        let clock = Clock::new(0);
        assert!(clock.is_due());
        clock.observe(1_000_000, Instant::now());
        assert!(!clock.is_due());
        let first = clock.now_ms();
        assert!((1_000_000..1_000_500).contains(&first));
        clock.observe(900_000, Instant::now());
        assert!(clock.estimate_ms() < 1_000_000, "the estimate follows the server");
        assert!(clock.now_ms() >= first, "bodies never see an earlier time");
    }
}
