//! Plain reads of a scope, outside a transaction: each is true at some moment after the call, not all at the
//! same one. Reads that must be consistent belong into a transaction.

use super::Scope;
use crate::command::{LexBound, RawKey, Read, Reply, ScoreBound, ZSlice};
use crate::error::Result;
use crate::tx::decode::{self, decoded, with_family};
use crate::tx::encode::{encoded, with_buffers};
use emberkeep_schema::{Codec, Family, Hash, Key, List, Partition, Set, SortedSet, Text};

impl<P: Partition> Scope<P> {
    /// The value of one key, read outside a transaction.
    pub async fn get<F, C>(&self, key: &Key<F>) -> Result<Option<C::Value>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        if let Some(found) = self.get_local::<F, C>(key) {
            return found;
        }
        let (raw, reply) = self.ask(key, Read::Get).await?;
        decode::value::<F, C>(&raw, reply)
    }

    /// The same without waiting, if the engine can answer at once. Only the value is allocated.
    fn get_local<F, C>(&self, key: &Key<F>) -> Option<Result<Option<C::Value>>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        with_buffers(|name, text| {
            key.render(self.caller.store.layout, &self.partition, name);
            Some(match self.caller.store.engine.get_local(name, text)? {
                Ok(true) => decoded::<F, C>(name, text).map(Some),
                Ok(false) => Ok(None),
                Err(error) => Err(with_family::<F>(error)),
            })
        })
    }

    /// The values of many keys in one round trip, each at some moment after the call. A corrupt value fails
    /// the call; see [`Scope::get_each`].
    pub async fn get_many<F, C>(&self, keys: &[Key<F>]) -> Result<Vec<Option<C::Value>>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        self.get_each(keys).await?.into_iter().collect()
    }

    /// Like [`Scope::get_many`] with a result for each key: a corrupt value does not affect the others.
    pub async fn get_each<F, C>(&self, keys: &[Key<F>]) -> Result<Vec<Result<Option<C::Value>>>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        let replies = self.ask_many(keys, &Read::Get).await?;
        Ok(replies.into_iter().map(|(key, reply)| decode::own_value::<F, C>(&key, reply)).collect())
    }

    /// Whether the key exists.
    pub async fn exists<F: Family<Partition = P>>(&self, key: &Key<F>) -> Result<bool> {
        decode::flag(self.ask(key, Read::Exists).await?.1)
    }

    /// Whether each of these keys exists, in one round trip.
    pub async fn exists_many<F: Family<Partition = P>>(&self, keys: &[Key<F>]) -> Result<Vec<bool>> {
        let replies = self.ask_many(keys, &Read::Exists).await?;
        replies.into_iter().map(|(_, reply)| decode::flag(reply?)).collect()
    }

    /// When the key expires, in milliseconds since 1970. `None` = the key is absent or has no deadline.
    pub async fn deadline_of<F: Family<Partition = P>>(&self, key: &Key<F>) -> Result<Option<i64>> {
        decode::deadline(self.ask(key, Read::ExpireTime).await?.1)
    }

    /// One field of a hash.
    pub async fn hget<F, N, C>(&self, key: &Key<F>, field: &N::Value) -> Result<Option<C::Value>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let read = Read::HGet(encoded::<F, N>(field)?);
        let (raw, reply) = self.ask(key, read).await?;
        decode::value::<F, C>(&raw, reply)
    }

    /// All fields of a hash, in the order of their bytes.
    pub async fn hgetall<F, N, C>(&self, key: &Key<F>) -> Result<Vec<(N::Value, C::Value)>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let (raw, reply) = self.ask(key, Read::HGetAll).await?;
        decode::pairs::<F, N, C>(&raw, reply)
    }

    /// How many fields a hash has.
    pub async fn hlen<F, N, C>(&self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        decode::count(self.ask(key, Read::HLen).await?.1)
    }

    /// Whether the set has the member.
    pub async fn sismember<F, M>(&self, key: &Key<F>, member: &M::Value) -> Result<bool>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let read = Read::SIsMember(encoded::<F, M>(member)?);
        decode::flag(self.ask(key, read).await?.1)
    }

    /// All members of a set, in the order of their bytes. A set of more than
    /// [`REPLY_ELEMENTS_MAX`](crate::limits::REPLY_ELEMENTS_MAX) is read by [`Scope::members`].
    pub async fn smembers<F, M>(&self, key: &Key<F>) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let (raw, reply) = self.ask(key, Read::SMembers).await?;
        decode::list::<F, M>(&raw, reply)
    }

    /// How many members a set has.
    pub async fn scard<F, M>(&self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        decode::count(self.ask(key, Read::SCard).await?.1)
    }

    /// A part of a list, both ends included, negative from the end.
    pub async fn lrange<F, M>(&self, key: &Key<F>, start: i64, stop: i64) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        let (raw, reply) = self.ask(key, Read::LRange(start, stop)).await?;
        decode::list::<F, M>(&raw, reply)
    }

    /// Length of a list.
    pub async fn llen<F, M>(&self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        decode::count(self.ask(key, Read::LLen).await?.1)
    }

    /// A slice of a sorted set with scores, from the lowest or (`reverse`) from the highest.
    pub async fn zrange<F, M>(
        &self,
        key: &Key<F>,
        slice: ZSlice,
        reverse: bool,
    ) -> Result<Vec<(M::Value, f64)>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let (raw, reply) = self.ask(key, Read::ZRange(slice, reverse)).await?;
        decode::scored::<F, M>(&raw, reply)
    }

    /// A member's score; `None` if it is not a member.
    pub async fn zscore<F, M>(&self, key: &Key<F>, member: &M::Value) -> Result<Option<f64>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let read = Read::ZScore(encoded::<F, M>(member)?);
        decode::score(self.ask(key, read).await?.1)
    }

    /// Several fields of a hash in one round trip, in the order asked for.
    pub async fn hmget<'v, F, N, C>(
        &self,
        key: &Key<F>,
        fields: impl IntoIterator<Item = &'v N::Value>,
    ) -> Result<Vec<Option<C::Value>>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let raw = self.raw(key);
        let read = |field| Ok((raw.clone(), Read::HGet(encoded::<F, N>(field)?)));
        let reads = fields.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        let replies = self.caller.store.engine.read_many(reads.clone()).await?;
        let checked = reads.iter().zip(replies).map(|((key, read), reply)| reply.checked(key, read));
        checked.map(|reply| decode::own_value::<F, C>(&raw, reply)).collect()
    }

    /// The element of a list at a position, negative from the end; `None` = the list is shorter.
    pub async fn lindex<F, M>(&self, key: &Key<F>, index: i64) -> Result<Option<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        Ok(self.lrange(key, index, index).await?.pop())
    }

    /// A member's position among all of a sorted set, from 0 for the lowest score; `None` = it is not there.
    pub async fn zrank<F, M>(&self, key: &Key<F>, member: &M::Value) -> Result<Option<usize>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let read = Read::ZRank(encoded::<F, M>(member)?, false);
        decode::rank(self.ask(key, read).await?.1)
    }

    /// The same from 0 for the highest score.
    pub async fn zrevrank<F, M>(&self, key: &Key<F>, member: &M::Value) -> Result<Option<usize>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let read = Read::ZRank(encoded::<F, M>(member)?, true);
        decode::rank(self.ask(key, read).await?.1)
    }

    /// How many members of a sorted set in a range of scores.
    pub async fn zcount<F, M>(&self, key: &Key<F>, min: ScoreBound, max: ScoreBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.ask(key, Read::ZCount(min, max)).await?.1)
    }

    /// How many members of a sorted set in a range of bytes, among members of equal score.
    pub async fn zlexcount<F, M>(&self, key: &Key<F>, min: LexBound, max: LexBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.ask(key, Read::ZLexCount(min, max)).await?.1)
    }

    /// How many members a sorted set has.
    pub async fn zcard<F, M>(&self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.ask(key, Read::ZCard).await?.1)
    }

    async fn ask<F: Family<Partition = P>>(&self, key: &Key<F>, read: Read) -> Result<(RawKey, Reply)> {
        let raw = self.raw(key);
        read.check(&raw).map_err(with_family::<F>)?;
        let replies = self.caller.store.engine.read_many(vec![(raw.clone(), read.clone())]).await?;
        let reply = replies.into_iter().next().unwrap_or(Reply::Nil);
        let reply = reply.checked(&raw, &read).map_err(with_family::<F>)?;
        Ok((raw, reply))
    }

    async fn ask_many<F: Family<Partition = P>>(
        &self,
        keys: &[Key<F>],
        read: &Read,
    ) -> Result<Vec<(RawKey, Result<Reply>)>> {
        let raw: Vec<RawKey> = keys.iter().map(|key| self.raw(key)).collect();
        let reads = raw.iter().map(|key| (key.clone(), read.clone())).collect();
        let replies = self.caller.store.engine.read_many(reads).await?;
        let own = |(key, reply): (RawKey, Reply)| {
            let reply = reply.checked(&key, read);
            (key, reply)
        };
        Ok(raw.into_iter().zip(replies).map(own).collect())
    }
}
