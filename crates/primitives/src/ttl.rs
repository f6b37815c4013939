//! The TTL of a primitive's writes to the caller's collections: as the family declares, or a deadline of the
//! caller.

use emberkeep_hot::{Result, Tx};
use emberkeep_schema::{
    Codec, Family, Fixed, Given, Hash, Key, Partition, Persistent, Refresh, Set, TtlPolicy,
};

/// A TTL policy for primitives that work with any of them. The caller passes [`Life`](WriteTtl::Life) once:
/// `()` for a family that declares its TTL, the deadline in milliseconds since 1970 for one of `ttl: given`.
pub trait WriteTtl: TtlPolicy + Sized {
    /// What the caller passes.
    type Life: Copy + Send + Sync + 'static;

    /// Sets a field of a hash.
    fn hset<P, F, N, C>(
        tx: &mut Tx<'_, P>,
        key: &Key<F>,
        field: &N::Value,
        value: &C::Value,
        life: Self::Life,
    ) -> Result<()>
    where
        P: Partition,
        F: Family<Partition = P, Kind = Hash<N, C>, Ttl = Self>,
        N: Codec,
        C: Codec;

    /// Adds a member to a set.
    fn sadd<P, F, M>(tx: &mut Tx<'_, P>, key: &Key<F>, member: &M::Value, life: Self::Life) -> Result<()>
    where
        P: Partition,
        F: Family<Partition = P, Kind = Set<M>, Ttl = Self>,
        M: Codec;
}

macro_rules! declared_lives {
    ($($policy:ident)*) => { $(
        impl WriteTtl for $policy {
            type Life = ();

            fn hset<P, F, N, C>(
                tx: &mut Tx<'_, P>,
                key: &Key<F>,
                field: &N::Value,
                value: &C::Value,
                (): (),
            ) -> Result<()>
            where
                P: Partition,
                F: Family<Partition = P, Kind = Hash<N, C>, Ttl = Self>,
                N: Codec,
                C: Codec,
            {
                tx.hset(key, field, value)
            }

            fn sadd<P, F, M>(tx: &mut Tx<'_, P>, key: &Key<F>, member: &M::Value, (): ()) -> Result<()>
            where
                P: Partition,
                F: Family<Partition = P, Kind = Set<M>, Ttl = Self>,
                M: Codec,
            {
                tx.sadd(key, member)
            }
        }
    )* };
}

declared_lives! { Persistent Fixed Refresh }

impl WriteTtl for Given {
    type Life = i64;

    fn hset<P, F, N, C>(
        tx: &mut Tx<'_, P>,
        key: &Key<F>,
        field: &N::Value,
        value: &C::Value,
        until_ms: i64,
    ) -> Result<()>
    where
        P: Partition,
        F: Family<Partition = P, Kind = Hash<N, C>, Ttl = Self>,
        N: Codec,
        C: Codec,
    {
        tx.hset_until(key, field, value, until_ms)
    }

    fn sadd<P, F, M>(tx: &mut Tx<'_, P>, key: &Key<F>, member: &M::Value, until_ms: i64) -> Result<()>
    where
        P: Partition,
        F: Family<Partition = P, Kind = Set<M>, Ttl = Self>,
        M: Codec,
    {
        tx.sadd_until(key, member, until_ms)
    }
}
