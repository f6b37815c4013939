//! Sorted sets: members by score, then by bytes.

use crate::tx::*;
use emberkeep_schema::{Automatic, SortedSet};

impl<P: Partition> ReadTx<'_, P> {
    /// A member's score.
    pub fn zscore<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<Option<f64>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::score(self.read(key, Read::ZScore(encoded::<F, M>(member)?))?.1)
    }

    /// A slice with scores, from the lowest or (`reverse`) from the highest.
    pub fn zrange<F, M>(&mut self, key: &Key<F>, slice: ZSlice, reverse: bool) -> Result<Vec<(M::Value, f64)>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::ZRange(slice, reverse))?;
        decode::scored::<F, M>(&raw, reply)
    }

    /// The same slice, including members that the family cannot decode.
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
    pub fn zcard<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::ZCard)?.1)
    }

    /// How many members in a range of scores.
    pub fn zcount<F, M>(&mut self, key: &Key<F>, min: ScoreBound, max: ScoreBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::ZCount(min, max))?.1)
    }

    /// How many members in a range of bytes, among members of equal score.
    pub fn zlexcount<F, M>(&mut self, key: &Key<F>, min: LexBound, max: LexBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        decode::count(self.read(key, Read::ZLexCount(min, max))?.1)
    }
}

impl<P: Partition> Tx<'_, P> {
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
        self.zrem_raw(key, encoded::<F, M>(member)?)
    }

    /// Removes a member by its bytes, such as a [`Member::External`].
    pub fn zrem_raw<F, M>(&mut self, key: &Key<F>, member: impl Into<Bytes>) -> Result<()>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        F::Ttl: Automatic,
        M: Codec,
    {
        self.write(key, Write::ZRem(vec![member.into()]))
    }
}
