//! Counters of a simulation: each process counts for itself, and the one with the view adds them up.

use crate::latency::Latencies;
use emberkeep::hot::engine::Stats;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What the players and tasks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Hits on monsters that took health.
    Hits,
    /// Calls for something that another caller killed, removed or took a moment ago.
    Late,
    /// Calls that the store refused for now; nothing was written.
    Refused,
    Kills,
    Spawns,
    Removals,
    Effects,
    Ticks,
    Drops,
    /// Reactors that were created.
    Reactors,
    Triggers,
    Teardowns,
    /// Sweeps that came to their end.
    Sweeps,
    /// Looks at whole fields.
    Looks,
}

/// How many there are: the last one, and those before it.
const COUNTS: usize = Count::Looks as usize + 1;

/// Counters shared by some of the actors: not by all, so that they do not wait for one cache line.
pub(super) struct Counters {
    counts: [AtomicU64; COUNTS],
    latency: Mutex<Latencies>,
}

impl Counters {
    pub(super) fn new() -> Counters {
        Counters { counts: std::array::from_fn(|_| AtomicU64::new(0)), latency: Mutex::default() }
    }

    pub(super) fn add(&self, what: Count, amount: u64) {
        self.counts[what as usize].fetch_add(amount, Relaxed);
    }

    /// How long a hit took, whatever came of it.
    pub(super) fn took(&self, latency: Duration) {
        self.latency.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).record(latency);
    }
}

/// All counters at one moment, of one process or of several.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Totals {
    counts: [u64; COUNTS],
    pub(super) latency: Latencies,
    pub(super) conflicts: u64,
    pub(super) combined_commits: u64,
    pub(super) combined_transactions: u64,
}

impl Totals {
    pub(super) fn none() -> Totals {
        Totals {
            counts: [0; COUNTS],
            latency: Latencies::default(),
            conflicts: 0,
            combined_commits: 0,
            combined_transactions: 0,
        }
    }

    pub(super) fn of(sets: &[Counters], stats: &Stats) -> Totals {
        let mut totals = Totals::none();
        for counters in sets {
            totals
                .counts
                .iter_mut()
                .zip(&counters.counts)
                .for_each(|(sum, count)| *sum += count.load(Relaxed));
            totals.latency.add(&counters.latency.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        }
        totals.conflicts = stats.conflicts;
        totals.combined_commits = stats.combined_commits;
        totals.combined_transactions = stats.combined_transactions;
        totals
    }

    /// Adds what another process counted.
    pub(super) fn add(&mut self, other: &Totals) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.latency.add(&other.latency);
        self.conflicts += other.conflicts;
        self.combined_commits += other.combined_commits;
        self.combined_transactions += other.combined_transactions;
    }

    pub(super) fn get(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_add_up_after_a_journey_as_json() {
        let counters = [Counters::new(), Counters::new()];
        counters[0].add(Count::Hits, 3);
        counters[1].add(Count::Hits, 4);
        counters[1].add(Count::Looks, 1);
        counters[0].took(Duration::from_micros(5));
        let one = Totals::of(&counters, &Stats { conflicts: 2, ..Stats::default() });
        let text = serde_json::to_string(&one).unwrap();
        assert!(text.len() < 200, "only buckets in use are written: {text}");
        let mut sum: Totals = serde_json::from_str(&text).unwrap();
        sum.add(&one);
        assert_eq!((sum.get(Count::Hits), sum.get(Count::Looks), sum.conflicts), (14, 2, 4));
        assert_eq!(sum.latency.quantile(0.5), one.latency.quantile(0.5));
    }
}
