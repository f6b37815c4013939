//! Sets: members without an order.

use crate::tx::*;
use emberkeep_schema::{Automatic, Set};

impl<P: Partition> Tx<'_, P> {
    /// Whether the set has the member.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn sismember<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<bool>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        decode::flag(self.read(key, Read::SIsMember(encoded::<F, M>(member)?))?.1)
    }

    /// All members, in the order of their bytes.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn smembers<F, M>(&mut self, key: &Key<F>) -> Result<Vec<M::Value>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::SMembers)?;
        decode::list::<F, M>(&raw, reply)
    }

    /// All members in the order of their bytes, including those that the family cannot decode.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn smembers_lossy<F, M>(&mut self, key: &Key<F>) -> Result<Vec<Member<M::Value>>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        decode::members::<M>(self.read(key, Read::SMembers)?.1)
    }

    /// How many members.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn scard<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::SCard)?.1)
    }

    /// Adds a member.
    ///
    /// Cost: local; sent with the commit.
    pub fn sadd<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let member = encoded::<F, M>(member)?;
        self.write(key, Write::SAdd(vec![member]))
    }

    /// Adds many members.
    ///
    /// Cost: local; sent with the commit.
    pub fn sadd_many<'v, F, M>(
        &mut self,
        key: &Key<F>,
        members: impl IntoIterator<Item = &'v M::Value>,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let members = members.into_iter().map(encoded::<F, M>);
        self.write_many(key, members, COMMAND_ARGUMENTS_MAX, Write::SAdd)
    }

    /// Adds a member and sets the deadline of the whole set, in milliseconds since 1970.
    ///
    /// Cost: local; sent with the commit.
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
    ///
    /// Cost: local; sent with the commit.
    pub fn srem<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        self.srem_raw(key, encoded::<F, M>(member)?)
    }

    /// Removes many members. The set of a `given` family keeps its deadline.
    ///
    /// Cost: local; sent with the commit.
    pub fn srem_many<'v, F, M>(
        &mut self,
        key: &Key<F>,
        members: impl IntoIterator<Item = &'v M::Value>,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let members = members.into_iter().map(encoded::<F, M>);
        self.write_many(key, members, COMMAND_ARGUMENTS_MAX, Write::SRem)
    }

    /// Removes a member by its bytes, such as a [`Member::External`].
    ///
    /// Cost: local; sent with the commit.
    pub fn srem_raw<F, M>(&mut self, key: &Key<F>, member: impl Into<Bytes>) -> Result<()>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        self.write(key, Write::SRem(vec![member.into()]))
    }
}
