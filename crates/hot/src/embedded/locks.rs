//! The shard locks of one run of a body. The run itself shows which locks it needs.
//!
//! Deadlock avoidance: shards are ordered by number. A run waits only for a shard above the highest one that
//! it has; any other lock is only tried. If that fails, the run is suspended, and the next run first takes
//! all shards that this one had or missed, in order. That set only grows, so this ends; after a bounded
//! number of runs all shards are taken.
//!
//! Logs have the highest shards. An entry that is appended without a read needs its lock only for the commit,
//! after all others: the run waits for it in place, and appending never makes a transaction run again.
//!
//! Time: a run has one `now`, taken when it is first needed. Everything it reads after that must be of the
//! same moment. So from then on the run waits for no lock, and a free lock counts as missed if the clock has
//! moved. What a transaction reads is therefore true at one moment of the engine's clock, deadlines included.

use super::Inner;
use super::read::reply_to;
use super::shard::{KeyHash, Shard};
use super::slab::{Entry, NEVER};
use super::value::Value;
use crate::command::{Kind, KindFound, RawKey, Read, Reply, wrong_type};
use crate::error::{Error, Result};
use crate::limits::{SHARDS, SHARDS_OF_STATE, VALUE_BYTES_MAX};
use crate::tx::ReadSource;
use bytes::Bytes;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

/// A set of shards.
pub(super) type Mask = u128;
/// Every shard, for commands that need a consistent state of all keys.
pub(super) const ALL: Mask = Mask::MAX >> (128 - SHARDS);
/// Those of state, which are below those of logs.
const STATE: Mask = (1 << SHARDS_OF_STATE) - 1;

/// Whether a set has this shard. By halves: 128-bit shifts are several instructions, and every read comes here.
#[inline]
fn has(mask: Mask, index: usize) -> bool {
    let half = if index < 64 { mask as u64 } else { (mask >> 64) as u64 };
    half >> (index % 64) & 1 == 1
}

/// How many shards of a set are below this one.
#[inline]
fn rank(mask: Mask, index: usize) -> usize {
    let below = |half: u64| (half & ((1 << (index % 64)) - 1)).count_ones();
    let rank =
        if index < 64 { below(mask as u64) } else { (mask as u64).count_ones() + below((mask >> 64) as u64) };
    rank as usize
}

/// The shards that a run holds, ascending.
pub(super) struct Locked<'a> {
    pub(super) engine: &'a Inner,
    guards: SmallVec<[MutexGuard<'a, Shard>; 4]>,
    held: Mask,
    missed: Mask,
    suspended: bool,
    now: Option<i64>,
}

impl<'a> Locked<'a> {
    /// Waits for all shards of `wanted`, in order.
    pub(super) fn take(engine: &'a Inner, wanted: Mask) -> Locked<'a> {
        let mut locked =
            Locked { engine, guards: SmallVec::new(), held: wanted, missed: 0, suspended: false, now: None };
        let mut left = wanted;
        while left != 0 {
            locked.guards.push(engine.shards[left.trailing_zeros() as usize].lock());
            left &= left - 1;
        }
        locked
    }

    /// Whether a lock was missed: then the results of the body do not count.
    pub(super) fn suspended(&self) -> bool {
        self.suspended
    }

    /// The shards that the next run takes first.
    pub(super) fn wanted(&self) -> Mask {
        self.held | self.missed
    }

    /// The shard of a key, locked.
    #[inline]
    pub(super) fn shard(&mut self, hashed: KeyHash) -> Result<&mut Shard> {
        let place = self.place(hashed.shard())?;
        Ok(&mut self.guards[place])
    }

    /// The shards that are locked now.
    pub(super) fn shards(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.guards.iter_mut().map(|guard| &mut **guard)
    }

    /// The index of a shard's guard; takes the lock if necessary.
    #[inline]
    fn place(&mut self, index: usize) -> Result<usize> {
        let place = rank(self.held, index);
        if !has(self.held, index) {
            let bit = 1 << index;
            let guard = self.lock(index, bit)?;
            self.guards.insert(place, guard);
            self.held |= bit;
        }
        Ok(place)
    }

    fn lock(&mut self, index: usize, bit: Mask) -> Result<MutexGuard<'a, Shard>> {
        let mutex = &self.engine.shards[index];
        let guard = match mutex.try_lock() {
            // A suspended run continues only to find out which other shards it needs: it does not wait.
            None if !self.suspended && self.now.is_none() && bit > self.held => Some(mutex.lock()),
            tried => tried,
        };
        let in_time = |_: &MutexGuard<'a, Shard>| self.now.is_none_or(|now| self.engine.ticker.now() == now);
        guard.filter(in_time).ok_or_else(|| {
            self.suspended = true;
            self.missed |= bit;
            Error::Suspended
        })
    }

