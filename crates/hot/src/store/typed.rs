//! The typed face of a step: keys of declared families, values instead of bytes, TTL policies applied.
//!
//! The words are Redis' own, so that who knows the commands knows the methods. The partition is the scope's:
//! a key of another partition cannot be named here.

use crate::command::*;
use crate::error::{Error, Result, show};
use crate::tx::RawTx;
use bytes::Bytes;
use emberkeep_schema::{
    Automatic, Channel, Codec, Family, Given, Hash, Key, List, Naming, Number, Partition, Set, SortedSet, Text,
    Ttl, TtlPolicy,
};
use std::cell::RefCell;
use std::time::Duration;

/// One run of a step's body over one partition.
pub struct Tx<'a, P> {
    raw: &'a mut dyn Access,
    naming: &'a Naming,
    partition: &'a P,
}

/// What a typed step needs of a raw one; object-safe, so that `Tx` has one lifetime.
trait Access {
    fn read(&mut self, key: &RawKey, read: Read) -> Result<Reply>;
    fn text(&mut self, key: &RawKey) -> Result<Option<&[u8]>>;
    fn write(&mut self, key: RawKey, write: Write) -> Result<()>;
    fn record(&mut self, entry: LogAppend) -> Result<()>;
    fn publish(&mut self, channel: Bytes, payload: Bytes) -> Result<()>;
    fn now(&mut self) -> i64;
    fn random(&mut self) -> u64;
}

impl Access for RawTx<'_> {
    fn read(&mut self, key: &RawKey, read: Read) -> Result<Reply> {
        RawTx::read(self, key, read)
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
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Builds bytes in a buffer that is kept, and copies them out once, exactly as long as they are.
pub(super) fn in_scratch<E>(fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Bytes, E> {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        fill(scratch)?;
        Ok(Bytes::copy_from_slice(scratch))
    })
}

/// A key's bytes on an engine.
pub(super) fn rendered<F: Family>(naming: &Naming, partition: &F::Partition, key: &Key<F>) -> RawKey {
    in_scratch::<Error>(|out| {
        key.render(naming, partition, out);
        Ok(())
    })
    .expect("rendering does not fail")
}

/// A value's bytes; the family is named in the error.
pub(super) fn encoded<F: Family, C: Codec>(value: &C::Value) -> Result<Bytes> {
    in_scratch(|out| C::encode(value, out)).map_err(|error| Error::Invalid {
        what: "value",
        problem: format!("{error} (family {})", F::DECLARATION.name),
    })
}

/// A value back from its bytes; key and family are named in the error.
pub(super) fn decoded<F: Family, C: Codec>(key: &[u8], bytes: &[u8]) -> Result<C::Value> {
    C::decode(bytes)
        .map_err(|error| Error::Corrupt { key: named::<F>(&show(key)), reason: error.to_string() })
}

fn named<F: Family>(key: &str) -> String {
    format!("{key} (family {})", F::DECLARATION.name)
}

/// Adds the family to an error that names a key.
pub(super) fn with_family<F: Family>(error: Error) -> Error {
    match error {
        Error::WrongType { key, expected, found } => {
            Error::WrongType { key: named::<F>(&key), expected, found }
        }
        other => other,
    }
}

impl<'a, P: Partition> Tx<'a, P> {
    pub(super) fn new(raw: &'a mut RawTx<'_>, naming: &'a Naming, partition: &'a P) -> Self {
        Tx { raw, naming, partition }
    }

    /// The partition of this step.
    pub fn partition(&self) -> &P {
        self.partition
    }

    /// The engine's milliseconds since 1970; one value for the whole run.
    pub fn now(&mut self) -> i64 {
        self.raw.now()
    }

    /// The next number of the step's random stream; a rerun draws the same ones.
    pub fn random(&mut self) -> u64 {
        self.raw.random()
    }

    fn key<F: Family<Partition = P>>(&self, key: &Key<F>) -> RawKey {
        rendered(self.naming, self.partition, key)
    }

