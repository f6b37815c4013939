//! One memory bound for the read caches of all partitions; the least recently used ones are emptied first.
//!
//! Each partition's task owns its cache and reports its size. When the sum exceeds the bound, the tasks that
//! have been idle for longest are woken to empty theirs. Until they have run, the sum may exceed the bound.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// The bound, and the shares of the partitions.
pub(crate) struct Budget {
    max: usize,
    used: AtomicUsize,
    /// Counts reports, to order partitions by their last use.
    ticks: AtomicU64,
    shares: Mutex<Vec<Weak<Share>>>,
}

/// The memory of one partition's cache.
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: AtomicUsize,
    used_at: AtomicU64,
    /// The task should empty its cache.
    pub(crate) shrink: Notify,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Budget> {
        let (used, ticks) = (AtomicUsize::new(0), AtomicU64::new(0));
        Arc::new(Budget { max, used, ticks, shares: Mutex::default() })
    }

    /// The share of one more partition.
    pub(crate) fn share(self: &Arc<Budget>) -> Arc<Share> {
        let share = Arc::new(Share {
            budget: self.clone(),
            bytes: AtomicUsize::new(0),
            used_at: AtomicU64::new(0),
            shrink: Notify::new(),
        });
        let mut shares = self.shares.lock();
        if shares.len() == shares.capacity() {
            shares.retain(|share| share.strong_count() > 0);
        }
        shares.push(Arc::downgrade(&share));
        share
    }

    /// Asks other partitions for the surplus and an eighth of the bound more, so that the next report does
    /// not ask again.
    fn reclaim(&self, asking: &Share) {
        let shares = self.shares.lock();
        let mut others: Vec<Arc<Share>> = shares.iter().filter_map(Weak::upgrade).collect();
        drop(shares);
        others.retain(|share| !std::ptr::eq(&**share, asking) && share.bytes.load(Relaxed) > 0);
        others.sort_by_key(|share| share.used_at.load(Relaxed));
        let mut surplus = self.used.load(Relaxed).saturating_sub(self.max / 8 * 7);
        for share in others {
            if surplus == 0 {
                return;
            }
            surplus = surplus.saturating_sub(share.bytes.load(Relaxed));
            share.shrink.notify_one();
        }
    }
}

impl Share {
    /// The partition was used, and its cache now has this size.
    pub(crate) fn report(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Relaxed);
        self.used_at.store(self.budget.ticks.fetch_add(1, Relaxed), Relaxed);
        self.budget.used.fetch_add(bytes, Relaxed);
        self.budget.used.fetch_sub(before, Relaxed);
        if bytes > before && self.budget.used.load(Relaxed) > self.budget.max {
            self.budget.reclaim(self);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(*self.bytes.get_mut(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    /// Lets every task that was asked empty its cache, and returns their numbers.
    fn shrink(shares: &[Arc<Share>]) -> Vec<usize> {
        let asked = |share: &Arc<Share>| share.shrink.notified().now_or_never().is_some();
        let asked: Vec<usize> = (0..shares.len()).filter(|n| asked(&shares[*n])).collect();
        for n in &asked {
            shares[*n].budget.used.fetch_sub(shares[*n].bytes.swap(0, Relaxed), Relaxed);
        }
        asked
    }

    #[test]
    fn many_partitions_stay_within_the_bound_and_the_oldest_shrink() {
        let budget = Budget::new(64);
        let shares: Vec<Arc<Share>> = (0..60).map(|_| budget.share()).collect();
        for (n, share) in shares.iter().enumerate() {
            share.report(15);
            let asked = shrink(&shares);
            assert!(budget.used.load(Relaxed) <= 64, "{} after {n}", budget.used.load(Relaxed));
            // A bit more than the surplus, so that not every report asks again: 56 of 64 bytes stay.
            let oldest = if n < 4 || n % 2 == 1 { vec![] } else { vec![n - 4, n - 3] };
            assert_eq!(asked, oldest, "the least recently used ones");
        }
        shares[56].report(15);
        shares[0].report(15);
        assert_eq!(shrink(&shares), [57, 58], "the first of those left was used again");
        drop(shares);
        assert_eq!(budget.used.load(Relaxed), 0);
    }
}
