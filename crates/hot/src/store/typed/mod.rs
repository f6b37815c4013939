//! The typed face of a transaction: keys of declared families, values instead of bytes, TTL policies applied.
//!
//! The words are Redis' own, so that who knows the commands knows the methods. The partition is the scope's:
//! a key of another partition cannot be named here.

mod hash;
mod list;
mod set;
mod sorted_set;
mod text;

use super::decode::{self, with_family};
use super::families::Families;
use super::log::log_keys;
use super::member::Member;
use crate::command::*;
use crate::error::{Error, Result};
use crate::limits::SCRATCH_BYTES_MAX;
use crate::tx::RawTx;
use bytes::Bytes;
use emberkeep_schema::{
    Automatic, Channel, Codec, Family, Given, Hash, Key, KeyLayout, List, Number, Partition, Set, SortedSet,
    Text, Ttl, TtlPolicy,
};
use std::cell::Cell;
use std::time::Duration;

/// One run of a transaction's body over one partition.
pub struct Tx<'a, P> {
    raw: &'a mut dyn Access,
    layout: &'a KeyLayout,
    partition: &'a P,
    families: &'a mut Families,
}

/// What a typed transaction needs of a raw one; object-safe, so that `Tx` has one lifetime.
trait Access {
    fn read(&mut self, key: &RawKey, read: Read) -> Result<Reply>;
    fn read_many(&mut self, reads: &[(RawKey, Read)]) -> Result<Vec<Result<Reply>>>;
    fn text(&mut self, key: &RawKey) -> Result<Option<&[u8]>>;
    fn write(&mut self, key: RawKey, write: Write) -> Result<()>;
    fn record(&mut self, entry: LogAppend) -> Result<()>;
    fn publish(&mut self, channel: Bytes, payload: Bytes) -> Result<()>;
    fn now(&mut self) -> i64;
    fn random(&mut self) -> u64;
    fn look_ahead(&mut self) -> bool;
    fn look_back(&mut self);
}

impl Access for RawTx<'_> {
    fn read(&mut self, key: &RawKey, read: Read) -> Result<Reply> {
        RawTx::read(self, key, read)
    }
    fn read_many(&mut self, reads: &[(RawKey, Read)]) -> Result<Vec<Result<Reply>>> {
        RawTx::read_many(self, reads)
    }
    fn text(&mut self, key: &RawKey) -> Result<Option<&[u8]>> {
        RawTx::text(self, key)
    }
    fn write(&mut self, key: RawKey, write: Write) -> Result<()> {
        RawTx::write(self, key, write)
    }
    fn record(&mut self, entry: LogAppend) -> Result<()> {
        RawTx::record(self, entry)
    }
    fn publish(&mut self, channel: Bytes, payload: Bytes) -> Result<()> {
        RawTx::publish(self, channel, payload)
    }
    fn now(&mut self) -> i64 {
        RawTx::now(self)
    }
    fn random(&mut self) -> u64 {
        RawTx::random(self)
    }
    fn look_ahead(&mut self) -> bool {
        RawTx::look_ahead(self)
    }
    fn look_back(&mut self) {
        RawTx::look_back(self)
    }
}

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static ANSWER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends two empty buffers of the thread: one for a key, one for what stands there.
#[inline]
pub(in crate::store) fn with_buffers<R>(work: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> R) -> R {
    // Taken, not borrowed: a user's codec may come back here while it works.
    let (mut first, mut second) = (SCRATCH.take(), ANSWER.take());
    first.clear();
    second.clear();
    let result = work(&mut first, &mut second);
    if first.capacity() <= SCRATCH_BYTES_MAX {
        SCRATCH.set(first);
    }
    if second.capacity() <= SCRATCH_BYTES_MAX {
        ANSWER.set(second);
    }
    result
}

