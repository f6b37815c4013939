//! Transactions. A body reads and writes through [`Tx`]: keys of declared families, values instead of bytes.
//!
//! Responsible for: the operations of a transaction, read-your-writes, TTL policies, limits on each write,
//! one time and one random stream per transaction.
//! Not responsible for: locks, networks, retries (engines); starting a transaction (`store`).
//!
//! The methods are named after the commands of Redis. Every key belongs to the partition of the scope, so a
//! transaction cannot reach another partition.
//!
//! Reading order: `raw` (a run over raw keys), `source` (where its reads come from), `overlay` (reads over
//! own writes), `typed` (the operations of [`Tx`]), `combine` (reads together, parts that can be undone),
//! `closure` (a body as a [`Transaction`]), `operation` (counters of named transactions).

mod closure;
mod combine;
pub(crate) mod decode;
pub(crate) mod encode;
mod families;
pub(crate) mod log;
pub(crate) mod member;
pub(crate) mod operation;
pub(crate) mod overlay;
mod raw;
mod rights;
mod source;
mod transaction;
mod typed;

pub(crate) use closure::{ClosureTransaction, Run};
pub use combine::ReadResults;
pub use overlay::absent;
#[doc(hidden)]
pub use overlay::{in_lex, in_scores, resolve as resolve_range};
pub use raw::{RawTx, read_through};
pub(crate) use rights::Rights;
pub use source::ReadSource;
pub use transaction::{Event, Transaction, check_outside, run_once};
pub(crate) use typed::set_declared;

use crate::command::*;
use crate::error::Result;
use crate::limits::COMMAND_ARGUMENTS_MAX;
use bytes::Bytes;
use emberkeep_schema::{
    Channel, Codec, Declaration, Family, Given, Key, KeyLayout, Partition, Ttl, TtlPolicy,
};
use encode::{encoded, rendered};
use families::{Families, WrittenFamily};
use member::Member;
use std::ops::{Deref, DerefMut};

/// One run of a body that reads one partition: the part of a [`Tx`] that does not write. The closure of
/// [`Scope::read`](crate::Scope::read) gets one, and a [`Tx`] can be passed where a `ReadTx` is expected.
pub struct ReadTx<'a, P> {
    raw: RawTx<'a>,
    layout: &'a KeyLayout,
    partition: &'a P,
    families: &'a mut Families,
    /// What may be written; `None` = everything.
    rights: Option<Rights>,
}

/// One run of a transaction's body over one partition. It reads as a [`ReadTx`] does, and writes.
#[doc = include_str!("../../docs/tx.md")]
pub struct Tx<'a, P> {
    read: ReadTx<'a, P>,
}

impl<'a, P> Deref for Tx<'a, P> {
    type Target = ReadTx<'a, P>;

    fn deref(&self) -> &ReadTx<'a, P> {
        &self.read
    }
}

impl<'a, P> DerefMut for Tx<'a, P> {
    fn deref_mut(&mut self) -> &mut ReadTx<'a, P> {
        &mut self.read
    }
}

