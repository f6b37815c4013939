//! Ids that are used again: released ones first, the last one before the others, else the next of a [`Sequence`].
//! In a [`RestingPool`] they rest before that.
//!
//! Promises, beside those of the sequence:
//! 1. What stands in the free list and is no id, not of the range, or living, is dropped.
//! 2. An id that rests is not handed out before its time, by the engine's clock. If the resting set is lost, its
//!    ids come back when the counter has wrapped; lost together with the counter, they come early. Never twice.
//!
//! Keys, all the caller's: the sequence's counter; the free list, pushed and popped at its head; the resting set,
//! which holds released ids by the time at which they may be used again.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::{IdPool, Taken};
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
//!         if let Taken::Id(id) = taken {
//!             tx.put(&SHIP.key(id), &"a ship".to_owned())?;
//!         }
//!         Ok::<_, Error>(taken)
//!     })
//! };
//! assert_eq!((build().await?, build().await?), (Taken::Id(1), Taken::Id(2)));
//! // The transaction that ends a ship is the one that releases its id.
//! let scrap = |tx: &mut emberkeep_hot::Tx<'_, Galaxy>| {
//!     tx.del(&SHIP.key(1))?;
//!     IdPool::new(1..=1_000, NEXT.key(), FREE.key()).release(tx, &1)
//! };
//! scope.transact(scrap).await?;
//! assert_eq!((build().await?, build().await?), (Taken::Id(1), Taken::Id(3)));
//! # Ok(())
//! # }
//! ```

use crate::due_queue::DueQueue;
use crate::limits::{FORESEEN_IDS, FREE_ANNOUNCED, RESTED_PER_TRANSACTION, TRIES_PER_TRANSACTION_MAX};
use crate::sequence::{Looked, Search, Sequence, Taken};
use emberkeep_hot::command::Read;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Automatic, Family, Id, Key, List, Number, Part, Partition, SortedSet, Text};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A sequence whose released ids are handed out again, the last one first.
#[derive(Clone, Debug)]
pub struct IdPool<N: Family, L: Family> {
    sequence: Sequence<N>,
    free: Key<L>,
}

/// A pool whose released ids rest before they are handed out again: for clients that mix up two owners of an id.
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

    /// The same pool, whose ids rest in a sorted set for a time after their release.
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

    /// The scope, told what [`take`](Self::take) reads first: one round trip less where the engine is far away.
    pub fn prefetched(&self, scope: Scope<P>) -> Scope<P> {
        self.sequence.prefetched(scope.prefetch(&self.free, Read::LRange(0, FREE_ANNOUNCED as i64 - 1)))
    }

    /// Takes a free id. `lives` is asked about each candidate and should look at the record's key.
    ///
    /// The transaction must commit in both cases: the id is taken by the counter or by leaving the free list.
    pub fn take(
        &self,
        tx: &mut Tx<'_, P>,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<Taken<I>> {
        let mut tries = TRIES_PER_TRANSACTION_MAX;
        while tries > 0 {
            match self.pop(tx)? {
                Popped::Nothing => return self.sequence.count_on(tx, tries, lives),
                Popped::Id(id) => match lives(tx, &id) {
                    Ok(false) => return Ok(Taken::Id(id)),
                    Ok(true) => tries -= 1,
                    Err(Error::Suspended) => {
                        self.prefetch(tx, lives);
                        return Err(Error::Suspended);
                    }
                    Err(error) => return Err(error),
                },
                Popped::Rubbish => tries -= 1,
            }
        }
        Ok(Taken::NotYet(Looked(0)))
    }

    /// Asks about the ids that the transactions behind this one will be given, if that costs nothing but words: those of the
    /// free list, and after its end the next of the counter.
    fn prefetch(&self, tx: &mut Tx<'_, P>, mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>) {
        for asked in 0..FORESEEN_IDS {
            match tx.prefetch(|tx| self.pop(tx)) {
                Some(Ok(Popped::Id(id))) => drop(tx.prefetch(|tx| lives(tx, &id))),
                Some(Ok(Popped::Rubbish)) => {}
                Some(Ok(Popped::Nothing)) => {
                    if let Some(Ok(last)) = tx.prefetch(|tx| self.sequence.last(tx)) {
                        self.sequence.prefetch(tx, last, FORESEEN_IDS - asked, lives);
                    }
                    return;
                }
                Some(Err(_)) | None => return,
            }
        }
    }

    /// Gives an id back. The caller's transaction must be the one that ended its life: then it is pushed exactly once.
    /// An id that is not of the range (an external client's record) is not taken in.
    pub fn release(&self, tx: &mut Tx<'_, P>, id: &I) -> Result<()> {
        if self.sequence.holds(id) { tx.lpush(&self.free, id) } else { Ok(()) }
    }

    /// Takes the head of the free list.
    fn pop(&self, tx: &mut Tx<'_, P>) -> Result<Popped<I>> {
        match tx.lpop(&self.free) {
            Ok(None) => Ok(Popped::Nothing),
            Ok(Some(id)) if self.sequence.holds(&id) => Ok(Popped::Id(id)),
            Ok(Some(_)) => Ok(Popped::Rubbish),
            Err(Error::Corrupt { .. }) => {
                tx.ltrim(&self.free, 1, -1)?;
                Ok(Popped::Rubbish)
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

    /// The scope, told what [`take`](Self::take) reads first.
    pub fn prefetched(&self, scope: Scope<P>) -> Scope<P> {
        self.resting.prefetched(self.pool.prefetched(scope))
    }

    /// Takes a free id, as [`IdPool::take`] does; those whose rest is over are free, the others are not.
    pub fn take(
        &self,
        tx: &mut Tx<'_, P>,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<Taken<I>> {
        // The cheap question first: it hardly ever changes, so transactions that only ask it do not conflict.
        let Some(first) = self.resting.next(tx)? else { return self.pool.take(tx, lives) };
        if first <= tx.now() {
            for (id, _) in self.resting.pop_due(tx, RESTED_PER_TRANSACTION)? {
                self.pool.release(tx, &id)?;
            }
        }
        // The counter comes by ids that rest, too.
        self.pool.take(tx, |tx, id| Ok(self.resting.get(tx, id)?.is_some() || lives(tx, id)?))
    }

    /// Gives an id back, to be used again after its rest; at once where the pool declares none.
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

/// What stood at the head of the free list.
enum Popped<I> {
    Id(I),
    Rubbish,
    Nothing,
}
