//! Counters of named transactions, one table for the process.
//!
//! A name is looked up in a table of fixed size without a lock, and counted in a stripe of its own for every
//! few threads: naming a transaction costs a few nanoseconds.

use crate::limits::{OPERATION_NAMES_MAX, OPERATION_STRIPES};
use foldhash::fast::FixedState;
use std::cell::Cell;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Counters of the transactions of one name, since the process began, on all stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationStats {
    /// The name, see [`Scope::named`](crate::Scope::named). `"(other)"` counts names beyond
    /// [`OPERATION_NAMES_MAX`].
    pub name: &'static str,
    /// Transactions that ended, by a commit or an error.
    pub calls: u64,
    /// Runs of their closures.
    pub runs: u64,
    /// Runs that were repeated, because validation or a lock failed.
    pub conflicts: u64,
    /// Calls to the backend that they took part in; 0 on the embedded engine. Transactions of one batch share
    /// a call, and each counts it.
    pub round_trips: u64,
    /// Time from the call to its answer, in microseconds. On the embedded engine without the commit itself,
    /// unless the call waited for the disk.
    pub micros: u64,
}

/// The counters of one name.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    stripes: [Stripe; OPERATION_STRIPES],
}

/// Counters of some threads, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    calls: AtomicU64,
    runs: AtomicU64,
    conflicts: AtomicU64,
    round_trips: AtomicU64,
    nanos: AtomicU64,
}

static TABLE: [OnceLock<Box<Operation>>; OPERATION_NAMES_MAX] =
    [const { OnceLock::new() }; OPERATION_NAMES_MAX];
static OTHER: OnceLock<Box<Operation>> = OnceLock::new();
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: Cell<usize> = Cell::new(THREADS.fetch_add(1, Relaxed) % OPERATION_STRIPES);
}

impl Operation {
    /// The counters of a name; a new one gets a place in the table while there is one.
    pub(crate) fn named(name: &'static str) -> &'static Operation {
        let first = FixedState::with_seed(0).hash_one(name) as usize;
        let places = (0..OPERATION_NAMES_MAX).map(|n| &TABLE[(first.wrapping_add(n)) % OPERATION_NAMES_MAX]);
        let mut of_name = places.map(|place| &**place.get_or_init(|| Operation::new(name)));
        of_name
            .find(|found| found.name == name)
            .unwrap_or_else(|| OTHER.get_or_init(|| Operation::new("(other)")))
    }

    fn new(name: &'static str) -> Box<Operation> {
        Box::new(Operation { name, stripes: Default::default() })
    }

    fn stripe(&self) -> &Stripe {
        &self.stripes[STRIPE.get()]
    }

    pub(crate) fn count_run(&self) {
        self.stripe().runs.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_conflict(&self) {
        self.stripe().conflicts.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_round_trip(&self) {
        self.stripe().round_trips.fetch_add(1, Relaxed);
    }

    /// A transaction ended after this time.
    pub(crate) fn count_call(&self, took: Duration) {
        let stripe = self.stripe();
        stripe.calls.fetch_add(1, Relaxed);
        stripe.nanos.fetch_add(took.as_nanos() as u64, Relaxed);
    }

    fn stats(&self) -> OperationStats {
        let sum = |counter: fn(&Stripe) -> &AtomicU64| -> u64 {
            self.stripes.iter().map(|stripe| counter(stripe).load(Relaxed)).sum()
        };
        OperationStats {
            name: self.name,
            calls: sum(|stripe| &stripe.calls),
            runs: sum(|stripe| &stripe.runs),
            conflicts: sum(|stripe| &stripe.conflicts),
            round_trips: sum(|stripe| &stripe.round_trips),
            micros: sum(|stripe| &stripe.nanos) / 1_000,
        }
    }
}

/// Counters of every name that was used, by name.
pub(crate) fn all_stats() -> Vec<OperationStats> {
    let used = TABLE.iter().chain([&OTHER]).filter_map(OnceLock::get);
    let mut stats: Vec<_> = used.map(|operation| operation.stats()).collect();
    stats.sort_unstable_by_key(|one| one.name);
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_has_one_place_whatever_its_address() {
        let copy: &'static str = Box::leak(String::from("operation test").into_boxed_str());
        let operation = Operation::named("operation test");
        assert!(std::ptr::eq(operation, Operation::named(copy)));
        assert!(!std::ptr::eq(operation, Operation::named("another operation test")));
        let threads = [(); 4].map(|()| std::thread::spawn(|| Operation::named("operation test").count_run()));
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        operation.count_call(Duration::from_micros(7));
        let stats =
            all_stats().into_iter().find(|stats| stats.name == "operation test").expect("it was used");
        let OperationStats { calls, runs, micros, .. } = stats;
        assert_eq!((calls, runs, micros), (1, 4, 7));
    }
}