impl<P: Partition> ReadTx<'_, P> {
    /// The partition of this transaction.
    ///
    /// Cost: local.
    pub fn partition(&self) -> &P {
        self.partition
    }

    /// The engine's milliseconds since 1970; one value for the whole run.
    ///
    /// Cost: local. On a remote engine it is an estimate, which the commit compares with the server's clock.
    pub fn now(&mut self) -> i64 {
        self.raw.now()
    }

    /// The next number of the transaction's random stream. Every run of the body draws the same numbers.
    ///
    /// Cost: local.
    pub fn random(&mut self) -> u64 {
        self.raw.random()
    }

    /// The bytes of a key on the engine.
    ///
    /// Cost: local.
    pub fn raw_name<F: Family<Partition = P>>(&self, key: &Key<F>) -> RawKey {
        self.key(key)
    }

    /// Whether a name is that of a key of this family in this partition.
    ///
    /// Cost: local.
    pub fn owns<F: Family<Partition = P>>(&self, name: &[u8]) -> bool {
        // A pattern may leave its partition out, so the parsed key is rendered again and compared.
        F::parse(self.layout, name).is_some_and(|(_, key)| self.key(&key) == name)
    }

    /// Whether this transaction may write whole keys of the key's family: its scope acts as no service, or as the
    /// owner, or the family is granted to the operation. Where a function only tidies up while it reads, it asks
    /// this first, and leaves stale entries to their owner.
    ///
    /// Cost: local.
    pub fn may_write<F: Family<Partition = P>>(&self, _key: &Key<F>) -> bool {
        self.rights.is_none_or(|rights| rights.covers(F::DECLARATION))
    }

    fn key<F: Family<Partition = P>>(&self, key: &Key<F>) -> RawKey {
        rendered(self.layout, self.partition, key)
    }

    fn read<F: Family<Partition = P>>(&mut self, key: &Key<F>, read: Read) -> Result<(RawKey, Reply)> {
        let raw = self.key(key);
        let reply = self.raw.read_of(&raw, read, F::DECLARATION.name)?;
        Ok((raw, reply))
    }

    fn read_many<F: Family<Partition = P>>(
        &mut self,
        keys: &[Key<F>],
        read: &Read,
    ) -> Result<Vec<(RawKey, Result<Reply>)>> {
        let keys = keys.iter().map(|key| self.key(key)).collect();
        self.raw.read_many_of(keys, read, F::DECLARATION.name)
    }

    /// Whether the key exists.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn exists<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<bool> {
        decode::flag(self.read(key, Read::Exists)?.1)
    }

    /// Whether each of these keys exists. A remote engine is asked once for all of them. At most
    /// [`READS_TOGETHER_MAX`](crate::limits::READS_TOGETHER_MAX) keys.
    ///
    /// Cost: reads made together. On a remote engine one round trip for all of them, none if they are cached.
    pub fn exists_many<F: Family<Partition = P>>(&mut self, keys: &[Key<F>]) -> Result<Vec<bool>> {
        let replies = self.read_many(keys, &Read::Exists)?;
        replies.into_iter().map(|(_, reply)| decode::flag(reply?)).collect()
    }

    /// When the key expires, in milliseconds since 1970. `None` = the key is absent or has no deadline.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn deadline<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<Option<i64>> {
        decode::deadline(self.read(key, Read::ExpireTime)?.1)
    }
}

impl<P: Partition> Tx<'_, P> {
    /// Refuses a write of whole keys of a family that this transaction may not write. Every operation that buffers
    /// an effect begins with it, or with [`check_write`](Tx::check_write).
    #[inline]
    fn check_family<F: Family<Partition = P>>(&self) -> Result<()> {
        self.rights.map_or(Ok(()), |rights| rights.check(F::DECLARATION))
    }

    /// The same for a write, which may be one of granted fields.
    #[inline]
    fn check_write(&self, family: &'static Declaration, write: &Write) -> Result<()> {
        self.rights.map_or(Ok(()), |rights| rights.check_write(family, write))
    }

    /// Removes the key.
    ///
    /// Cost: local; sent with the commit. After an append to the same log two reads, made together.
    pub fn del<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<()> {
        self.check_family::<F>()?;
        let raw = self.key(key);
        self.raw.write(raw, Write::Del).map_err(decode::with_family::<F>)
    }

    /// Restarts the TTL of an existing key of a `refresh` family.
    ///
    /// Cost: local; sent with the commit.
    pub fn touch<F: Family<Partition = P, Ttl = emberkeep_schema::Refresh>>(
        &mut self,
        key: &Key<F>,
    ) -> Result<()> {
        self.check_family::<F>()?;
        let raw = self.key(key);
        refresh(&mut self.raw, raw, F::DECLARATION.ttl)
    }

    /// Sets the deadline of an existing key of a `given` family.
    ///
    /// Cost: local; sent with the commit.
    pub fn expire_at<F: Family<Partition = P, Ttl = Given>>(
        &mut self,
        key: &Key<F>,
        at_ms: i64,
    ) -> Result<()> {
        self.check_family::<F>()?;
        let raw = self.key(key);
        self.raw.write(raw, Write::ExpireAt(at_ms))
    }

    /// Writes to a key and sets its deadline as the family declares.
    fn write<F: Family<Partition = P>>(&mut self, key: &Key<F>, write: Write) -> Result<()> {
        self.check_write(F::DECLARATION, &write)?;
        let raw = self.key(key);
        write_declared(&mut self.read.raw, self.read.families, raw, write, WrittenFamily::of::<F>())
    }

    /// Writes any number of items by as few commands as possible. Nothing happens if there are none.
    fn write_many<F: Family<Partition = P>, T>(
        &mut self,
        key: &Key<F>,
        items: impl Iterator<Item = Result<T>>,
        items_max: usize,
        write: fn(Vec<T>) -> Write,
    ) -> Result<()> {
        let mut items = items.peekable();
        while items.peek().is_some() {
            let part = items.by_ref().take(items_max).collect::<Result<_>>()?;
            self.write(key, write(part))?;
        }
        Ok(())
    }

    /// Publishes a message if the transaction commits.
    ///
    /// Cost: local; sent with the commit.
    pub fn publish<F, C>(&mut self, channel: &Key<F>, message: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Channel<C>>,
        F::Ttl: TtlPolicy,
        C: Codec,
    {
        self.check_family::<F>()?;
        let (channel, payload) = (self.key(channel), encoded::<F, C>(message)?);
        self.raw.publish(channel, payload)
    }

    /// Prefetches reads that the next transactions will make, after a read of this one was not available.
    ///
    /// A remote engine then answers all of them in one round trip. Without it, transactions that each take
    /// the next element of something would need a round trip each. Reads and writes of `work` have no other
    /// effect. On an engine in this process, or when no read was missing, `work` does not run and the result
    /// is `None`.
    ///
    /// Cost: local. Its reads share the round trip of the read that was missing.
    pub fn prefetch<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if !self.raw.begin_prefetch() {
            return None;
        }
        let result = work(self);
        self.raw.end_prefetch();
        Some(result)
    }
}