    fn read<F: Family<Partition = P>>(&mut self, key: &Key<F>, read: Read) -> Result<(RawKey, Reply)> {
        let raw = self.key(key);
        let reply = self.raw.read(&raw, read).map_err(with_family::<F>)?;
        Ok((raw, reply))
    }

    fn read_int<F: Family<Partition = P>>(&mut self, key: &Key<F>, read: Read) -> Result<i64> {
        match self.read(key, read)?.1 {
            Reply::Int(n) => Ok(n),
            other => Err(unexpected(&other)),
        }
    }

    // ---- any kind ----

    /// Whether the key exists.
    pub fn exists<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<bool> {
        Ok(self.read_int(key, Read::Exists)? == 1)
    }

    /// When the key ends, in milliseconds since 1970. `None` = absent or without an end.
    pub fn deadline<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<Option<i64>> {
        Ok(Some(self.read_int(key, Read::ExpireTime)?).filter(|at| *at >= 0))
    }

    /// Removes the key.
    pub fn del<F: Family<Partition = P>>(&mut self, key: &Key<F>) -> Result<()> {
        self.raw.write(self.key(key), Write::Del)
    }

    /// Gives an existing key of a `refresh` family its full life again.
    pub fn touch<F: Family<Partition = P, Ttl = emberkeep_schema::Refresh>>(&mut self, key: &Key<F>) -> Result<()> {
        self.refresh(key)
    }

    /// Moves the end of an existing key of a `given` family.
    pub fn expire_at<F: Family<Partition = P, Ttl = Given>>(&mut self, key: &Key<F>, at_ms: i64) -> Result<()> {
        self.raw.write(self.key(key), Write::ExpireAt(at_ms))
    }

