//! Cooldowns: markers that expire by themselves and are removed together with their owner.
//!
//! Promises:
//! 1. Something cools down while its marker exists. The marker of an external client (`SET … PX`) counts too.
//! 2. A store that cannot be reached is an error, never "not cooling down".
//! 3. [`clear_all`](Cooldowns::clear_all) removes every marker of one owner that was started here, without a
//!    scan of the keyspace. It finds markers of external clients after [`adopt`](Cooldowns::adopt), which a
//!    sweep calls.
//!
//! Keys, both the caller's: a marker per thing that cools down (a string with a TTL), and per owner an
//! index, a sorted set of those things by the time they end. The index is auxiliary: only the marker
//! decides. Entries that cannot be decoded are dropped, and so is an index of another type; its markers are
//! then unknown, as those of external clients. The TTL of the index is the longest possible cooldown.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::{Clock, Embedded, ManualClock}};
//! use emberkeep_primitives::Cooldowns;
//! use emberkeep_schema::{Id, Key, Number, SortedSet, Text, family, partition};
//! use std::{sync::Arc, time::Duration};
//!
//! partition! {
//!     /// One galaxy.
//!     pub struct Galaxy = "galaxy";
//! }
//! family! {
//!     /// A weapon that cools down.
//!     pub WEAPON = "weapon-cd:{ship}:{weapon}" {
//!         kind: Text<Number<i64>>, partition: Galaxy, parts: (ship: u32, weapon: u32), ttl: given, owner: "ships"
//!     }
//! }
//! family! {
//!     /// The weapons of a ship that cool down; none for longer than an hour.
//!     pub WEAPONS = "ember:weapon-cds:{ship}" {
//!         kind: SortedSet<Id<u32>>, partition: Galaxy, parts: (ship: u32), ttl: refresh(3_600_000), owner: "ships"
//!     }
//! }
//! fn weapons(ship: u32) -> Cooldowns<WEAPONS, impl Fn(&u32) -> Key<WEAPON>> {
//!     Cooldowns::new(WEAPONS.key(ship), move |weapon| WEAPON.key(ship, weapon))
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let clock = ManualClock::at(1_000);
//! let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open()?;
//! let scope = Store::new(Arc::new(engine)).scope(Galaxy);
//! let left = || scope.transact(|tx| weapons(7).remaining(tx, &1));
//! scope.transact(|tx| weapons(7).start(tx, &1, Duration::from_secs(3))).await?;
//! clock.advance(1_000);
//! assert_eq!(left().await?, Some(Duration::from_secs(2)));
//! // The ship is gone, and with it all that it waited for.
//! assert_eq!(scope.transact(|tx| weapons(7).clear_all(tx)).await?.count, 1);
//! assert_eq!(left().await?, None);
//! # Ok(())
//! # }
//! ```

use crate::limits::{CLEARED_PER_TRANSACTION_MAX, TIDIED_PER_START};
use emberkeep_hot::command::ZSlice;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, ReadTx, Result, Tx};
use emberkeep_schema::{Codec, Family, Given, Key, Number, Partition, Refresh, SortedSet, Text, Ttl};
use std::time::Duration;

/// The cooldowns of one owner.
#[derive(Clone)]
pub struct Cooldowns<I: Family, K> {
    index: Key<I>,
    marker: K,
}

/// The result of [`Cooldowns::clear_all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClearResult {
    /// Index entries that were removed with their markers.
    pub count: usize,
    /// Whether there are more: call it again in another transaction.
    pub more: bool,
}

