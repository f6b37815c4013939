//! The store's clock: the system's, or one that a test sets. It never runs backwards.

use emberkeep_hot::embedded::Clock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock that runs: with the highest time it has shown.
#[derive(Debug, Default)]
pub struct Ticker {
    clock: Clock,
    last: AtomicI64,
}

impl Ticker {
    /// The time of this clock.
    pub fn new(clock: Clock) -> Ticker {
        Ticker { clock, last: AtomicI64::new(0) }
    }

    /// Milliseconds since 1970, never less than an earlier answer of the system's clock.
    pub fn now(&self) -> i64 {
        match &self.clock {
            Clock::Manual(manual) => manual.now(),
            Clock::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let shown = since.as_millis() as i64;
                self.last.fetch_max(shown, Ordering::Relaxed).max(shown)
            }
        }
    }
}