    /// Writes to a collection, then sees to its deadline as the family declares.
    fn write<F: Family<Partition = P>>(&mut self, key: &Key<F>, write: Write) -> Result<()> {
        let fixed = match F::DECLARATION.ttl {
            Ttl::Fixed { .. } => self.deadline(key)?,
            _ => None,
        };
        self.raw.write(self.key(key), write)?;
        match fixed {
            // Asserted again: a collection that was emptied on the way lost its deadline.
            Some(at) => self.raw.write(self.key(key), Write::ExpireAt(at)),
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

    // ---- text ----

    /// The value, if the key exists.
    pub fn get<F, C>(&mut self, key: &Key<F>) -> Result<Option<C::Value>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        let raw = self.key(key);
        match self.raw.text(&raw).map_err(with_family::<F>)? {
            Some(bytes) => decoded::<F, C>(&raw, bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Sets the value, and its deadline as the family declares.
    pub fn put<F, C>(&mut self, key: &Key<F>, value: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        F::Ttl: Automatic,
        C: Codec,
    {
        let expiry = match F::DECLARATION.ttl {
            Ttl::Persistent | Ttl::Given => Expiry::Never,
            Ttl::Refresh { ms } => Expiry::At(self.now() + ms),
            Ttl::Fixed { ms } => match self.deadline(key)? {
                Some(at) => Expiry::At(at),
                None => Expiry::At(self.now() + ms),
            },
        };
        self.set(key, encoded::<F, C>(value)?, expiry)
    }

    /// Sets the value for a time that the caller gives.
    pub fn put_for<F, C>(&mut self, key: &Key<F>, value: &C::Value, life: Duration) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>, Ttl = Given>,
        C: Codec,
    {
        let at = self.now().saturating_add(i64::try_from(life.as_millis()).unwrap_or(i64::MAX));
        self.put_until(key, value, at)
    }

    /// Sets the value until a time that the caller gives, in milliseconds since 1970.
    pub fn put_until<F, C>(&mut self, key: &Key<F>, value: &C::Value, at_ms: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>, Ttl = Given>,
        C: Codec,
    {
        self.set(key, encoded::<F, C>(value)?, Expiry::At(at_ms))
    }

    fn set<F: Family<Partition = P>>(&mut self, key: &Key<F>, value: Bytes, expiry: Expiry) -> Result<()> {
        self.raw.write(self.key(key), Write::Set(value, expiry))
    }

    /// Adds to a number without reading it: steps that only count do not conflict.
    pub fn incr_by<F, N>(&mut self, key: &Key<F>, by: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<Number<N>>>,
        F::Ttl: Automatic,
        Number<N>: Codec,
    {
        self.write(key, Write::IncrBy(by))
    }

    // ---- hash ----

    /// One field.
    pub fn hget<F, N, C>(&mut self, key: &Key<F>, field: &N::Value) -> Result<Option<C::Value>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let (raw, reply) = self.read(key, Read::HGet(encoded::<F, N>(field)?))?;
        match reply {
            Reply::Blob(bytes) => decoded::<F, C>(&raw, &bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// All fields, in the order of their bytes.
    pub fn hgetall<F, N, C>(&mut self, key: &Key<F>) -> Result<Vec<(N::Value, C::Value)>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let (raw, reply) = self.read(key, Read::HGetAll)?;
        let Reply::Pairs(pairs) = reply else { return Err(unexpected(&reply)) };
        let decode = |(n, v): &(Bytes, Bytes)| Ok((decoded::<F, N>(&raw, n)?, decoded::<F, C>(&raw, v)?));
        pairs.iter().map(decode).collect()
    }

    /// How many fields.
    pub fn hlen<F, N, C>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        Ok(self.read_int(key, Read::HLen)? as usize)
    }

    /// Sets one field.
    pub fn hset<F, N, C>(&mut self, key: &Key<F>, field: &N::Value, value: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        F::Ttl: Automatic,
        N: Codec,
        C: Codec,
    {
        let pair = (encoded::<F, N>(field)?, encoded::<F, C>(value)?);
        self.write(key, Write::HSet(vec![pair]))
    }

    /// Removes one field.
    pub fn hdel<F, N, C>(&mut self, key: &Key<F>, field: &N::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        F::Ttl: Automatic,
        N: Codec,
        C: Codec,
    {
        let field = encoded::<F, N>(field)?;
        self.write(key, Write::HDel(vec![field]))
    }

    // ---- set ----

    /// Whether the set has the member.
    pub fn sismember<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<bool>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::SIsMember(encoded::<F, M>(member)?))? == 1)
    }

    /// All members, in the order of their bytes.
    pub fn smembers<F, M>(&mut self, key: &Key<F>) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::SMembers)?;
        let Reply::List(list) = reply else { return Err(unexpected(&reply)) };
        list.iter().map(|member| decoded::<F, M>(&raw, member)).collect()
    }

    /// How many members.
    pub fn scard<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::SCard)? as usize)
    }

    /// Adds a member.
    pub fn sadd<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let member = encoded::<F, M>(member)?;
        self.write(key, Write::SAdd(vec![member]))
    }

