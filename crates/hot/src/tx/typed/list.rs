//! Lists: elements in the order they were pushed.

use crate::tx::*;
use emberkeep_schema::{Automatic, List};

impl<P: Partition> ReadTx<'_, P> {
    /// Length of the list.
    pub fn llen<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::LLen)?.1)
    }

    /// A part of the list, both ends included, negative from the end.
    pub fn lrange<F, M>(&mut self, key: &Key<F>, start: i64, stop: i64) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::LRange(start, stop))?;
        decode::list::<F, M>(&raw, reply)
    }
}

impl<P: Partition> Tx<'_, P> {
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
}
