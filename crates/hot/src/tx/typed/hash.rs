//! Hashes: fields with values.

use crate::tx::*;
use emberkeep_schema::{Automatic, Hash, Number};

impl<P: Partition> Tx<'_, P> {
    /// One field.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn hget<F, N, C>(&mut self, key: &Key<F>, field: &N::Value) -> Result<Option<C::Value>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let (raw, reply) = self.read(key, Read::HGet(encoded::<F, N>(field)?))?;
        decode::value::<F, C>(&raw, reply)
    }

    /// Several fields, in the order asked for; `None` = there is no such field. At most
    /// [`READS_TOGETHER_MAX`](crate::limits::READS_TOGETHER_MAX) fields.
    ///
    /// Cost: reads made together. On a remote engine one round trip for all of them, none if they are cached.
    pub fn hmget<'v, F, N, C>(
        &mut self,
        key: &Key<F>,
        fields: impl IntoIterator<Item = &'v N::Value>,
    ) -> Result<Vec<Option<C::Value>>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let raw = self.key(key);
        let read = |field| Ok((raw.clone(), Read::HGet(encoded::<F, N>(field)?)));
        let reads = fields.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        let replies = self.raw.read_many(&reads).map_err(with_family::<F>)?;
        replies.into_iter().map(|reply| decode::own_value::<F, C>(&raw, reply)).collect()
    }

    /// All fields, in the order of their bytes. A hash of more than
    /// [`REPLY_ELEMENTS_MAX`](crate::limits::REPLY_ELEMENTS_MAX) fields is read by
    /// [`Scope::fields`](crate::Scope::fields).
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn hgetall<F, N, C>(&mut self, key: &Key<F>) -> Result<Vec<(N::Value, C::Value)>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let (raw, reply) = self.read(key, Read::HGetAll)?;
        decode::pairs::<F, N, C>(&raw, reply)
    }

    /// How many fields.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn hlen<F, N, C>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        decode::count(self.read(key, Read::HLen)?.1)
    }

    /// Sets one field.
    ///
    /// Cost: local; sent with the commit.
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

    /// Sets many fields. Of a field that is named twice, the last value counts.
    ///
    /// Cost: local; sent with the commit.
    pub fn hset_many<'v, F, N, C>(
        &mut self,
        key: &Key<F>,
        pairs: impl IntoIterator<Item = (&'v N::Value, &'v C::Value)>,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        F::Ttl: Automatic,
        N: Codec,
        C: Codec,
    {
        let pairs = pairs.into_iter().map(|(n, v)| Ok((encoded::<F, N>(n)?, encoded::<F, C>(v)?)));
        self.write_many(key, pairs, COMMAND_ARGUMENTS_MAX / 2, Write::HSet)
    }

    /// Sets one field and the deadline of the whole hash, in milliseconds since 1970.
    ///
    /// Cost: local; sent with the commit.
    pub fn hset_until<F, N, C>(
        &mut self,
        key: &Key<F>,
        field: &N::Value,
        value: &C::Value,
        at_ms: i64,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>, Ttl = Given>,
        N: Codec,
        C: Codec,
    {
        let pair = (encoded::<F, N>(field)?, encoded::<F, C>(value)?);
        self.write(key, Write::HSet(vec![pair]))?;
        self.expire_at(key, at_ms)
    }

    /// Adds to the number in a field without reading it: transactions that only increment do not conflict.
    /// An absent field counts as 0. The commit fails with [`Error::Overflow`](crate::Error::Overflow) if the
    /// sum leaves 64 bits.
    ///
    /// Cost: local; sent with the commit.
    pub fn hincr_by<F, N>(&mut self, key: &Key<F>, field: &N::Value, by: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, Number<i64>>>,
        F::Ttl: Automatic,
        N: Codec,
    {
        self.write(key, Write::HIncrBy(encoded::<F, N>(field)?, by))
    }

    /// Removes one field. The hash of a `given` family keeps its deadline.
    ///
    /// Cost: local; sent with the commit.
    pub fn hdel<F, N, C>(&mut self, key: &Key<F>, field: &N::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        self.hdel_raw(key, encoded::<F, N>(field)?)
    }

    /// Removes many fields. The hash of a `given` family keeps its deadline.
    ///
    /// Cost: local; sent with the commit.
    pub fn hdel_many<'v, F, N, C>(
        &mut self,
        key: &Key<F>,
        fields: impl IntoIterator<Item = &'v N::Value>,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let fields = fields.into_iter().map(encoded::<F, N>);
        self.write_many(key, fields, COMMAND_ARGUMENTS_MAX, Write::HDel)
    }

    /// Removes a field by its bytes, such as a [`Member::External`].
    ///
    /// Cost: local; sent with the commit.
    pub fn hdel_raw<F, N, C>(&mut self, key: &Key<F>, field: impl Into<Bytes>) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        self.write(key, Write::HDel(vec![field.into()]))
    }
}