    /// Removes a member.
    pub fn srem<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let member = encoded::<F, M>(member)?;
        self.write(key, Write::SRem(vec![member]))
    }

    // ---- sorted set ----

    /// A member's score.
    pub fn zscore<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<Option<f64>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        match self.read(key, Read::ZScore(encoded::<F, M>(member)?))?.1 {
            Reply::Score(score) => Ok(Some(score.get())),
            _ => Ok(None),
        }
    }

    /// A slice with scores, from the lowest or (`reverse`) from the highest.
    pub fn zrange<F, M>(&mut self, key: &Key<F>, slice: ZSlice, reverse: bool) -> Result<Vec<(M::Value, f64)>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::ZRange(slice, reverse))?;
        let Reply::Scored(list) = reply else { return Err(unexpected(&reply)) };
        list.iter().map(|(member, score)| Ok((decoded::<F, M>(&raw, member)?, score.get()))).collect()
    }

    /// How many members.
    pub fn zcard<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::ZCard)? as usize)
    }

    /// How many members in a range of scores.
    pub fn zcount<F, M>(&mut self, key: &Key<F>, min: ScoreBound, max: ScoreBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::ZCount(min, max))? as usize)
    }

    /// How many members in a range of bytes, among members of equal score.
    pub fn zlexcount<F, M>(&mut self, key: &Key<F>, min: LexBound, max: LexBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::ZLexCount(min, max))? as usize)
    }

    /// Adds a member or moves it to another score.
    pub fn zadd<F, M>(&mut self, key: &Key<F>, member: &M::Value, score: f64) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let pair = (encoded::<F, M>(member)?, Score::new(score)?);
        self.write(key, Write::ZAdd(vec![pair]))
    }

    /// Removes a member.
    pub fn zrem<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let member = encoded::<F, M>(member)?;
        self.write(key, Write::ZRem(vec![member]))
    }

    // ---- list ----

    /// Length of the list.
    pub fn llen<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::LLen)? as usize)
    }

    /// A part of the list, both ends included, negative from the end.
    pub fn lrange<F, M>(&mut self, key: &Key<F>, start: i64, stop: i64) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::LRange(start, stop))?;
        let Reply::List(list) = reply else { return Err(unexpected(&reply)) };
        list.iter().map(|element| decoded::<F, M>(&raw, element)).collect()
    }

    /// Pushes at the head.
    pub fn lpush<F, M>(&mut self, key: &Key<F>, element: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let element = encoded::<F, M>(element)?;
        self.write(key, Write::LPush(vec![element]))
    }

    /// Pushes at the tail.
    pub fn rpush<F, M>(&mut self, key: &Key<F>, element: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let element = encoded::<F, M>(element)?;
        self.write(key, Write::RPush(vec![element]))
    }

    /// Takes the head.
    pub fn lpop<F, M>(&mut self, key: &Key<F>) -> Result<Option<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let head = self.lrange(key, 0, 0)?.pop();
        if head.is_some() {
            self.write(key, Write::LPop(1))?;
        }
        Ok(head)
    }

    /// Takes the tail.
    pub fn rpop<F, M>(&mut self, key: &Key<F>) -> Result<Option<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let tail = self.lrange(key, -1, -1)?.pop();
        if tail.is_some() {
            self.write(key, Write::RPop(1))?;
        }
        Ok(tail)
    }

    /// Keeps only a part of the list, both ends included, negative from the end.
    pub fn ltrim<F, M>(&mut self, key: &Key<F>, start: i64, stop: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        self.write(key, Write::LTrim(start, stop))
    }

    // ---- log and messages ----

    /// Appends an entry to the partition's log in the same commit. Beyond
    /// [`LOG_ENTRIES_DEFAULT`](crate::limits::LOG_ENTRIES_DEFAULT) the oldest go.
    pub fn record(&mut self, entry: impl Into<Bytes>) -> Result<()> {
        self.record_bounded(entry, crate::limits::LOG_ENTRIES_DEFAULT, Overflow::DropOldest)
    }

    /// Appends an entry to a log with a bound of the caller's.
    pub fn record_bounded(
        &mut self,
        entry: impl Into<Bytes>,
        entries_max: usize,
        overflow: Overflow,
    ) -> Result<()> {
        self.raw.record(LogAppend { entry: entry.into(), entries_max, overflow })
    }

    /// Sends a message when the step commits, or never.
    pub fn publish<F, C>(&mut self, channel: &Key<F>, message: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Channel<C>>,
        F::Ttl: TtlPolicy,
        C: Codec,
    {
        let payload = encoded::<F, C>(message)?;
        self.raw.publish(self.key(channel), payload)
    }

    /// A read in the words of the vocabulary, for tools that know no family.
    pub fn raw_read(&mut self, key: &RawKey, read: Read) -> Result<Reply> {
        self.raw.read(key, read)
    }

    /// A write in the words of the vocabulary. No TTL policy is applied: for tools and tests, not for games.
    pub fn raw_write(&mut self, key: RawKey, write: Write) -> Result<()> {
        self.raw.write(key, write)
    }
}

fn unexpected(reply: &Reply) -> Error {
    Error::Unavailable {
        backend: "the engine".into(),
        reason: format!("unexpected shape of a reply: {reply:?}"),
        advice: "this is a defect of the engine or the server, report it",
    }
}
