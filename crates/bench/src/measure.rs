//! Samples, medians and spreads: what a measurement is made of.
//!
//! The machine does other things too. So ours and the peer take turns, every sample is bounded in time and in
//! count, and a ratio is the median over the rounds of *that round's* ratio: what disturbed one of two neighbours
//! probably disturbed the other.

use anyhow::Result;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Operations between two looks at the clock.
const LOOK_EVERY: u64 = 256;
/// Most operations of one sample, whatever the time.
const OPERATIONS_MAX: u64 = 50_000_000;

/// One figure per round.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<f64>);

impl Samples {
    pub(super) fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    /// The middle one; 0 of none.
    pub(super) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => 0.0,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }

    /// The lowest and the highest.
    pub(super) fn spread(&self) -> [f64; 2] {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.0.is_empty() { [0.0, 0.0] } else { [least, most] }
    }

    /// As many samples, all of one figure: a peer that is a target.
    pub(super) fn constant(&self, figure: f64) -> Samples {
        Samples(vec![figure; self.0.len()])
    }

    /// Round by round, this divided by that.
    pub(super) fn over(&self, that: &Samples) -> Samples {
        Samples(self.0.iter().zip(&that.0).map(|(this, that)| this / that).collect())
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Samples {
        Samples(samples.into_iter().collect())
    }
}

/// Whether the time on the wall or on the processor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// All of it: where a workload waits for others.
    Wall,
    /// What this thread spent on a core: where a workload never waits, and other load on the same
    /// cores must not count. On an idle machine it is the same.
    Core,
}

/// Nanoseconds that this thread has spent on a core, to a few milliseconds; `None` where the system does not tell.
pub(super) fn core_nanos() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// What all threads of this process have spent on cores, to a hundredth of a second; zero where the system does not tell.
pub(super) fn process_core() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have spaces; user and system time are the 12th and 13th field from there, in ticks of 10 ms.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Nanoseconds per operation: runs `operation` with rising numbers until the time or the count is used up.
pub(super) async fn nanos_per_operation(
    counts: Counts,
    time: Duration,
    mut operation: impl AsyncFnMut(u64) -> Result<()>,
) -> Result<f64> {
    let core_before = if counts == Counts::Core { core_nanos() } else { None };
    let started = Instant::now();
    let mut done = 0;
    while done < OPERATIONS_MAX && started.elapsed() < time {
        for number in done..done + LOOK_EVERY {
            operation(number).await?;
        }
        done += LOOK_EVERY;
    }
    let wall = started.elapsed().as_nanos() as f64;
    let core = core_before.and_then(|before| Some((core_nanos()? - before) as f64));
    Ok(core.filter(|nanos| *nanos > 0.0).unwrap_or(wall) / done.max(1) as f64)
}

/// Operations per second from nanoseconds per operation.
pub(super) fn per_second(nanos: f64) -> f64 {
    1e9 / nanos
}

/// A pseudo-random number of a number: ours and the peer touch the same keys in the same order.
pub(super) fn scattered(number: u64) -> u64 {
    fastrand::Rng::with_seed(number).u64(..)
}

/// Latencies in microseconds with two significant digits, up to an hour. Recording never allocates: memory that the kernel
/// has to clear would be on the workers' time.
pub(super) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 2).expect("the bounds are constants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_not_moved_by_one_bad_round() {
        let samples: Samples = [3.0, 1.0, 900.0, 2.0, 4.0].into_iter().collect();
        assert_eq!((samples.median(), samples.spread()), (3.0, [1.0, 900.0]));
        assert_eq!([1.0, 2.0].into_iter().collect::<Samples>().median(), 1.5);
        assert_eq!(Samples::default().median(), 0.0);
    }

    #[test]
    fn latencies_of_few_and_of_many() {
        let mut few = latencies();
        assert_eq!((few.value_at_quantile(0.99), few.max()), (0, 0));
        few.saturating_record(7);
        assert_eq!((few.value_at_quantile(0.99), few.max()), (7, 7));
        let mut many = latencies();
        (0..1_000).for_each(|value| many.saturating_record(value));
        many += &few;
        assert_eq!(many.len(), 1_001);
        assert!((980..=1_000).contains(&many.value_at_quantile(0.99)), "{}", many.value_at_quantile(0.99));
    }

    #[test]
    fn a_ratio_compares_neighbours() {
        let ours: Samples = [2.0, 20.0, 4.0].into_iter().collect();
        let peer: Samples = [1.0, 10.0, 1.0].into_iter().collect();
        assert_eq!(ours.over(&peer).median(), 2.0);
    }
}
