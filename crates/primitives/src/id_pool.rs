//! Ids that are reused: released ones first, last in first out, else the next of a [`Sequence`]. In a
//! [`RestingPool`] they rest before they are reused.
//!
//! Promises, beside those of the sequence:
//! 1. An element of the free list that is not an id of the range, or is in use, is dropped.
//! 2. A resting id is not handed out before its time, by the engine's clock. If the resting set is lost, its
//!    ids return when the counter wraps; if the counter is lost too, they return early. No id is ever used
//!    twice at a time.
//!
//! Keys, all the caller's: the sequence's counter; the free list, pushed and popped at its head; the resting
//! set, which holds released ids by the time at which they may be used again.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::{IdPool, IdResult};
//! use emberkeep_schema::{Id, List, Number, Text, Utf8, family, partition};
//!
//! partition! {
//!     /// One galaxy.
//!     pub struct Galaxy = "galaxy";
//! }
//! family! {
//!     /// Ships by id.
//!     pub SHIP = "ship:{id}" {
//!         kind: Text<Utf8>, partition: Galaxy, parts: (id: u32), ttl: persistent, owner: "ships"
//!     }
//! }
//! family! {
//!     /// The id that was counted out last.
//!     pub NEXT = "ships:next" {
//!         kind: Text<Number<i64>>, partition: Galaxy, parts: (), ttl: persistent, owner: "ships"
//!     }
//! }
//! family! {
//!     /// Ids to be used again.
//!     pub FREE = "ships:free" {
//!         kind: List<Id<u32>>, partition: Galaxy, parts: (), ttl: persistent, owner: "ships"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let scope = Store::new(std::sync::Arc::new(Embedded::in_memory())).scope(Galaxy);
//! let ids = || IdPool::new(1..=1_000, NEXT.key(), FREE.key());
//! let build = || {
//!     scope.transact(move |tx| {
//!         let taken = ids().take(tx, |tx, id| tx.exists(&SHIP.key(id)))?;
//!         if let IdResult::Id(id) = taken {
//!             tx.put(&SHIP.key(id), &"a ship".to_owned())?;
//!         }
//!         Ok::<_, Error>(taken)
//!     })
//! };
//! assert_eq!((build().await?, build().await?), (IdResult::Id(1), IdResult::Id(2)));
//! // The transaction that ends a ship is the one that releases its id.
//! let scrap = |tx: &mut emberkeep_hot::Tx<'_, Galaxy>| {
//!     tx.del(&SHIP.key(1))?;
//!     IdPool::new(1..=1_000, NEXT.key(), FREE.key()).release(tx, &1)
//! };
//! scope.transact(scrap).await?;
//! assert_eq!((build().await?, build().await?), (IdResult::Id(1), IdResult::Id(3)));
//! # Ok(())
//! # }
//! ```

use crate::due_queue::DueQueue;
use crate::limits::{FREE_PREFETCHED, PREFETCHED_IDS, RESTED_PER_TRANSACTION, TRIES_PER_TRANSACTION_MAX};
use crate::sequence::{IdResult, Search, SearchProgress, Sequence};
use emberkeep_hot::command::Read;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Automatic, Family, Id, Key, List, Number, Part, Partition, SortedSet, Text};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A sequence whose released ids are reused, last in first out.
#[derive(Clone, Debug)]
pub struct IdPool<N: Family, L: Family> {
    sequence: Sequence<N>,
    free: Key<L>,
}

/// A pool whose released ids rest before they are reused: for clients that would mix up two owners of an id.
#[derive(Clone, Debug)]
pub struct RestingPool<N: Family, L: Family, R: Family> {
    pool: IdPool<N, L>,
    resting: DueQueue<R>,
    reuse_after: Duration,
}

