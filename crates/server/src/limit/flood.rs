//! Flood control of one WebSocket connection, and the clock of its last frame.

use super::token_bucket::TokenBucket;
use crate::limits::*;
use std::time::{Duration, Instant};

/// What to do with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    /// Over the rate: answer with `rate_limited` and ignore it.
    Drop,
    /// Too many dropped frames: close the connection.
    Disconnect,
}

pub(crate) struct FloodControl {
    messages: TokenBucket,
    /// Dropped frames that are tolerated; refills with time.
    tolerance: TokenBucket,
    last_frame: Instant,
}

impl FloodControl {
    pub(crate) fn new(now: Instant) -> FloodControl {
        FloodControl {
            messages: TokenBucket::new(SOCKET_MESSAGES_PER_SECOND, SOCKET_MESSAGES_BURST, now),
            tolerance: TokenBucket::new(SOCKET_DROPS_FORGIVEN_PER_SECOND, SOCKET_DROPS_MAX, now),
            last_frame: now,
        }
    }

    /// Counts a frame of any kind: pings cost an answer, too.
    pub(crate) fn record_frame(&mut self, now: Instant) -> Verdict {
        self.last_frame = now;
        match self.messages.try_take(now) {
            true => Verdict::Accept,
            false if self.tolerance.try_take(now) => Verdict::Drop,
            false => Verdict::Disconnect,
        }
    }

    pub(crate) fn idle_for(&self, now: Instant) -> Duration {
        now.duration_since(self.last_frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occasional_bursts_are_forgiven_and_a_flood_is_not() {
        let (start, most) = (Instant::now(), SOCKET_MESSAGES_BURST + SOCKET_DROPS_MAX);
        let mut flood = FloodControl::new(start);
        for evening in 0..5 {
            let now = start + Duration::from_secs(evening * 600);
            let ended = (0..most).filter(|_| flood.record_frame(now) == Verdict::Disconnect).count();
            assert_eq!(ended, 0, "as much at once as ever, evening {evening}");
        }
        assert_eq!(flood.record_frame(start + Duration::from_secs(2_400)), Verdict::Disconnect);
    }
}
