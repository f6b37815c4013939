//! Latencies of hits, in nanoseconds with two significant digits.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest latency; a longer one counts as this.
const NANOS_MAX: u64 = 3_600_000_000_000;

/// A histogram that travels as the buckets in use: few of them are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Vec<(u64, u64)>", from = "Vec<(u64, u64)>")]
pub(crate) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, NANOS_MAX, 2).expect("the bounds are constants"))
    }
}

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Self {
        let used = latencies.0.iter_recorded();
        used.map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration())).collect()
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(used: Vec<(u64, u64)>) -> Self {
        let mut latencies = Latencies::default();
        used.into_iter().for_each(|(nanos, count)| latencies.0.saturating_record_n(nanos, count));
        latencies
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(NANOS_MAX));
    }

    pub(crate) fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// What was recorded after `earlier`, an older copy of the same latencies.
    pub(crate) fn since(&self, earlier: &Latencies) -> Latencies {
        let mut between = self.clone();
        between.0.subtract(&earlier.0).expect("counts only grow");
        between
    }

    /// The latency that this share of all stays below; `None` if nothing was recorded.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_quantile(share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_one_percent_too_high() {
        for nanos in (0..100_000).step_by(7).chain([NANOS_MAX]) {
            let mut latencies = Latencies::default();
            latencies.record(Duration::from_nanos(nanos));
            let shown = latencies.quantile(1.0).unwrap().as_nanos() as u64;
            assert!(shown >= nanos && shown - nanos <= nanos / 100, "{nanos} is shown as {shown}");
        }
    }

    #[test]
    fn quantiles_are_of_the_time_between_two_moments() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        (0..100).for_each(|_| latencies.record(Duration::from_millis(5)));
        let first = latencies.clone();
        (1..=100).for_each(|ns| latencies.record(Duration::from_nanos(ns)));
        let between = latencies.since(&first);
        for (share, nanos) in [(0.01, 1), (0.5, 50), (1.0, 100)] {
            assert_eq!(between.quantile(share), Some(Duration::from_nanos(nanos)));
        }
        assert!(latencies.quantile(0.99).unwrap() >= Duration::from_millis(5));
    }
}
