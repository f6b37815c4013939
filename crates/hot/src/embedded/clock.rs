//! The engine's clock: the system's, or one that a test sets. It never runs backwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The source of an embedded engine's time.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system's clock. If it is set back, the engine's time stands still until the clock has caught up.
    #[default]
    System,
    /// A clock that moves only when a test moves it.
    Manual(ManualClock),
}

/// A clock that a test sets, so that no test has to sleep.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `ms` since 1970.
    pub fn at(ms: i64) -> ManualClock {
        ManualClock(Arc::new(AtomicI64::new(ms)))
    }

    /// The time that it shows, in milliseconds since 1970.
    pub fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves the time on by `ms` milliseconds; what expires then is gone at once.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms as i64, Ordering::SeqCst);
    }

    /// Moves on to `ms`; an earlier time is ignored.
    pub fn set(&self, ms: i64) {
        self.0.fetch_max(ms, Ordering::SeqCst);
    }
}

/// A clock with the highest time it has shown.
#[derive(Debug)]
pub(super) struct Ticker {
    clock: Clock,
    last: AtomicI64,
}

impl Ticker {
    pub(super) fn new(clock: Clock) -> Ticker {
        Ticker { clock, last: AtomicI64::new(0) }
    }

    /// Milliseconds since 1970, never less than an earlier answer.
    #[inline]
    pub(super) fn now(&self) -> i64 {
        let shown = match &self.clock {
            Clock::Manual(manual) => return manual.now(),
            Clock::System => system_ms(),
        };
        // A load first: most calls fall into a millisecond that was shown before, and a store by every reader
        // would make the cores fight for this line.
        let last = self.last.load(Ordering::Relaxed);
        if shown > last { self.last.fetch_max(shown, Ordering::Relaxed).max(shown) } else { last }
    }
}

fn system_ms() -> i64 {
    // Not `as_millis`: that divides 128 bits, and every read of a key with a deadline comes by here.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() as i64 * 1_000 + i64::from(since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_forwards() {
        let manual = ManualClock::at(1_000);
        let ticker = Ticker::new(Clock::Manual(manual.clone()));
        assert_eq!(ticker.now(), 1_000);
        manual.advance(5);
        manual.set(900);
        assert_eq!(ticker.now(), 1_005);
        manual.set(2_000);
        assert_eq!(ticker.now(), 2_000);
    }

    #[test]
    fn the_system_clock_stands_still_rather_than_running_backwards() {
        let ticker = Ticker::new(Clock::System);
        let future = ticker.now() + 60_000;
        ticker.last.store(future, Ordering::SeqCst);
        assert_eq!(ticker.now(), future);
    }
}
