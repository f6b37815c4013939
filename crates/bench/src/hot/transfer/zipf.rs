//! Pairs of accounts by Zipf's law: the n-th account is asked for 1/n times as often as the first.

use super::ACCOUNTS;
use fastrand::Rng;
use std::sync::OnceLock;

/// Pairs of a thread; drawn once, because drawing takes longer than some of the transfers.
const PAIRS: usize = 1 << 18;
const THREADS_MAX: usize = 2;

/// The pairs of a thread, two different accounts each.
pub(super) fn pairs(thread: usize) -> &'static [(u32, u32)] {
    static ALL: OnceLock<Vec<Vec<(u32, u32)>>> = OnceLock::new();
    &ALL.get_or_init(|| (0..THREADS_MAX).map(|thread| draw(thread as u64 + 1)).collect())[thread]
}

fn draw(seed: u64) -> Vec<(u32, u32)> {
    let mut rng = Rng::with_seed(seed);
    let mut sum = 0.0;
    let cumulated: Vec<f64> = (1..=ACCOUNTS)
        .map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        })
        .collect();
    let mut account = || {
        let point = rng.f64() * sum;
        let rank = cumulated.partition_point(|below| *below < point);
        // Neighbours in rank are not neighbours in the table.
        (rank.min(ACCOUNTS as usize - 1) as u32).wrapping_mul(7_919) % ACCOUNTS
    };
    let mut pair = || loop {
        let (from, to) = (account(), account());
        if from != to {
            return (from, to);
        }
    };
    (0..PAIRS).map(|_| pair()).collect()
}
