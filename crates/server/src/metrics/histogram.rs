//! A latency histogram with buckets of powers of two from 64 µs to a second.

use super::text::Page;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const FIRST_BOUND_US: u64 = 64;
const BOUNDS: usize = 15;

#[derive(Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BOUNDS],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Histogram {
    pub(super) fn record(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // The first bound that is not below it; beyond the last one only the count includes it.
        let bucket = us.div_ceil(FIRST_BOUND_US).max(1).next_power_of_two().trailing_zeros() as usize;
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }

    pub(super) fn write(&self, page: &mut Page, name: &str, labels: &[(&str, &str)]) {
        let mut below = 0;
        let bucket_name = format!("{name}_bucket");
        for (index, bucket) in self.buckets.iter().enumerate() {
            below += bucket.load(Relaxed);
            let bound = (FIRST_BOUND_US << index) as f64 / 1e6;
            page.line(&bucket_name, &[labels, &[("le", bound.to_string().as_str())]].concat(), below as f64);
        }
        // Read after the buckets and never below them, so that a concurrent request does not make the
        // histogram inconsistent.
        let count = self.count.load(Relaxed).max(below);
        page.line(&bucket_name, &[labels, &[("le", "+Inf")]].concat(), count as f64);
        page.line(&format!("{name}_sum"), labels, self.sum_us.load(Relaxed) as f64 / 1e6);
        page.line(&format!("{name}_count"), labels, count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_below_every_bound_that_is_not_shorter() {
        let histogram = Histogram::default();
        for us in [0, 64, 65, 1_000_000, 90_000_000] {
            histogram.record(Duration::from_micros(us));
        }
        let mut page = Page::default();
        histogram.write(&mut page, "t", &[]);
        let text = page.text();
        for line in [
            "t_bucket{le=\"0.000064\"} 2",
            "t_bucket{le=\"0.000128\"} 3",
            "t_bucket{le=\"0.524288\"} 3",
            "t_bucket{le=\"1.048576\"} 4",
            "t_bucket{le=\"+Inf\"} 5",
            "t_count 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