impl<P, I, C, M, K> Cooldowns<I, K>
where
    P: Partition,
    I: Family<Partition = P, Kind = SortedSet<C>, Ttl = Refresh>,
    C: Codec,
    M: Family<Partition = P, Kind = Text<Number<i64>>, Ttl = Given>,
    K: Fn(&C::Value) -> Key<M>,
{
    /// The cooldowns of the owner of an index. `marker` names the marker of a thing.
    pub fn new(index: Key<I>, marker: K) -> Self {
        Cooldowns { index, marker }
    }

    /// Starts or restarts a cooldown. A time of zero starts none.
    pub fn start(&self, tx: &mut Tx<'_, P>, thing: &C::Value, time: Duration) -> Result<()> {
        if time.is_zero() {
            return Ok(());
        }
        let ms = checked(time, longest::<I>())?;
        let now = tx.now();
        tx.put_for(&(self.marker)(thing), &1, Duration::from_millis(ms as u64))?;
        self.tidy(tx, now)?;
        tx.zadd(&self.index, thing, (now + ms) as f64)
    }

    /// The remaining time; `None` = not cooling down. A marker without a deadline, which only an external
    /// client can set, gives [`Duration::MAX`].
    pub fn remaining(&self, tx: &mut ReadTx<'_, P>, thing: &C::Value) -> Result<Option<Duration>> {
        let marker = (self.marker)(thing);
        let (cooling, end) = tx.together(|tx| (tx.exists(&marker), tx.deadline(&marker)))?;
        if !cooling {
            return Ok(None);
        }
        let Some(end) = end else { return Ok(Some(Duration::MAX)) };
        // A marker exists during its last millisecond.
        let left = (end - tx.now()).max(1);
        Ok(Some(Duration::from_millis(left as u64)))
    }

    /// Ends one cooldown; `true` if it was one.
    pub fn clear(&self, tx: &mut Tx<'_, P>, thing: &C::Value) -> Result<bool> {
        let marker = (self.marker)(thing);
        let cooling = tx.exists(&marker)?;
        tx.del(&marker)?;
        if self.indexed(tx, thing)? {
            tx.zrem(&self.index, thing)?;
        }
        Ok(cooling)
    }

    /// Ends the owner's cooldowns, as many as one transaction may.
    pub fn clear_all(&self, tx: &mut Tx<'_, P>) -> Result<ClearResult> {
        let mut known = self.first(tx, CLEARED_PER_TRANSACTION_MAX + 1)?;
        let more = known.len() > CLEARED_PER_TRANSACTION_MAX;
        known.truncate(CLEARED_PER_TRANSACTION_MAX);
        for (thing, _) in &known {
            if let Member::Known(thing) = thing {
                tx.del(&(self.marker)(thing))?;
            }
            if more {
                self.forget(tx, thing)?;
            }
        }
        if !more {
            tx.del(&self.index)?;
        }
        Ok(ClearResult { count: known.len(), more })
    }

    /// Enters an existing marker of an external client into the index; `true` if it was not there.
    pub fn adopt(&self, tx: &mut Tx<'_, P>, thing: &C::Value) -> Result<bool> {
        let marker = (self.marker)(thing);
        if !tx.exists(&marker)? || self.indexed(tx, thing)? {
            return Ok(false);
        }
        let end = match tx.deadline(&marker)? {
            Some(end) => end,
            None => tx.now() + longest::<I>(),
        };
        tx.zadd(&self.index, thing, end as f64)?;
        Ok(true)
    }

    /// Removes some expired entries from the index.
    fn tidy(&self, tx: &mut Tx<'_, P>, now: i64) -> Result<()> {
        for (thing, _) in self.first(tx, TIDIED_PER_START)?.iter().take_while(|(_, end)| (*end as i64) < now)
        {
            self.forget(tx, thing)?;
        }
        Ok(())
    }

    /// The entries that end first.
    fn first(&self, tx: &mut Tx<'_, P>, count: usize) -> Result<Vec<(Member<C::Value>, f64)>> {
        // By rank, not by score: a range that ends now would be a different read in every run of the body.
        let found = tx.zrange_lossy(&self.index, ZSlice::Rank(0, count as i64 - 1), false);
        self.or_dropped(tx, found)
    }

    /// Whether a thing is in the index.
    fn indexed(&self, tx: &mut Tx<'_, P>, thing: &C::Value) -> Result<bool> {
        let found = tx.zscore(&self.index, thing);
        Ok(self.or_dropped(tx, found)?.is_some())
    }

    /// What was read from the index. A corrupt index is removed and reads as empty.
    fn or_dropped<T: Default>(&self, tx: &mut Tx<'_, P>, found: Result<T>) -> Result<T> {
        match found {
            Err(error) if error.is_corrupt() => tx.del(&self.index).map(|()| T::default()),
            found => found,
        }
    }

    /// Removes an entry from the index.
    fn forget(&self, tx: &mut Tx<'_, P>, entry: &Member<C::Value>) -> Result<()> {
        match entry {
            Member::Known(thing) => tx.zrem(&self.index, thing),
            Member::External(bytes) => tx.zrem_raw(&self.index, bytes.clone()),
        }
    }
}

/// The longest cooldown whose entry the index outlives.
fn longest<I: Family>() -> i64 {
    match I::DECLARATION.ttl {
        Ttl::Refresh { ms } | Ttl::Fixed { ms } => ms,
        Ttl::Persistent | Ttl::Given => i64::MAX,
    }
}

/// Whole milliseconds, rounded up, so that no cooldown ends early.
fn checked(time: Duration, longest_ms: i64) -> Result<i64> {
    let ms = i64::try_from(time.as_nanos().div_ceil(1_000_000)).ok();
    ms.filter(|ms| *ms <= longest_ms).ok_or_else(|| Error::Invalid {
        what: "cooldown",
        problem: format!("{time:?}, expected at most {:?}", Duration::from_millis(longest_ms as u64)),
    })
}
