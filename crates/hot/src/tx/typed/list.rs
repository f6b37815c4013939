//! Lists: elements in the order they were pushed.

use crate::tx::*;
use emberkeep_schema::{Automatic, List};

impl<P: Partition> Tx<'_, P> {
    /// Length of the list.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn llen<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::LLen)?.1)
    }

    /// A part of the list, both ends included, negative from the end.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn lrange<F, M>(&mut self, key: &Key<F>, start: i64, stop: i64) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::LRange(start, stop))?;
        decode::list::<F, M>(&raw, reply)
    }

    /// The element at a position, negative from the end; `None` = the list is shorter.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn lindex<F, M>(&mut self, key: &Key<F>, index: i64) -> Result<Option<M::Value>>
    where
        F: Family<Partition = P, Kind = List<M>>,
        M: Codec,
    {
        Ok(self.lrange(key, index, index)?.pop())
    }

    /// Replaces the element at a position, negative from the end. `false` = the list is shorter, and nothing
    /// was written.
    ///
    /// Cost: a read of the position. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn lset<F, M>(&mut self, key: &Key<F>, index: i64, element: &M::Value) -> Result<bool>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let element = encoded::<F, M>(element)?;
        let (_, held) = self.read(key, Read::LRange(index, index))?;
        let is_there = held != Reply::List(vec![]);
        if is_there {
            self.write(key, Write::LSet(index, element))?;
        }
        Ok(is_there)
    }

    /// Pushes at the head.
    ///
    /// Cost: local; sent with the commit.
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
    ///
    /// Cost: local; sent with the commit.
    pub fn rpush<F, M>(&mut self, key: &Key<F>, element: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let element = encoded::<F, M>(element)?;
        self.write(key, Write::RPush(vec![element]))
    }

    /// Pushes many elements at the tail, in their order.
    ///
    /// Cost: local; sent with the commit.
    pub fn rpush_many<'v, F, M>(
        &mut self,
        key: &Key<F>,
        elements: impl IntoIterator<Item = &'v M::Value>,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let elements = elements.into_iter().map(encoded::<F, M>);
        self.write_many(key, elements, COMMAND_ARGUMENTS_MAX, Write::RPush)
    }

    /// Takes the head.
    ///
    /// Cost: a read of the head. On a remote engine one round trip, none if it is cached or prefetched.
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
    ///
    /// Cost: a read of the tail. On a remote engine one round trip, none if it is cached or prefetched.
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
    ///
    /// Cost: local; sent with the commit.
    pub fn ltrim<F, M>(&mut self, key: &Key<F>, start: i64, stop: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = List<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        self.write(key, Write::LTrim(start, stop))
    }
}
