//! Ids out of a bounded range: recycled ones first, the last released first, else the next one of a counter
//! that wraps.
//!
//! Promises:
//! 1. An id that lives is never handed out. The caller says what lives, and is asked inside the same step.
//! 2. A counter that was lost or is out of range re-enters the range. A counter that is no number is
//!    [`Corrupt`](emberkeep_hot::Error::Corrupt) and names its key: nobody knows what stood there.
//! 3. What stands in the free list and is no id, not of the range, or living, is dropped.
//! 4. One step looks at [`TRIES_PER_STEP_MAX`] ids at most and keeps how far it came: the caller goes on in a
//!    further step, and [`Search`] says when the whole range was seen.
//!
//! Keys, both the caller's: the counter holds the id that was handed out last; the free list is pushed and
//! popped at its head.

use emberkeep_hot::command::Read;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Automatic, Family, Id, Key, List, Number, Part, Partition, Text};
use std::ops::RangeInclusive;

/// Ids that one step looks at: keeps a step short where a long run of ids lives.
pub const TRIES_PER_STEP_MAX: u64 = 64;

/// A pool of ids: its range and its two keys.
#[derive(Clone, Debug)]
pub struct IdPool<N: Family, L: Family> {
    range: RangeInclusive<i64>,
    next: Key<N>,
    free: Key<L>,
}

/// What one step found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken<I> {
    /// A free id, the caller's from this commit on.
    Id(I),
    /// None among those that one step may look at. How far the search came is part of the commit; run a
    /// further step unless [`Search::go_on`] says that there is nothing left to see.
    NotYet(Looked),
}

/// Ids of the range that a step looked at in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked(u64);

/// One caller's way through the range, over as many steps as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    left: u64,
    ids: u64,
}

/// Every id of the range lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all {ids} ids of the range are in use; remove something, or give the pool a wider range")]
pub struct Exhausted {
    /// How many there are.
    pub ids: u64,
}

impl Search {
    /// Counts what a step looked at. An error when the search has seen the whole range.
    pub fn go_on(&mut self, looked: Looked) -> Result<(), Exhausted> {
        self.left = self.left.saturating_sub(looked.0);
        if self.left == 0 { Err(Exhausted { ids: self.ids }) } else { Ok(()) }
    }
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
        debug_assert!(!range.is_empty());
        IdPool { range, next, free }
    }

    /// The start of a search for a free id.
    pub fn search(&self) -> Search {
        let ids = self.len();
        Search { left: ids, ids }
    }

    /// The scope, told what [`take`](Self::take) reads first: one round trip less where the engine is far away.
    pub fn announced(&self, scope: Scope<P>) -> Scope<P> {
        scope.announce(&self.free, Read::LRange(0, 0)).announce(&self.next, Read::Get)
    }

    /// Takes a free id. `lives` is asked about each candidate and should look at the record's key.
    ///
    /// The step must commit in both cases: the id is taken by the counter or by leaving the free list.
    pub fn take(
        &self,
        tx: &mut Tx<'_, P>,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<Taken<I>> {
        let mut tries = TRIES_PER_STEP_MAX;
        while tries > 0 {
            match self.pop(tx)? {
                Popped::Nothing => return self.count_on(tx, tries, lives),
                Popped::Id(id) if !lives(tx, &id)? => return Ok(Taken::Id(id)),
                Popped::Id(_) | Popped::Rubbish => tries -= 1,
            }
        }
        Ok(Taken::NotYet(Looked(0)))
    }

    /// Gives an id back. The caller's step must be the one that ended its life: then it is pushed exactly once.
    /// An id that is not of the range (a foreign client's record) is not taken in.
    pub fn release(&self, tx: &mut Tx<'_, P>, id: &I) -> Result<()> {
        if self.holds(id) { tx.lpush(&self.free, id) } else { Ok(()) }
    }

    /// Takes the head of the free list.
    fn pop(&self, tx: &mut Tx<'_, P>) -> Result<Popped<I>> {
        match tx.lpop(&self.free) {
            Ok(None) => Ok(Popped::Nothing),
            Ok(Some(id)) if self.holds(&id) => Ok(Popped::Id(id)),
            Ok(Some(_)) => Ok(Popped::Rubbish),
            Err(Error::Corrupt { .. }) => {
                tx.ltrim(&self.free, 1, -1)?;
                Ok(Popped::Rubbish)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at `tries` ids after the counter, and moves it to the last one seen.
    fn count_on(
        &self,
        tx: &mut Tx<'_, P>,
        tries: u64,
        mut lives: impl FnMut(&mut Tx<'_, P>, &I) -> Result<bool>,
    ) -> Result<Taken<I>> {
        let mut number = tx.get(&self.next)?;
        let tries = tries.min(self.len());
        for _ in 0..tries {
            let (here, id) = self.after(number)?;
            number = Some(here);
            if !lives(tx, &id)? {
                tx.put(&self.next, &here)?;
                return Ok(Taken::Id(id));
            }
        }
        if let Some(seen) = number {
            tx.put(&self.next, &seen)?;
        }
        Ok(Taken::NotYet(Looked(tries)))
    }

    /// The number after the one that was handed out last, and its id.
    fn after(&self, last: Option<i64>) -> Result<(i64, I)> {
        let number = match last {
            Some(last) if self.range.contains(&last) && last < *self.range.end() => last + 1,
            _ => *self.range.start(),
        };
        let id = I::parse(&number.to_string()).ok_or_else(|| Error::Invalid {
            what: "id pool",
            problem: format!("its range holds {number}, which is no {}", I::TYPE),
        })?;
        Ok((number, id))
    }

    fn holds(&self, id: &I) -> bool {
        let mut text = Vec::new();
        id.write(&mut text);
        let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        number.is_some_and(|number: i64| self.range.contains(&number))
    }

    fn len(&self) -> u64 {
        self.range.end().abs_diff(*self.range.start()).saturating_add(1)
    }
}

/// What stood at the head of the free list.
enum Popped<I> {
    Id(I),
    Rubbish,
    Nothing,
}
