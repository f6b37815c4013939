//! How fast a connection may speak, and what becomes of one that is faster.

use crate::limits::*;
use crate::pace::Pace;
use std::time::{Duration, Instant};

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
