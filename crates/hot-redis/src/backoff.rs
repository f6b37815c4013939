//! Exponential backoff between retries.

use crate::limits::{LEASE_POLL, LEASE_POLL_MAX, RETRY_PAUSE, RETRY_PAUSE_MAX};
use std::time::{Duration, Instant};

/// Pauses between retries: each twice as long as the one before, up to a maximum.
#[derive(Clone, Copy)]
pub(crate) struct Backoff {
    first: Duration,
    max: Duration,
}

impl Backoff {
    /// After an answer that proves "not executed".
    pub(crate) const RETRY: Backoff = Backoff { first: RETRY_PAUSE, max: RETRY_PAUSE_MAX };
    /// While the servers of a Cluster disagree: there is nothing to gain from a quick retry.
    pub(crate) const SLOW_RETRY: Backoff = Backoff { first: RETRY_PAUSE_MAX, max: RETRY_PAUSE_MAX };
    /// While another process has a fairness lease.
    pub(crate) const LEASE: Backoff = Backoff { first: LEASE_POLL, max: LEASE_POLL_MAX };

    /// The pause after so many retries.
    pub(crate) fn pause(self, retries: u32) -> Duration {
        (self.first * (1 << retries.min(16))).min(self.max)
    }

    /// Retries that end at a deadline.
    pub(crate) fn until(self, deadline: Instant) -> Retries {
        Retries { backoff: self, deadline, retries: 0 }
    }
}

/// A loop of retries.
pub(crate) struct Retries {
    backoff: Backoff,
    deadline: Instant,
    retries: u32,
}

impl Retries {
    /// Sleeps before the next retry. `false` = the deadline comes first; then it does not sleep.
    pub(crate) async fn pause(&mut self) -> bool {
        let pause = self.backoff.pause(self.retries);
        if Instant::now() + pause >= self.deadline {
            return false;
        }
        self.retries += 1;
        tokio::time::sleep(pause).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        assert_eq!(Backoff::RETRY.pause(0), RETRY_PAUSE);
        assert_eq!(Backoff::RETRY.pause(1), 2 * RETRY_PAUSE);
        assert_eq!(Backoff::RETRY.pause(u32::MAX), RETRY_PAUSE_MAX);
    }
}
