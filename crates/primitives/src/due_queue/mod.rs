//! A due queue: deadlines in one sorted set, by the engine's milliseconds.
//!
//! Promises:
//! 1. A deadline is stored: it is still there after a crash.
//! 2. [`pop_due`](DueQueue::pop_due) returns a deadline to exactly one caller of all processes: it leaves
//!    the set in the caller's transaction, together with the caller's other writes.
//! 3. Nothing is due early: the engine's clock decides, not the caller's.
//! 4. [`serve`](DueQueue::serve) runs a handler for each deadline when it comes, in the transaction that
//!    removes it. It sleeps until the next one. An earlier one that is set in this process wakes it: it is
//!    noticed at most 64 ms after its commit, if that comes within 85 ms
//!    ([`DUE_RECHECK_AFTER`](crate::limits::DUE_RECHECK_AFTER)). A later one, and one of another process, is
//!    noticed within [`DUE_POLL_EVERY`](crate::limits::DUE_POLL_EVERY).
//!
//! One key, the caller's: a sorted set of what is due, with the time as score. A member that cannot be
//! decoded is dropped when it is due.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::{Clock, Embedded, ManualClock}};
//! use emberkeep_primitives::DueQueue;
//! use emberkeep_schema::{Id, SortedSet, family, partition};
//! use std::sync::Arc;
//!
//! partition! {
//!     /// One galaxy.
//!     pub struct Galaxy = "galaxy";
//! }
//! family! {
//!     /// When bombs go off.
//!     pub BOMBS = "ember:bombs" {
//!         kind: SortedSet<Id<u32>>, partition: Galaxy, parts: (), ttl: persistent, owner: "bombs"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let clock = ManualClock::at(1_000);
//! let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open()?;
//! let scope = Store::new(Arc::new(engine)).scope(Galaxy);
//! let bombs = DueQueue::new(BOMBS.key());
//! let fuse = bombs.clone();
//! scope.transact(move |tx| { let at = tx.now() + 500; fuse.set(tx, &7, at) }).await?;
//! let pop = || { let bombs = bombs.clone(); scope.transact(move |tx| bombs.pop_due(tx, 10)) };
//! assert_eq!(pop().await?, []);
//! clock.advance(500);
//! assert_eq!(pop().await?, [(7, 1_500)]);
//! assert_eq!(pop().await?, []);
//! # Ok(())
//! # }
//! ```

mod serve;
mod wake;

pub use serve::{Driver, ServeReport};

use crate::limits::DUE_PER_TRANSACTION_MAX;
use emberkeep_hot::command::{RawKey, Read, ZSlice};
use emberkeep_hot::store::Member;
use emberkeep_hot::{ReadTx, Result, Scope, Tx};
use emberkeep_schema::{Automatic, Codec, Family, Key, Partition, SortedSet};

/// A sorted set of entries with the millisecond at which each is due.
#[derive(Clone, Debug)]
pub struct DueQueue<F: Family> {
    key: Key<F>,
}

impl<P, F, C> DueQueue<F>
where
    P: Partition,
    F: Family<Partition = P, Kind = SortedSet<C>>,
    F::Ttl: Automatic,
    C: Codec,
{
    /// The due queue at a key.
    pub fn new(key: Key<F>) -> Self {
        DueQueue { key }
    }

    /// Sets when something is due, in milliseconds since 1970. A later call replaces an earlier one.
    pub fn set(&self, tx: &mut Tx<'_, P>, what: &C::Value, at_ms: i64) -> Result<()> {
        self.put(tx, what, at_ms)?;
        wake::deadline_set(|| tx.raw_name(&self.key), at_ms);
        Ok(())
    }

    /// Sets a deadline and wakes no driver.
    fn put(&self, tx: &mut Tx<'_, P>, what: &C::Value, at_ms: i64) -> Result<()> {
        tx.zadd(&self.key, what, at_ms as f64)
    }

    /// When something is due.
    pub fn get(&self, tx: &mut ReadTx<'_, P>, what: &C::Value) -> Result<Option<i64>> {
        Ok(tx.zscore(&self.key, what)?.map(|at| at as i64))
    }

    /// Removes a deadline; `true` if there was one.
    pub fn cancel(&self, tx: &mut Tx<'_, P>, what: &C::Value) -> Result<bool> {
        let known = tx.zscore(&self.key, what)?.is_some();
        if known {
            tx.zrem(&self.key, what)?;
        }
        Ok(known)
    }

    /// What is due now, earliest first, at most `limit` (and [`DUE_PER_TRANSACTION_MAX`]). It stays in the
    /// queue.
    pub fn due(&self, tx: &mut Tx<'_, P>, limit: usize) -> Result<Vec<(C::Value, i64)>> {
        let limit = limit.min(DUE_PER_TRANSACTION_MAX);
        if limit == 0 { Ok(Vec::new()) } else { Ok(self.first(tx, limit)?.due) }
    }

    /// The first `count` entries. Those that cannot be decoded are dropped when they are due, where the transaction may
    /// write the queue.
    fn first(&self, tx: &mut Tx<'_, P>, count: usize) -> Result<FirstEntries<C::Value>> {
        let (now, mut due) = (tx.now(), Vec::new());
        let first = tx.zrange_lossy(&self.key, first_ranks(count), false)?;
        // Behind a full page there may be more, and not before its last entry.
        let next = first.get(count - 1).map(|(_, at)| *at as i64);
        for (what, at) in first {
            let at = at as i64;
            if at > now {
                return Ok(FirstEntries { due, next: Some(at) });
            }
            match what {
                Member::Known(what) => due.push((what, at)),
                Member::External(bytes) if tx.may_write(&self.key) => tx.zrem_raw(&self.key, bytes)?,
                Member::External(_) => {}
            }
        }
        Ok(FirstEntries { due, next })
    }

    /// Removes and returns what is due now, earliest first, at most `limit` (and
    /// [`DUE_PER_TRANSACTION_MAX`]).
    pub fn pop_due(&self, tx: &mut Tx<'_, P>, limit: usize) -> Result<Vec<(C::Value, i64)>> {
        let due = self.due(tx, limit)?;
        for (what, _) in &due {
            tx.zrem(&self.key, what)?;
        }
        Ok(due)
    }

    /// When the earliest is due.
    pub fn next(&self, tx: &mut ReadTx<'_, P>) -> Result<Option<i64>> {
        let first = tx.zrange_lossy(&self.key, first_ranks(1), false)?;
        Ok(first.first().map(|(_, at)| *at as i64))
    }

    /// The scope with a prefetch of what is due first.
    pub fn prefetched(&self, scope: Scope<P>) -> Scope<P> {
        scope.prefetch(&self.key, Read::ZRange(first_ranks(1), false))
    }

    /// The name of the key on the engine.
    fn name(&self, scope: &Scope<P>) -> RawKey {
        self.key.to_text(scope.store().key_layout(), scope.partition()).into()
    }
}

/// The beginning of a queue.
struct FirstEntries<V> {
    /// What is due now, with its deadline.
    due: Vec<(V, i64)>,
    /// The earliest deadline behind that, as far as it is known.
    next: Option<i64>,
}

/// The first entries by rank, not by score: a range that ends now would be a different read in every run of a
/// body.
fn first_ranks(count: usize) -> ZSlice {
    ZSlice::Rank(0, count as i64 - 1)
}
