//! Sorted sets: members by score, then by bytes.

use super::*;

impl<P: Partition> Tx<'_, P> {
    /// A member's score.
    pub fn zscore<F, M>(&mut self, key: &Key<F>, member: &M::Value) -> Result<Option<f64>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        match self.read(key, Read::ZScore(encoded::<F, M>(member)?))?.1 {
            Reply::Score(score) => Ok(Some(score.get())),
            _ => Ok(None),
        }
    }

    /// A slice with scores, from the lowest or (`reverse`) from the highest.
    pub fn zrange<F, M>(&mut self, key: &Key<F>, slice: ZSlice, reverse: bool) -> Result<Vec<(M::Value, f64)>>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        let (raw, reply) = self.read(key, Read::ZRange(slice, reverse))?;
        let Reply::Scored(list) = reply else { return Err(unexpected(&reply)) };
        list.iter().map(|(member, score)| Ok((decoded::<F, M>(&raw, member)?, score.get()))).collect()
    }

    /// How many members.
    pub fn zcard<F, M>(&mut self, key: &Key<F>) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::ZCard)? as usize)
    }

    /// How many members in a range of scores.
    pub fn zcount<F, M>(&mut self, key: &Key<F>, min: ScoreBound, max: ScoreBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::ZCount(min, max))? as usize)
    }

    /// How many members in a range of bytes, among members of equal score.
    pub fn zlexcount<F, M>(&mut self, key: &Key<F>, min: LexBound, max: LexBound) -> Result<usize>
    where
        F: Family<Partition = P, Kind = SortedSet<M>>,
        M: Codec,
    {
        Ok(self.read_int(key, Read::ZLexCount(min, max))? as usize)
    }

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
        let member = encoded::<F, M>(member)?;
        self.write(key, Write::ZRem(vec![member]))
    }
}
