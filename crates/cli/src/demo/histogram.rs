//! Latencies in buckets: exact up to 15 ns, then 16 buckets for each power of two, so at most 6.25 % too high.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets for each power of two, as a power of two.
const FINE_BITS: u32 = 4;
const FINE: usize = 1 << FINE_BITS;
/// Enough for any 64-bit number of nanoseconds.
const BUCKETS: usize = (64 - FINE_BITS as usize + 1) * FINE;

/// Counts that several players add to.
pub(super) struct Histogram {
    counts: Box<[AtomicU64]>,
}

/// The counts of one moment, or of the time between two. Few buckets are in use: only those are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<(usize, u64)>", from = "Vec<(usize, u64)>")]
pub(super) struct Counts(Vec<u64>);

impl From<Counts> for Vec<(usize, u64)> {
    fn from(counts: Counts) -> Self {
        counts.0.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }
}

impl From<Vec<(usize, u64)>> for Counts {
    fn from(used: Vec<(usize, u64)>) -> Self {
        let mut counts = Counts::none();
        for (bucket, count) in used {
            // Nobody but ourselves writes them; what is no bucket of ours is nobody's latency.
            if let Some(sum) = counts.0.get_mut(bucket) {
                *sum += count;
            }
        }
        counts
    }
}

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(super) fn add(&self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(ns)].fetch_add(1, Relaxed);
    }
}

impl Counts {
    pub(super) fn none() -> Counts {
        Counts(vec![0; BUCKETS])
    }

    /// Adds what a histogram holds now.
    pub(super) fn take_in(&mut self, histogram: &Histogram) {
        self.0.iter_mut().zip(&histogram.counts).for_each(|(sum, count)| *sum += count.load(Relaxed));
    }

    /// Adds the counts of another process.
    pub(super) fn add(&mut self, other: &Counts) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    /// What was added since an earlier moment.
    pub(super) fn since(&self, earlier: &Counts) -> Counts {
        Counts(self.0.iter().zip(&earlier.0).map(|(now, then)| now.saturating_sub(*then)).collect())
    }

    /// The latency that this share of all stays below; `None` of nothing.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        let total: u64 = self.0.iter().sum();
        let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= rank
        };
        self.0.iter().position(reached).map(|bucket| Duration::from_nanos(top(bucket)))
    }
}

/// The bucket of a value.
fn bucket(ns: u64) -> usize {
    match ns.checked_ilog2() {
        Some(power) if power >= FINE_BITS => {
            let fine = (ns >> (power - FINE_BITS)) as usize & (FINE - 1);
            (power - FINE_BITS + 1) as usize * FINE + fine
        }
        _ => ns as usize,
    }
}

/// The largest value of a bucket.
fn top(bucket: usize) -> u64 {
    if bucket < FINE {
        return bucket as u64;
    }
    let power = (bucket / FINE - 1) as u32;
    let lowest = ((FINE + bucket % FINE) as u64) << power;
    lowest + ((1 << power) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_in_a_bucket_that_is_at_most_a_sixteenth_too_high() {
        for ns in (0..100_000).chain([u64::MAX / 3, u64::MAX]) {
            let told = top(bucket(ns));
            assert!(told >= ns && told - ns <= ns / 16, "{ns} is told as {told}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_of_the_time_between_two_moments() {
        let histogram = Histogram::new();
        (0..100).for_each(|_| histogram.add(Duration::from_millis(5)));
        let mut first = Counts::none();
        assert_eq!(first.quantile(0.5), None);
        first.take_in(&histogram);
        (1..=100).for_each(|us| histogram.add(Duration::from_nanos(us)));
        let mut second = Counts::none();
        second.take_in(&histogram);
        let between = second.since(&first);
        assert_eq!(between.quantile(0.01), Some(Duration::from_nanos(1)));
        assert_eq!(between.quantile(0.5), Some(Duration::from_nanos(51)));
        assert_eq!(between.quantile(1.0), Some(Duration::from_nanos(103)));
        assert!(second.quantile(0.99).unwrap() >= Duration::from_millis(5));
    }
}
