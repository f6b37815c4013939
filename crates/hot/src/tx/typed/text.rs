//! Strings: whole values, and numbers that are incremented without a read.

use crate::tx::*;
use emberkeep_schema::{Automatic, Number, Text};
use std::time::Duration;

impl<P: Partition> ReadTx<'_, P> {
    /// The value, if the key exists.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn get<F, C>(&mut self, key: &Key<F>) -> Result<Option<C::Value>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        let raw = self.key(key);
        match self.raw.text_of(&raw, F::DECLARATION.name)? {
            Some(bytes) => decode::decoded::<F, C>(&raw, bytes).map(Some),
            None => Ok(None),
        }
    }

    /// The values of many keys. A remote engine is asked once for all of them. At most
    /// [`READS_TOGETHER_MAX`](crate::limits::READS_TOGETHER_MAX) keys. A corrupt value fails the call; see
    /// [`ReadTx::get_each`].
    ///
    /// Cost: reads made together. On a remote engine one round trip for all of them, none if they are cached.
    pub fn get_many<F, C>(&mut self, keys: &[Key<F>]) -> Result<Vec<Option<C::Value>>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        self.get_each(keys)?.into_iter().collect()
    }

    /// Like [`ReadTx::get_many`] with a result for each key: a corrupt value does not affect the others.
    ///
    /// Cost: as [`ReadTx::get_many`].
    pub fn get_each<F, C>(&mut self, keys: &[Key<F>]) -> Result<Vec<Result<Option<C::Value>>>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        let replies = self.read_many(keys, &Read::Get)?;
        Ok(replies.into_iter().map(|(key, reply)| decode::own_value::<F, C>(&key, reply)).collect())
    }
}

impl<P: Partition> Tx<'_, P> {
    /// Sets the value, and its deadline as the family declares.
    ///
    /// Cost: local; sent with the commit. No policy reads the deadline: the engine sets that of a `fixed`
    /// family if the key has none.
    pub fn put<F, C>(&mut self, key: &Key<F>, value: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        F::Ttl: Automatic,
        C: Codec,
    {
        self.check_family::<F>()?;
        let (raw, text) = (self.key(key), encoded::<F, C>(value)?);
        set_declared(&mut self.raw, raw, F::DECLARATION.ttl, |expiry| Write::Set(text, expiry))
    }

    /// Sets the value, and its deadline as the family declares, if the number after the last comma of its text is greater
    /// than the stored one: of a value `x,y,z,time` the newest stays, in whatever order they come. A stored text without
    /// such a number is replaced. Nothing is read, so nothing conflicts; [`Scope::put_each_if_greater`](crate::Scope::put_each_if_greater) says how many were not set.
    ///
    /// Cost: local; sent with the commit, which it does not share with other transactions on the key.
    pub fn put_if_greater<F, C>(&mut self, key: &Key<F>, value: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        F::Ttl: Automatic,
        C: Codec,
    {
        self.check_family::<F>()?;
        let (raw, text) = (self.key(key), encoded::<F, C>(value)?);
        set_declared(&mut self.raw, raw, F::DECLARATION.ttl, |expiry| Write::SetIfGreater(text, expiry))
    }

    /// Sets the value with a TTL of the caller.
    ///
    /// Cost: local; sent with the commit.
    pub fn put_for<F, C>(&mut self, key: &Key<F>, value: &C::Value, life: Duration) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>, Ttl = Given>,
        C: Codec,
    {
        let at = self.now().saturating_add(i64::try_from(life.as_millis()).unwrap_or(i64::MAX));
        self.put_until(key, value, at)
    }

    /// Sets the value with a deadline of the caller, in milliseconds since 1970.
    ///
    /// Cost: local; sent with the commit.
    pub fn put_until<F, C>(&mut self, key: &Key<F>, value: &C::Value, at_ms: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>, Ttl = Given>,
        C: Codec,
    {
        self.set(key, encoded::<F, C>(value)?, Expiry::At(at_ms))
    }

    /// Sets the value and leaves the deadline as it is. A key without one gets that of its family.
    ///
    /// Cost: local; sent with the commit.
    pub fn put_keep_ttl<F, C>(&mut self, key: &Key<F>, value: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>, Ttl = emberkeep_schema::Refresh>,
        C: Codec,
    {
        self.set(key, encoded::<F, C>(value)?, Expiry::Keep)?;
        match F::DECLARATION.ttl {
            Ttl::Refresh { ms } | Ttl::Fixed { ms } => {
                let raw = self.key(key);
                refresh(&mut self.raw, raw, Ttl::Fixed { ms })
            }
            Ttl::Persistent | Ttl::Given => Ok(()),
        }
    }

    fn set<F: Family<Partition = P>>(&mut self, key: &Key<F>, value: Bytes, expiry: Expiry) -> Result<()> {
        self.check_family::<F>()?;
        let raw = self.key(key);
        self.raw.write(raw, Write::Set(value, expiry))
    }

    /// Adds to a number without reading it: transactions that only increment do not conflict. An absent key
    /// counts as 0. The commit fails with [`Error::Overflow`](crate::Error::Overflow) if the sum leaves 64
    /// bits. For `Number<i64>` only: the server would let another type leave its range.
    ///
    /// Cost: local; sent with the commit.
    pub fn incr_by<F>(&mut self, key: &Key<F>, by: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<Number<i64>>>,
        F::Ttl: Automatic,
    {
        self.write(key, Write::IncrBy(by))
    }
}

/// Sets a string by this write, with the deadline that its family declares.
pub(crate) fn set_declared(
    raw: &mut RawTx<'_>,
    key: RawKey,
    ttl: Ttl,
    write: impl FnOnce(Expiry) -> Write,
) -> Result<()> {
    match ttl {
        Ttl::Persistent | Ttl::Given => raw.write(key, write(Expiry::Never)),
        Ttl::Refresh { ms } => {
            let at = raw.now() + ms;
            raw.write(key, write(Expiry::At(at)))
        }
        Ttl::Fixed { .. } => {
            raw.write(key.clone(), write(Expiry::Keep))?;
            refresh(raw, key, ttl)
        }
    }
}
