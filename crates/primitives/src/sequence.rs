//! A sequence: ids of a bounded range, counted by one key that wraps.
//!
//! Promises:
//! 1. An id in use is never handed out. A callback of the caller decides that inside the same transaction.
//! 2. A counter that was lost or is out of range starts again inside the range. A counter that is not a
//!    number is [`Corrupt`](emberkeep_hot::Error::Corrupt), with its key in the error.
//! 3. One transaction tries at most [`TRIES_PER_TRANSACTION_MAX`] ids and stores how far it came. The caller
//!    continues in the next transaction; [`Search`] says when to give up: after the whole range, or after
//!    [`SEARCHED_IDS_MAX`] ids.
//!
//! One key, the caller's: the counter holds the id that was handed out last.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::{IdResult, Sequence};
//! use emberkeep_schema::{Number, Text, Utf8, family, partition};
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
//!     pub NEXT_SHIP = "ships:next" {
//!         kind: Text<Number<i64>>, partition: Galaxy, parts: (), ttl: persistent, owner: "ships"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let scope = Store::new(std::sync::Arc::new(Embedded::in_memory())).scope(Galaxy);
//! let build = || {
//!     scope.transact(|tx| {
//!         let ids = Sequence::new(1..=1_000, NEXT_SHIP.key());
//!         let taken = ids.take(tx, |tx, id: &u32| tx.exists(&SHIP.key(id)))?;
//!         if let IdResult::Id(id) = taken {
//!             tx.put(&SHIP.key(id), &"a ship".to_owned())?;
//!         }
//!         Ok::<_, Error>(taken)
//!     })
//! };
//! assert_eq!(build().await?, IdResult::Id(1));
//! assert_eq!(build().await?, IdResult::Id(2));
//! # Ok(())
//! # }
//! ```

use crate::limits::{PREFETCHED_IDS, SEARCHED_IDS_MAX, TRIES_PER_TRANSACTION_MAX};
use emberkeep_hot::command::Read;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Automatic, Family, Key, Number, Part, Partition, Text};
use std::ops::RangeInclusive;

/// Ids counted by one key.
#[derive(Clone, Debug)]
pub struct Sequence<N: Family> {
    range: RangeInclusive<i64>,
    next: Key<N>,
}

/// The result of one transaction's search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdResult<I> {
    /// A free id. It belongs to the caller after the commit.
    Id(I),
    /// All ids that one transaction may try are in use. Commit, which stores the position, and run another
    /// transaction unless [`Search::go_on`] is an error.
    NotYet(SearchProgress),
}

/// How many ids a transaction tried without success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchProgress(pub(crate) u64);

/// One caller's search through the range, over several transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    left: u64,
    ids: u64,
}

/// No free id was found: all that the search tried are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.advice())]
pub struct Exhausted {
    /// Ids that the search tried.
    pub looked: u64,
    /// Ids of the range.
    pub ids: u64,
}

impl Exhausted {
    fn advice(&self) -> String {
        let Exhausted { looked, ids } = self;
        if looked == ids {
            format!("all {ids} ids of the range are in use; remove something, or give the pool a wider range")
        } else {
            format!(
                "{looked} ids in a row are in use, of {ids}; remove something, or call again to search on"
            )
        }
    }
}

impl Search {
    /// Counts the tries of a transaction. An error after the whole range, or after the limit of a search.
    pub fn go_on(&mut self, looked: SearchProgress) -> Result<(), Exhausted> {
        self.left = self.left.saturating_sub(looked.0);
        if self.left > 0 {
            return Ok(());
        }
        Err(Exhausted { looked: self.ids.min(SEARCHED_IDS_MAX), ids: self.ids })
    }
}

