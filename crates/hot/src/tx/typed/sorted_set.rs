//! Sorted sets: members by score, then by bytes.

use crate::tx::*;
use emberkeep_schema::{Automatic, SortedSet};

impl<P: Partition> Tx<'_, P> {
    /// A member's score.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn zscore<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<Option<f64>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::score(self.read(key, Read::ZScore(encoded::<F, M>(member)?))?.1)
    }

    /// A member's position among all, from 0 for the lowest score; `None` = it is not there.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached. After own writes to the sorted
    /// set it is put together from several reads.
    pub fn zrank<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<Option<usize>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::rank(self.read(key, Read::ZRank(encoded::<F, M>(member)?, false))?.1)
    }

    /// A member's position among all, from 0 for the highest score; `None` = it is not there.
    ///
    /// Cost: as [`Tx::zrank`].
    pub fn zrevrank<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<Option<usize>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::rank(self.read(key, Read::ZRank(encoded::<F, M>(member)?, true))?.1)
    }

    /// A slice with scores, from the lowest or (`reverse`) from the highest.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn zrange<F, M>(&mut self, key: &Key<F>, slice: ZSlice, reverse: bool) -> Result<Vec<(M::Value, f64)>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::ZRange(slice, reverse))?;
        decode::scored::<F, M>(&raw, reply)
    }

    /// The same slice, including members that the family cannot decode.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn zrange_lossy<F, M>(
        &mut self,
        key: &Key<F>,
        slice: ZSlice,
        reverse: bool,
    ) -> Result<Vec<(Member<M::Value>, f64)>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::scored_members::<M>(self.read(key, Read::ZRange(slice, reverse))?.1)
    }

    /// How many members.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn zcard<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::ZCard)?.1)
    }

    /// How many members in a range of scores.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn zcount<F, M>(&mut self, key: &Key<F>, min: ScoreBound, max: ScoreBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::ZCount(min, max))?.1)
    }

    /// How many members in a range of bytes, among members of equal score.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn zlexcount<F, M>(&mut self, key: &Key<F>, min: LexBound, max: LexBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::ZLexCount(min, max))?.1)
    }

    /// Adds a member or moves it to another score.
    ///
    /// Cost: local; sent with the commit.
    pub fn zadd<F, M>(&mut self, key: &Key<F>, member: &M::Value, score: f64) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let pair = (encoded::<F, M>(member)?, Score::new(score)?);
        self.write(key, Write::ZAdd(vec![pair]))
    }

    /// Adds many members, or moves them to other scores. Of a member that is named twice, the last score
    /// counts.
    ///
    /// Cost: local; sent with the commit.
    pub fn zadd_many<'v, F, M>(
        &mut self,
        key: &Key<F>,
        pairs: impl IntoIterator<Item = (&'v M::Value, f64)>,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let pair = |(member, score)| Ok((encoded::<F, M>(member)?, Score::new(score)?));
        self.write_many(key, pairs.into_iter().map(pair), COMMAND_ARGUMENTS_MAX / 2, Write::ZAdd)
    }

    /// Adds to a member's score without reading it: transactions that only increment do not conflict. An
    /// absent member counts as 0. Scores are doubles: whole numbers are exact up to 2^53.
    ///
    /// Cost: local; sent with the commit.
    pub fn zincr_by<F, M>(&mut self, key: &Key<F>, member: &M::Value, by: f64) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        self.write(key, Write::ZIncrBy(encoded::<F, M>(member)?, Score::new(by)?))
    }

    /// Removes a member.
    ///
    /// Cost: local; sent with the commit.
    pub fn zrem<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        self.zrem_raw(key, encoded::<F, M>(member)?)
    }

    /// Removes many members.
    ///
    /// Cost: local; sent with the commit.
    pub fn zrem_many<'v, F, M>(
        &mut self,
        key: &Key<F>,
        members: impl IntoIterator<Item = &'v M::Value>,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        let members = members.into_iter().map(encoded::<F, M>);
        self.write_many(key, members, COMMAND_ARGUMENTS_MAX, Write::ZRem)
    }

    /// Removes a member by its bytes, such as a [`Member::External`].
    ///
    /// Cost: local; sent with the commit.
    pub fn zrem_raw<F, M>(&mut self, key: &Key<F>, member: impl Into<Bytes>) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        self.write(key, Write::ZRem(vec![member.into()]))
    }
}
