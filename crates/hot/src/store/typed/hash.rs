//! Hashes: fields with values.

use super::*;

impl<P: Partition> Tx<'_, P> {
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
}
