//! The store's time: milliseconds for TTLs, and growing microseconds for the order of writes.

use emberkeep_history::Clock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock with the highest times it has shown.
#[derive(Debug)]
pub(crate) struct StoreClock {
    clock: Clock,
    last_us: AtomicI64,
    last_write_us: AtomicI64,
}

impl StoreClock {
    pub(crate) fn new(clock: Clock) -> StoreClock {
        StoreClock { clock, last_us: AtomicI64::new(0), last_write_us: AtomicI64::new(0) }
    }

    /// Microseconds since 1970, never less than an earlier answer of the system's clock.
    fn now_us(&self) -> i64 {
        match &self.clock {
            Clock::Manual(manual) => manual.now().saturating_mul(1_000),
            Clock::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let shown = since.as_micros() as i64;
                self.last_us.fetch_max(shown, Ordering::Relaxed).max(shown)
            }
        }
    }

    /// Milliseconds since 1970, never less than an earlier answer of the system's clock.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_us() / 1_000
    }

    /// The timestamp of a write: later than that of every write before it in this process, so that a delete after an
    /// insert wins also within a microsecond.
    pub(crate) fn write_timestamp(&self) -> i64 {
        let now = self.now_us();
        let next = |last: i64| Some(now.max(last + 1));
        match self.last_write_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) | Err(last) => now.max(last + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_history::ManualClock;

    #[test]
    fn timestamps_of_writes_grow_although_the_clock_stands() {
        let clock = StoreClock::new(Clock::Manual(ManualClock::at(5)));
        assert_eq!([clock.write_timestamp(), clock.write_timestamp()], [5_000, 5_001]);
        assert_eq!(clock.now_ms(), 5);
    }
}
