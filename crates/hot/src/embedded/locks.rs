//! The locks of one run of a body, found by running it.
//!
//! Rule: shards are ordered by number. A shard above the highest held is waited for; any other is only tried,
//! because waiting for it could close a circle. If trying fails, the run is worth nothing: it is suspended, its
//! shards are noted, and the next run takes all noted shards first, in order. The noted set only grows, so this
//! ends; after a bounded number of runs all shards are taken.
//!
//! Time: the run has one `now`, taken when it is first needed. A state that was read after that must be of the
//! same moment, so from then on no lock is waited for, and one that was free is refused if the clock has moved
//! on meanwhile. What a transaction saw is therefore true at one moment of the engine's clock, deadlines included.

use super::Inner;
use super::entries::NEVER;
use super::read::answer;
use super::shard::{Hashed, Shard};
use super::value::Value;
use crate::command::{Kind, KindFound, RawKey, Read, Reply, wrong_type};
use crate::error::{Error, Result};
use crate::limits::{SHARDS, VALUE_BYTES_MAX};
use crate::tx::ReadSource;
use bytes::Bytes;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

/// A set of shards.
pub(super) type Mask = u64;
/// All of them.
pub(super) const ALL: Mask = Mask::MAX >> (64 - SHARDS);

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

    /// Whether a lock was not to be had: nothing that the body did counts.
    pub(super) fn suspended(&self) -> bool {
        self.suspended
    }

    /// What the next run should take first.
    pub(super) fn wanted(&self) -> Mask {
        self.held | self.missed
    }

    /// The shard of a key, locked.
    #[inline]
    pub(super) fn shard(&mut self, hashed: Hashed) -> Result<&mut Shard> {
        let place = self.place(hashed.shard())?;
        Ok(&mut self.guards[place])
    }

    /// All shards that are held.
    pub(super) fn shards(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.guards.iter_mut().map(|guard| &mut **guard)
    }

    /// Where the guard of a shard stands; takes the lock if it is not held.
    #[inline]
    fn place(&mut self, index: usize) -> Result<usize> {
        let bit = 1 << index;
        let place = (self.held & (bit - 1)).count_ones() as usize;
        if self.held & bit == 0 {
            let guard = self.lock(index, bit)?;
            self.guards.insert(place, guard);
            self.held |= bit;
        }
        Ok(place)
    }

    fn lock(&mut self, index: usize, bit: Mask) -> Result<MutexGuard<'a, Shard>> {
        let mutex = &self.engine.shards[index];
        let guard = match mutex.try_lock() {
            // A run that is lost already only goes on to find out what else it needs.
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

    /// The living entry of a key lies at this position of the shard, if there is one.
    #[inline]
    pub(super) fn find(&mut self, hashed: Hashed, key: &[u8]) -> Result<(&mut Shard, Found)> {
        let place = self.place(hashed.shard())?;
        let shard = &mut *self.guards[place];
        let Some(position) = shard.find(hashed, key) else { return Ok((shard, Found::Absent)) };
        let entry = shard.at(position);
        let ended =
            entry.deadline != NEVER && entry.ended(*self.now.get_or_insert_with(|| self.engine.ticker.now()));
        Ok((shard, if ended { Found::Ended } else { Found::Living(position) }))
    }
}

/// What stands at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// An entry whose time has come, which nobody removed yet.
    Ended,
    /// An entry at this position of the shard.
    Living(usize),
}

impl ReadSource for Locked<'_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        let (shard, found) = self.find(self.engine.hash(key), key)?;
        Ok(match found {
            Found::Living(position) => answer(Some(shard.at(position)), read),
            _ => answer(None, read),
        })
    }

    fn text<'s>(&'s mut self, key: &RawKey, _: &'s mut Option<Bytes>) -> Result<Option<&'s [u8]>> {
        let (shard, found) = self.find(self.engine.hash(key), key)?;
        let Found::Living(position) = found else { return Ok(None) };
        text_of(key, &shard.at(position).value).map(Some)
    }

    fn now(&mut self) -> i64 {
        *self.now.get_or_insert_with(|| self.engine.ticker.now())
    }
}

/// The string that a value is.
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
