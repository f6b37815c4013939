//! How fast a connection may speak, and what becomes of one that is faster.

use crate::limits::*;
use std::time::{Duration, Instant};

/// A bucket that fills at a rate and holds a burst: what a message costs, and what is left.
struct Pace {
    /// When the bucket would be full again. Every message moves it on.
    full_at: Instant,
    per_message: Duration,
    burst: Duration,
}

impl Pace {
    fn new(per_second: u32, burst: u32, now: Instant) -> Pace {
        let per_message = Duration::from_secs(1) / per_second.max(1);
        Pace { full_at: now, per_message, burst: per_message * burst.max(1) }
    }

    /// Whether one more message is within the pace.
    fn allows(&mut self, now: Instant) -> bool {
        let next = self.full_at.max(now) + self.per_message;
        let within = next <= now + self.burst;
        if within {
            self.full_at = next;
        }
        within
    }
}

/// Whether a frame is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heed {
    Yes,
    /// It came too soon.
    No,
    /// Too many came too soon.
    End,
}

/// How a client behaves.
pub(super) struct Manners {
    pace: Pace,
    /// How often it may be too fast; forgiven with time.
    patience: Pace,
    heard: Instant,
}

impl Manners {
    pub(super) fn new(now: Instant) -> Manners {
        Manners {
            pace: Pace::new(SOCKET_MESSAGES_PER_SECOND, SOCKET_MESSAGES_BURST, now),
            patience: Pace::new(SOCKET_OVER_PACE_FORGIVEN_PER_SECOND, SOCKET_OVER_PACE_MAX, now),
            heard: now,
        }
    }

    /// A frame came, of whichever kind: pings are answered, too.
    pub(super) fn hear(&mut self, now: Instant) -> Heed {
        self.heard = now;
        match self.pace.allows(now) {
            true => Heed::Yes,
            false if self.patience.allows(now) => Heed::No,
            false => Heed::End,
        }
    }

    /// How long it has been since the last frame.
    pub(super) fn silent_for(&self, now: Instant) -> Duration {
        now.duration_since(self.heard)
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

    #[test]
    fn who_is_too_fast_now_and_then_is_forgiven_and_a_flood_is_not() {
        let (start, most) = (Instant::now(), SOCKET_MESSAGES_BURST + SOCKET_OVER_PACE_MAX);
        let mut manners = Manners::new(start);
        for evening in 0..5 {
            let now = start + Duration::from_secs(evening * 600);
            let ended = (0..most).filter(|_| manners.hear(now) == Heed::End).count();
            assert_eq!(ended, 0, "as much at once as ever, evening {evening}");
        }
        assert_eq!(manners.hear(start + Duration::from_secs(2_400)), Heed::End);
    }
}