impl<P, N, L, I> IdPool<N, L>
where
    P: Partition,
    N: Family<Partition = P, Kind = Text<Number<i64>>>,
    N::Ttl: Automatic,
    L: Family<Partition = P, Kind = List<Id<I>>>,
    L::Ttl: Automatic,
    I: Part + Send + 'static,
{
    /// A pool of the ids whose canonical text is a number of `range`, which must not be empty.
    pub fn new(range: RangeInclusive<i64>, next: Key<N>, free: Key<L>) -> Self {
        IdPool { sequence: Sequence::new(range, next), free }
    }

    /// The same pool with a rest: released ids wait in a sorted set.
    pub fn resting<R>(self, resting: Key<R>, reuse_after: Duration) -> RestingPool<N, L, R>
    where
        R: Family<Partition = P, Kind = SortedSet<Id<I>>>,
        R::Ttl: Automatic,
    {
        RestingPool { pool: self, resting: DueQueue::new(resting), reuse_after }
    }

    /// The start of a search for a free id.
    pub fn search(&self) -> Search {
        self.sequence.search()
    }

    /// The scope with a prefetch of what [`take`](Self::take) reads first: one round trip less on a remote
    /// engine.
    pub fn prefetched(&self, scope: Scope<P>) -> Scope<P> {
        self.sequence.prefetched(scope.prefetch(&self.free, Read::LRange(0, FREE_PREFETCHED as i64 - 1)))
    }

    /// Takes a free id. `lives` must say whether the record of a candidate exists.
    ///
    /// The transaction must commit in both cases: the id is taken by the counter or by leaving the free list.
    pub fn take(
        &self,
        tx: &mut Tx<'_, P>,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<IdResult<I>> {
        let mut tries = TRIES_PER_TRANSACTION_MAX;
        while tries > 0 {
            match self.pop(tx)? {
                FreeListHead::Empty => return self.sequence.count_on(tx, tries, lives),
                FreeListHead::Id(id) => match lives(tx, &id) {
                    Ok(false) => return Ok(IdResult::Id(id)),
                    Ok(true) => tries -= 1,
                    Err(Error::Suspended) => {
                        self.prefetch(tx, lives);
                        return Err(Error::Suspended);
                    }
                    Err(error) => return Err(error),
                },
                FreeListHead::Invalid => tries -= 1,
            }
        }
        Ok(IdResult::NotYet(SearchProgress(0)))
    }

    /// Prefetches whether the ids that the next transactions will get are in use: those of the free list,
    /// then the next of the counter.
    fn prefetch(&self, tx: &mut Tx<'_, P>, mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>) {
        for asked in 0..PREFETCHED_IDS {
            match tx.prefetch(|tx| self.pop(tx)) {
                Some(Ok(FreeListHead::Id(id))) => drop(tx.prefetch(|tx| lives(tx, &id))),
                Some(Ok(FreeListHead::Invalid)) => {}
                Some(Ok(FreeListHead::Empty)) => {
                    if let Some(Ok(last)) = tx.prefetch(|tx| self.sequence.last(tx)) {
                        self.sequence.prefetch(tx, last, PREFETCHED_IDS - asked, lives);
                    }
                    return;
                }
                Some(Err(_)) | None => return,
            }
        }
    }

    /// Releases an id. The transaction must be the one that removes the record, so that the id is pushed
    /// exactly once. An id outside the range (a record of an external client) is ignored.
    pub fn release(&self, tx: &mut Tx<'_, P>, id: &I) -> Result<()> {
        if self.sequence.holds(id) { tx.lpush(&self.free, id) } else { Ok(()) }
    }

    /// Pops the head of the free list.
    fn pop(&self, tx: &mut Tx<'_, P>) -> Result<FreeListHead<I>> {
        match tx.lpop(&self.free) {
            Ok(None) => Ok(FreeListHead::Empty),
            Ok(Some(id)) if self.sequence.holds(&id) => Ok(FreeListHead::Id(id)),
            Ok(Some(_)) => Ok(FreeListHead::Invalid),
            Err(Error::Corrupt { .. }) => {
                tx.ltrim(&self.free, 1, -1)?;
                Ok(FreeListHead::Invalid)
            }
            Err(error) => Err(error),
        }
    }
}

impl<P, N, L, R, I> RestingPool<N, L, R>
where
    P: Partition,
    N: Family<Partition = P, Kind = Text<Number<i64>>>,
    N::Ttl: Automatic,
    L: Family<Partition = P, Kind = List<Id<I>>>,
    L::Ttl: Automatic,
    R: Family<Partition = P, Kind = SortedSet<Id<I>>>,
    R::Ttl: Automatic,
    I: Part + Send + 'static,
{
    /// The start of a search for a free id.
    pub fn search(&self) -> Search {
        self.pool.search()
    }

    /// The scope with a prefetch of what [`take`](Self::take) reads first.
    pub fn prefetched(&self, scope: Scope<P>) -> Scope<P> {
        self.resting.prefetched(self.pool.prefetched(scope))
    }

    /// Takes a free id as [`IdPool::take`] does. Ids that still rest are not free.
    pub fn take(
        &self,
        tx: &mut Tx<'_, P>,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<IdResult<I>> {
        // The cheap read first: it hardly ever changes, so transactions that only make this one do not
        // conflict.
        let Some(first) = self.resting.next(tx)? else { return self.pool.take(tx, lives) };
        if first <= tx.now() {
            for (id, _) in self.resting.pop_due(tx, RESTED_PER_TRANSACTION)? {
                self.pool.release(tx, &id)?;
            }
        }
        // The counter may reach ids that rest.
        self.pool.take(tx, |tx, id| Ok(self.resting.get(tx, id)?.is_some() || lives(tx, id)?))
    }

    /// Releases an id, to be reused after its rest; at once if the pool has none.
    pub fn release(&self, tx: &mut Tx<'_, P>, id: &I) -> Result<()> {
        if self.reuse_after.is_zero() {
            return self.pool.release(tx, id);
        }
        if !self.pool.sequence.holds(id) {
            return Ok(());
        }
        let ms = i64::try_from(self.reuse_after.as_millis()).unwrap_or(i64::MAX);
        let at = tx.now().saturating_add(ms);
        self.resting.set(tx, id, at)
    }
}

/// What was at the head of the free list.
enum FreeListHead<I> {
    Id(I),
    Invalid,
    Empty,
}