/// Builds bytes in a buffer that is kept, and copies them out once, exactly as long as they are.
pub(in crate::store) fn in_scratch<E>(fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Bytes, E> {
    // Taken, not borrowed: a user's codec may come back here while it fills.
    let mut scratch = SCRATCH.take();
    scratch.clear();
    let filled = fill(&mut scratch).map(|()| Bytes::copy_from_slice(&scratch));
    if scratch.capacity() <= SCRATCH_BYTES_MAX {
        SCRATCH.set(scratch);
    }
    filled
}

/// A key's bytes on an engine.
pub(in crate::store) fn rendered<F: Family>(
    layout: &KeyLayout,
    partition: &F::Partition,
    key: &Key<F>,
) -> RawKey {
    in_scratch::<Error>(|out| {
        key.render(layout, partition, out);
        Ok(())
    })
    .expect("rendering does not fail")
}

/// A value's bytes; the family is named in the error.
pub(in crate::store) fn encoded<F: Family, C: Codec>(value: &C::Value) -> Result<Bytes> {
    in_scratch(|out| C::encode(value, out)).map_err(|error| Error::Invalid {
        what: "value",
        problem: format!("{error} (family {})", F::DECLARATION.name),
    })
}

impl<'a, P: Partition> Tx<'a, P> {
    pub(in crate::store) fn new(
        raw: &'a mut RawTx<'_>,
        layout: &'a KeyLayout,
        partition: &'a P,
        families: &'a mut Families,
    ) -> Self {
        Tx { raw, layout, partition, families }
    }

    /// The partition of this transaction.
    pub fn partition(&self) -> &P {
        self.partition
    }

    /// The engine's milliseconds since 1970; one value for the whole run.
    pub fn now(&mut self) -> i64 {
        self.raw.now()
    }

    /// The next number of the transaction's random stream; a rerun draws the same ones.
    pub fn random(&mut self) -> u64 {
        self.raw.random()
    }

    /// The name of a key as the engine knows it.
    pub fn raw_name<F: Family<Partition = P>>(&self, key: &Key<F>) -> RawKey {
        self.key(key)
    }

    /// Whether a name is that of a key of this family in this partition.
    pub fn owns<F: Family<Partition = P>>(&self, name: &[u8]) -> bool {
        // A pattern may leave its partition out; the name made anew leaves no doubt.
        F::parse(self.layout, name).is_some_and(|(_, key)| self.key(&key) == name)
    }

    fn key<F: Family<Partition = P>>(&self, key: &Key<F>) -> RawKey {
        rendered(self.layout, self.partition, key)
    }

    /// The keys of this partition's log: the list and its counter.
    pub(in crate::store) fn log_keys(&self) -> (RawKey, RawKey) {
        let mut text = Vec::new();
        self.partition.write(&mut text);
        log_keys(self.layout, &text)
    }

    fn read<F: Family<Partition = P>>(&mut self, key: &Key<F>, read: Read) -> Result<(RawKey, Reply)> {
        let raw = self.key(key);
        let reply = self.raw.read(&raw, read).map_err(with_family::<F>)?;
        Ok((raw, reply))
    }

    fn read_many<F: Family<Partition = P>>(
        &mut self,
        keys: &[Key<F>],
        read: &Read,
    ) -> Result<Vec<(RawKey, Result<Reply>)>> {
        let reads: Vec<_> = keys.iter().map(|key| (self.key(key), read.clone())).collect();
        let replies = self.raw.read_many(&reads).map_err(with_family::<F>)?;
        Ok(reads.into_iter().map(|(key, _)| key).zip(replies).collect())
    }

    /// Whether the key exists.
    pub fn exists<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<bool> {
        decode::flag(self.read(key, Read::Exists)?.1)
    }

    /// Whether each of these keys exists. On an engine that is far away they are asked for together, in one round
    /// trip. At most [`READS_TOGETHER_MAX`](crate::limits::READS_TOGETHER_MAX) keys.
    pub fn exists_many<F: Family<Partition = P>>(&mut self, keys: &[Key<F>]) -> Result<Vec<bool>> {
        let replies = self.read_many(keys, &Read::Exists)?;
        replies.into_iter().map(|(_, reply)| decode::flag(reply?)).collect()
    }

    /// When the key ends, in milliseconds since 1970. `None` = absent or without an end.
    pub fn deadline<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<Option<i64>> {
        decode::deadline(self.read(key, Read::ExpireTime)?.1)
    }

    /// Removes the key.
    pub fn del<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<()> {
        self.raw.write(self.key(key), Write::Del)
    }

    /// Gives an existing key of a `refresh` family its full life again.
    pub fn touch<F: Family<Partition = P, Ttl = emberkeep_schema::Refresh>>(
        &mut self,
        key: &Key<F>,
    ) -> Result<()> {
        self.refresh(key)
    }

    /// Moves the end of an existing key of a `given` family.
    pub fn expire_at<F: Family<Partition = P, Ttl = Given>>(
        &mut self,
        key: &Key<F>,
        at_ms: i64,
    ) -> Result<()> {
        self.raw.write(self.key(key), Write::ExpireAt(at_ms))
    }

    /// Writes to a collection, then sees to its deadline as the family declares.
    fn write<F: Family<Partition = P>>(&mut self, key: &Key<F>, write: Write) -> Result<()> {
        let fixed = match F::DECLARATION.ttl {
            Ttl::Fixed { .. } => self.deadline(key)?,
            _ => None,
        };
        // Of all writes only these can be refused by what the key holds.
        self.families.note::<F>();
        self.raw.write(self.key(key), write)?;
        match fixed {
            // Kept by the write itself. Said again, it would be refused in the key's last millisecond.
            Some(_) => Ok(()),
            None => self.refresh(key),
        }
    }

    fn refresh<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<()> {
        match F::DECLARATION.ttl {
            Ttl::Fixed { ms } | Ttl::Refresh { ms } => {
                let at = self.now() + ms;
                self.raw.write(self.key(key), Write::ExpireAt(at))
            }
            Ttl::Persistent | Ttl::Given => Ok(()),
        }
    }

    /// Appends an entry to the partition's log in the same commit. Beyond
    /// [`LOG_ENTRIES_DEFAULT`](crate::limits::LOG_ENTRIES_DEFAULT) the oldest go.
    pub fn record(&mut self, entry: impl Into<Bytes>) -> Result<()> {
        self.record_bounded(entry, crate::limits::LOG_ENTRIES_DEFAULT, Overflow::DropOldest)
    }

    /// Appends an entry to a log with a bound of the caller's, at least 1.
    pub fn record_bounded(
        &mut self,
        entry: impl Into<Bytes>,
        entries_max: usize,
        overflow: Overflow,
    ) -> Result<()> {
        self.raw.record(LogAppend { entry: entry.into(), entries_max, overflow })
    }

    /// Sends a message when the transaction commits, or never.
    pub fn publish<F, C>(&mut self, channel: &Key<F>, message: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Channel<C>>,
        F::Ttl: TtlPolicy,
        C: Codec,
    {
        let payload = encoded::<F, C>(message)?;
        self.raw.publish(self.key(channel), payload)
    }

    /// After a read that is not known: looks at what the transactions behind this one will read, so that it is asked for in the
    /// same round trip. Without it, transactions that each take the next of something go one by one on engines that are far
    /// away. Whatever `look` reads or writes has no other effect, and on engines in process it is not run: `None`.
    pub fn foresee<T>(&mut self, look: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if !self.raw.look_ahead() {
            return None;
        }
        let seen = look(self);
        self.raw.look_back();
        Some(seen)
    }

    /// A read in the words of the vocabulary, for tools that know no family.
    pub fn raw_read(&mut self, key: &RawKey, read: Read) -> Result<Reply> {
        self.raw.read(key, read)
    }

    /// Many reads in the words of the vocabulary, asked for together; each has a result of its own.
    pub fn raw_read_many(&mut self, reads: &[(RawKey, Read)]) -> Result<Vec<Result<Reply>>> {
        self.raw.read_many(reads)
    }

    /// A write in the words of the vocabulary. No TTL policy is applied: for tools and tests, not for games.
    pub fn raw_write(&mut self, key: RawKey, write: Write) -> Result<()> {
        self.raw.write(key, write)
    }
}
