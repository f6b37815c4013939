//! A token bucket: refills at a constant rate and holds at most a burst.

use std::time::{Duration, Instant};

/// Stores one instant instead of a count (GCRA): when the bucket will be full again. Every token moves it on.
pub(crate) struct TokenBucket {
    full_at: Instant,
    per_token: Duration,
    burst: Duration,
}

impl TokenBucket {
    /// A full bucket. A rate or burst of 0 counts as 1.
    pub(crate) fn new(per_second: u32, burst: u32, now: Instant) -> TokenBucket {
        TokenBucket::with_interval(Duration::from_secs(1) / per_second.max(1), burst, now)
    }

    /// A full bucket that gains one token per interval.
    pub(crate) fn with_interval(per_token: Duration, burst: u32, now: Instant) -> TokenBucket {
        TokenBucket { full_at: now, per_token, burst: per_token * burst.max(1) }
    }

    /// Takes a token; `false` if none is left.
    pub(crate) fn try_take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.per_token;
        let has_token = full_at <= now + self.burst;
        if has_token {
            self.full_at = full_at;
        }
        has_token
    }

    /// Returns a token that was taken.
    pub(crate) fn refund(&mut self) {
        self.full_at = self.full_at.checked_sub(self.per_token).unwrap_or(self.full_at);
    }

    /// A full bucket holds no information: it can be dropped and created again.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(10, 5, start);
        assert_eq!((0..20).filter(|_| bucket.try_take(start)).count(), 5);
        let later = start + Duration::from_millis(250);
        assert_eq!((0..20).filter(|_| bucket.try_take(later)).count(), 2);
        let much_later = start + Duration::from_secs(60);
        assert_eq!((0..20).filter(|_| bucket.try_take(much_later)).count(), 5, "idle time does not pile up");
    }
}