impl<P: Partition> ReadTx<'_, P> {
    /// A read of a raw key, for tools that work without families.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn raw_read(&mut self, key: &RawKey, read: Read) -> Result<Reply> {
        self.raw.read(key, read)
    }

    /// Asks for a read of a raw key in the round trip of one that was not available: later runs, and the transactions
    /// after this one, find it cached. Without a read that was not available, nothing is read.
    ///
    /// Cost: local.
    pub fn raw_prefetch(&mut self, key: &RawKey, read: Read) {
        if self.raw.begin_prefetch() {
            // Not available either: it is fetched.
            let _ = self.raw.read(key, read);
            self.raw.end_prefetch();
        }
    }

    /// Many reads of raw keys, requested together. Each has its own result.
    ///
    /// Cost: on a remote engine one round trip for all of them, none if they are cached.
    pub fn raw_read_many(&mut self, reads: &[(RawKey, Read)]) -> Result<Vec<Result<Reply>>> {
        self.raw.read_many(reads)
    }
}

impl<P: Partition> Tx<'_, P> {
    /// A write of a raw key, for tools and tests. No TTL policy is applied. A scope that acts as a service refuses
    /// it, see [`Tx::raw_write_of`].
    ///
    /// Cost: local; sent with the commit. [`Write::LSet`] reads its position.
    pub fn raw_write(&mut self, key: RawKey, write: Write) -> Result<()> {
        if let Some(rights) = self.rights {
            return Err(rights.refuse_raw_key());
        }
        self.raw.write(key, write)
    }

    /// A write of a raw key of a family, for primitives: of members as bytes, or of a key by its name. The caller
    /// answers for the name ([`ReadTx::owns`] tells). No TTL policy is applied.
    ///
    /// Cost: local; sent with the commit. [`Write::LSet`] reads its position.
    pub fn raw_write_of(&mut self, family: &'static Declaration, key: RawKey, write: Write) -> Result<()> {
        self.check_write(family, &write)?;
        self.raw.write(key, write)
    }
}

/// Writes to a key and sets its deadline as its family declares.
fn write_declared(
    raw: &mut RawTx<'_>,
    families: &mut Families,
    key: RawKey,
    write: Write,
    family: WrittenFamily,
) -> Result<()> {
    // Only these writes can be refused because of the key's type; the error then names the family.
    families.note(family);
    raw.write(key.clone(), write)?;
    refresh(raw, key, family.declaration.ttl)
}

fn refresh(raw: &mut RawTx<'_>, key: RawKey, ttl: Ttl) -> Result<()> {
    match ttl {
        Ttl::Refresh { ms } => {
            let at = raw.now() + ms;
            raw.write(key, Write::ExpireAt(at))
        }
        // The first write sets it, later ones keep it. The engine knows which this is: nothing is read.
        Ttl::Fixed { ms } => {
            let at = raw.now() + ms;
            raw.write(key, Write::ExpireAtIfNone(at))
        }
        Ttl::Persistent | Ttl::Given => Ok(()),
    }
}
