//! How fast somebody may go on: a bucket that fills at a rate and holds a burst.

use std::time::{Duration, Instant};

/// What a message costs, and what is left.
pub(crate) struct Pace {
    /// When the bucket would be full again. Every message moves it on.
    full_at: Instant,
    per_message: Duration,
    burst: Duration,
}

impl Pace {
    pub(crate) fn new(per_second: u32, burst: u32, now: Instant) -> Pace {
        Pace::every(Duration::from_secs(1) / per_second.max(1), burst, now)
    }

    /// One message in so long a time.
    pub(crate) fn every(per_message: Duration, burst: u32, now: Instant) -> Pace {
        Pace { full_at: now, per_message, burst: per_message * burst.max(1) }
    }

    /// Whether no message is left now.
    pub(crate) fn is_used_up(&self, now: Instant) -> bool {
        self.full_at.max(now) + self.per_message > now + self.burst
    }

    /// Whether one more message is within the pace.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let within = !self.is_used_up(now);
        if within {
            self.full_at = self.full_at.max(now) + self.per_message;
        }
        within
    }

    /// Takes back a message that was allowed.
    pub(crate) fn give_back(&mut self) {
        self.full_at = self.full_at.checked_sub(self.per_message).unwrap_or(self.full_at);
    }

    /// Whether the bucket is full, as at the beginning.
    pub(crate) fn is_rested(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut pace = Pace::new(10, 5, start);
        assert_eq!((0..20).filter(|_| pace.allows(start)).count(), 5);
        let later = start + Duration::from_millis(250);
        assert_eq!((0..20).filter(|_| pace.allows(later)).count(), 2);
        let much_later = start + Duration::from_secs(60);
        assert_eq!((0..20).filter(|_| pace.allows(much_later)).count(), 5, "rest does not pile up");
    }
}
