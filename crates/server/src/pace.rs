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
        let per_message = Duration::from_secs(1) / per_second.max(1);
        Pace { full_at: now, per_message, burst: per_message * burst.max(1) }
    }

    /// Whether one more message is within the pace.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let next = self.full_at.max(now) + self.per_message;
        let within = next <= now + self.burst;
        if within {
            self.full_at = next;
        }
        within
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
