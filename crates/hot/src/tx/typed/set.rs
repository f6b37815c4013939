//! Sets: members without an order.

use crate::tx::*;
use emberkeep_schema::{Automatic, Set};

impl<P: Partition> ReadTx<'_, P> {
    /// Whether the set has the member.
    pub fn sismember<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<bool>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        decode::flag(self.read(key, Read::SIsMember(encoded::<F, M>(member)?))?.1)
    }

    /// All members, in the order of their bytes.
    pub fn smembers<F, M>(&mut self, key: &Key<F>) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::SMembers)?;
        decode::list::<F, M>(&raw, reply)
    }

    /// All members in the order of their bytes, including those that the family cannot decode.
    pub fn smembers_lossy<F, M>(&mut self, key: &Key<F>) -> Result<Vec<Member<M::Value>>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        decode::members::<M>(self.read(key, Read::SMembers)?.1)
    }

    /// How many members.
    pub fn scard<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::SCard)?.1)
    }
}

impl<P: Partition> Tx<'_, P> {
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

    /// Adds a member and sets the deadline of the whole set, in milliseconds since 1970.
    pub fn sadd_until<F, M>(&mut self, key: &Key<F>, member: &M::Value, at_ms: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>, Ttl = Given>,
        M: Codec,
    {
        let member = encoded::<F, M>(member)?;
        self.write(key, Write::SAdd(vec![member]))?;
        self.expire_at(key, at_ms)
    }

    /// Removes a member. The set of a `given` family keeps its deadline.
    pub fn srem<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        self.srem_raw(key, encoded::<F, M>(member)?)
    }

    /// Removes a member by its bytes, such as a [`Member::External`].
    pub fn srem_raw<F, M>(&mut self, key: &Key<F>, member: impl Into<Bytes>) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        self.write(key, Write::SRem(vec![member.into()]))
    }
}