    /// Locks the shard of a log for an append; `true` = the body did not have it. Nothing of the log was read,
    /// so it may be waited for although the run has its time.
    pub(super) fn lock_for_append(&mut self, hashed: KeyHash) -> Result<bool> {
        let (index, bit) = (hashed.shard(), 1 << hashed.shard());
        if self.held & bit != 0 {
            return Ok(false);
        }
        let mutex = &self.engine.shards[index];
        let guard = match mutex.try_lock() {
            None if bit > self.held => mutex.lock(),
            Some(guard) => guard,
            None => {
                self.suspended = true;
                self.missed |= bit;
                return Err(Error::Suspended);
            }
        };
        self.guards.insert(rank(self.held, index), guard);
        self.held |= bit;
        Ok(true)
    }

    /// Whether it has the lock of a log.
    pub(super) fn holds_logs(&self) -> bool {
        self.held & !STATE != 0
    }

    /// Gives back the locks of logs, if there are others: the first lock counts the commit. The run may lock
    /// nothing more.
    pub(super) fn release_logs(&mut self) {
        let others = self.held & STATE;
        if others != 0 {
            self.guards.truncate(others.count_ones() as usize);
            self.held = others;
        }
    }

    /// The entry of a log after [`Locked::lock_for_append`], and whether it has expired. A lock that was waited
    /// for shows a later moment than that of the body.
    pub(super) fn log(
        &mut self,
        hashed: KeyHash,
        key: &[u8],
        was_waited_for: bool,
    ) -> Result<(Option<&Entry>, bool)> {
        let engine = self.engine;
        let place = self.place(hashed.shard())?;
        let Some(position) = self.guards[place].find(hashed, key) else { return Ok((None, false)) };
        let deadline = self.guards[place].at(position).deadline;
        let is_expired = deadline != NEVER && {
            let now = self.now();
            self.guards[place].at(position).is_expired(if was_waited_for { engine.ticker.now() } else { now })
        };
        Ok((Some(self.guards[place].at(position)).filter(|_| !is_expired), is_expired))
    }

    /// Looks up a key in its shard.
    #[inline]
    pub(super) fn find(&mut self, hashed: KeyHash, key: &[u8]) -> Result<(&mut Shard, Lookup)> {
        let place = self.place(hashed.shard())?;
        let shard = &mut *self.guards[place];
        let Some(position) = shard.find(hashed, key) else { return Ok((shard, Lookup::Absent)) };
        let entry = shard.at(position);
        let ended = entry.deadline != NEVER
            && entry.is_expired(*self.now.get_or_insert_with(|| self.engine.ticker.now()));
        Ok((shard, if ended { Lookup::Expired } else { Lookup::Live(position) }))
    }
}

/// The entry of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// There is no entry.
    Absent,
    /// An entry that has expired and is not removed yet.
    Expired,
    /// An entry at this position of the shard.
    Live(usize),
}

impl ReadSource for Locked<'_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        let (shard, found) = self.find(self.engine.hash(key), key)?;
        Ok(match found {
            Lookup::Live(position) => reply_to(Some(shard.at(position)), read),
            _ => reply_to(None, read),
        })
    }

    fn text<'s>(&'s mut self, key: &RawKey, _: &'s mut Option<Bytes>) -> Result<Option<&'s [u8]>> {
        let (shard, found) = self.find(self.engine.hash(key), key)?;
        let Lookup::Live(position) = found else { return Ok(None) };
        text_of(key, &shard.at(position).value).map(Some)
    }

    fn now(&mut self) -> i64 {
        *self.now.get_or_insert_with(|| self.engine.ticker.now())
    }
}

/// The string of a value, or the error if it is another type.
#[inline]
pub(super) fn text_of<'a>(key: &[u8], value: &'a Value) -> Result<&'a [u8]> {
    match value {
        Value::Text(text) if text.len() <= VALUE_BYTES_MAX => Ok(text),
        Value::Text(text) => Err(Error::TooLarge {
            key: crate::error::show(key),
            what: Read::Get.name(),
            found: text.len(),
            unit: "bytes",
            max: VALUE_BYTES_MAX,
        }),
        other => Err(wrong_type(key, Kind::Text, KindFound::Kind(other.kind()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_set_count_as_the_whole() {
        for mask in [0, 1, ALL, STATE, !STATE & ALL, 0xF0F0_1234_5678_9ABC_DEF0_0F0F_AAAA] {
            for index in 0..SHARDS {
                let bit: Mask = 1 << index;
                assert_eq!(has(mask, index), mask & bit != 0, "{mask:x} {index}");
                assert_eq!(rank(mask, index), (mask & (bit - 1)).count_ones() as usize, "{mask:x} {index}");
            }
        }
    }
}
