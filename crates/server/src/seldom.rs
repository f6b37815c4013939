//! Log lines of what may happen many times a second.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Logs at most once in a while. What is left out is counted in metrics.
pub(crate) struct Seldom {
    every: Duration,
    logged: Mutex<Option<Instant>>,
}

impl Seldom {
    pub(crate) const fn new(every: Duration) -> Seldom {
        Seldom { every, logged: Mutex::new(None) }
    }

    pub(crate) fn log(&self, line: impl FnOnce()) {
        let (mut logged, now) = (self.logged.lock(), Instant::now());
        if logged.is_none_or(|last| now.duration_since(last) >= self.every) {
            *logged = Some(now);
            line();
        }
    }
}