impl<P, N> Sequence<N>
where
    P: Partition,
    N: Family<Partition = P, Kind = Text<Number<i64>>>,
    N::Ttl: Automatic,
{
    /// The ids whose canonical text is a number of `range`, which must not be empty.
    pub fn new(range: RangeInclusive<i64>, next: Key<N>) -> Self {
        debug_assert!(!range.is_empty());
        Sequence { range, next }
    }

    /// The start of a search for a free id.
    pub fn search(&self) -> Search {
        let ids = self.len();
        Search { left: ids.min(SEARCHED_IDS_MAX), ids }
    }

    /// The scope with a prefetch of what [`take`](Self::take) reads first: one round trip less on a remote
    /// engine.
    pub fn prefetched(&self, scope: Scope<P>) -> Scope<P> {
        scope.prefetch(&self.next, Read::Get)
    }

    /// Takes the next free id. `lives` must say whether the record of a candidate exists.
    ///
    /// The transaction must commit in both cases: the id is taken by the counter.
    pub fn take<I: Part>(
        &self,
        tx: &mut Tx<'_, P>,
        lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<IdResult<I>> {
        self.count_on(tx, TRIES_PER_TRANSACTION_MAX, lives)
    }

    /// Whether an id is in the range.
    pub fn holds<I: Part>(&self, id: &I) -> bool {
        let mut text = Vec::new();
        id.write(&mut text);
        let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        number.is_some_and(|number: i64| self.range.contains(&number))
    }

    /// Tries `tries` ids after the counter and moves the counter to the last of them.
    pub(crate) fn count_on<I: Part>(
        &self,
        tx: &mut Tx<'_, P>,
        tries: u64,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<IdResult<I>> {
        let mut number = self.last(tx)?;
        let tries = tries.min(self.len());
        for _ in 0..tries {
            let (here, id) = self.after(number)?;
            number = Some(here);
            match lives(tx, &id) {
                Ok(true) => {}
                Ok(false) => {
                    tx.put(&self.next, &here)?;
                    return Ok(IdResult::Id(id));
                }
                Err(Error::Suspended) => {
                    self.prefetch(tx, number, PREFETCHED_IDS, lives);
                    return Err(Error::Suspended);
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(seen) = number {
            tx.put(&self.next, &seen)?;
        }
        Ok(IdResult::NotYet(SearchProgress(tries)))
    }

    /// The number that was handed out last.
    pub(crate) fn last(&self, tx: &mut Tx<'_, P>) -> Result<Option<i64>> {
        tx.get(&self.next)
    }

    /// Prefetches whether the ids after this number are in use.
    pub(crate) fn prefetch<I: Part>(
        &self,
        tx: &mut Tx<'_, P>,
        mut last: Option<i64>,
        ids: usize,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) {
        for _ in 0..ids {
            let Ok((number, id)) = self.after(last) else { return };
            if tx.prefetch(|tx| lives(tx, &id)).is_none() {
                return;
            }
            last = Some(number);
        }
    }

    /// The number after the one that was handed out last, and its id.
    fn after<I: Part>(&self, last: Option<i64>) -> Result<(i64, I)> {
        let number = match last {
            Some(last) if self.range.contains(&last) && last < *self.range.end() => last + 1,
            _ => *self.range.start(),
        };
        let id = I::parse(&number.to_string()).ok_or_else(|| Error::Invalid {
            what: "id pool",
            problem: format!("its range holds {number}, which is not a {}", I::TYPE),
        })?;
        Ok((number, id))
    }

    fn len(&self) -> u64 {
        self.range.end().abs_diff(*self.range.start()).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_of_a_large_range_ends() {
        let ids = 1_000_000_001;
        let mut search = Search { left: SEARCHED_IDS_MAX, ids };
        let transactions = (1..).find(|_| search.go_on(SearchProgress(TRIES_PER_TRANSACTION_MAX)).is_err());
        assert_eq!(transactions, Some(SEARCHED_IDS_MAX / TRIES_PER_TRANSACTION_MAX));
        let error = search.go_on(SearchProgress(1)).unwrap_err();
        assert_eq!(error, Exhausted { looked: SEARCHED_IDS_MAX, ids });
        assert!(error.to_string().contains("call again"), "{error}");
    }
}
