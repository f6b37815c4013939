//! What a consumer reports: how far it is behind, and what it did.

use crate::delivery::ConsumerStats;
use crate::limits::LAG_SAMPLES_MAX;
use emberkeep_schema::Timestamp;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What waits in a log, by [`Consumer::lag`](super::Consumer::lag).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLag {
    /// The log: partition and key.
    pub log: String,
    /// Entries that are in the log, or in the spool of the consumer, and not acknowledged in history.
    pub entries: u64,
    /// When the oldest of them happened, by its projection; `None` if nothing waits or its projection names no time.
    pub oldest: Option<Timestamp>,
    /// The acknowledged entry is not in the log: a failover, a restore or a removal lost entries.
    pub is_set_back: bool,
}

#[derive(Debug, Default)]
struct State {
    stats: ConsumerStats,
    /// When the log was first seen to reach a sequence, oldest first.
    seen: VecDeque<(u64, Instant)>,
}

/// Shared by a consumer and those who read its counters.
#[derive(Debug, Default)]
pub(super) struct Lag(Mutex<State>);

impl Lag {
    /// The log ends at `last`; `waiting` entries of it are not acknowledged.
    pub(super) fn observe(&self, last: u64, waiting: u64) {
        self.observe_at(last, waiting, Instant::now());
    }

    fn observe_at(&self, last: u64, waiting: u64, now: Instant) {
        let mut state = self.0.lock();
        let state = &mut *state;
        state.stats.lag_entries = waiting;
        let acknowledged = last - waiting.min(last);
        state.seen.retain(|(reached, _)| (acknowledged + 1..=last).contains(reached));
        let is_full = state.seen.len() >= LAG_SAMPLES_MAX;
        match state.seen.back_mut() {
            Some((reached, _)) if *reached == last => {}
            // The newest entries count as old as those before them.
            Some((reached, _)) if is_full => *reached = last,
            _ if waiting > 0 => state.seen.push_back((last, now)),
            _ => {}
        }
    }

    /// Another consumer has the lease.
    pub(super) fn clear(&self) {
        let mut state = self.0.lock();
        state.stats.lag_entries = 0;
        state.seen.clear();
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut ConsumerStats)) {
        change(&mut self.0.lock().stats);
    }

    pub(super) fn stats(&self) -> ConsumerStats {
        self.stats_at(Instant::now())
    }

    fn stats_at(&self, now: Instant) -> ConsumerStats {
        let state = self.0.lock();
        let oldest_age = state.seen.front().map_or(Duration::ZERO, |(_, since)| now.duration_since(*since));
        ConsumerStats { oldest_age, ..state.stats.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_that_of_the_oldest_entry_that_waits() {
        let (lag, begun) = (Lag::default(), Instant::now());
        let second = |n| begun + Duration::from_secs(n);
        let found = |n| (lag.stats_at(second(n)).oldest_age.as_secs(), lag.stats_at(second(n)).lag_entries);
        lag.observe_at(10, 10, second(0));
        lag.observe_at(15, 15, second(3));
        assert_eq!(found(5), (5, 15));
        lag.observe_at(15, 5, second(5));
        assert_eq!(found(5), (2, 5));
        lag.observe_at(15, 0, second(5));
        assert_eq!(found(6), (0, 0));
    }

    #[test]
    fn samples_are_bounded_and_never_younger_than_the_entries() {
        let (lag, begun) = (Lag::default(), Instant::now());
        let count = 3 * LAG_SAMPLES_MAX as u64;
        (1..=count).for_each(|n| lag.observe_at(n, n, begun + Duration::from_secs(n)));
        assert!(lag.0.lock().seen.len() <= LAG_SAMPLES_MAX);
        lag.observe_at(count, 1, begun + Duration::from_secs(count));
        assert!(lag.stats_at(begun + Duration::from_secs(count + 1)).oldest_age >= Duration::from_secs(1));
    }
}
