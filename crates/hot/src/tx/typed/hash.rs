//! Hashes: fields with values.

use crate::tx::*;
use emberkeep_schema::{Automatic, Hash};

impl<P: Partition> ReadTx<'_, P> {
    /// One field.
    pub fn hget<F, N, C>(&mut self, key: &Key<F>, field: &N::Value) -> Result<Option<C::Value>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let (raw, reply) = self.read(key, Read::HGet(encoded::<F, N>(field)?))?;
        decode::value::<F, C>(&raw, reply)
    }

    /// All fields, in the order of their bytes.
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
    pub fn hlen<F, N, C>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        decode::count(self.read(key, Read::HLen)?.1)
    }
}

impl<P: Partition> Tx<'_, P> {
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

    /// Sets one field and the deadline of the whole hash, in milliseconds since 1970.
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

    /// Removes one field. The hash of a `given` family keeps its deadline.
    pub fn hdel<F, N, C>(&mut self, key: &Key<F>, field: &N::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let field = encoded::<F, N>(field)?;
        self.write(key, Write::HDel(vec![field]))
    }
}
