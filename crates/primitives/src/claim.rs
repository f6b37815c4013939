//! Claims: a one-to-one mapping, such as between devices and players.
//!
//! Promises:
//! 1. Of any number of concurrent takers of one right, one wins; a left has one right at a time. The
//!    transaction decides both.
//! 2. A claim counts only while both maps contain it. One half, as an external client leaves it between two
//!    commands, is not a claim: [`right_of`](Claims::right_of) and [`left_of`](Claims::left_of) do not
//!    return it.
//! 3. A half still blocks [`take`](Claims::take), because an external client may be about to write the other
//!    half. Only a half that is *provably* stale is replaced: its other end belongs to a whole claim with
//!    another partner, so the missing half can never come. `release_left` and `release_right` remove every
//!    half.
//!
//! Keys, both the caller's: a hash from left to right, and one from right to left.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::{Claims, claim::Take};
//! use emberkeep_schema::{Hash, Id, family, partition};
//!
//! partition! {
//!     /// One harbour.
//!     pub struct Harbour = "harbour";
//! }
//! family! {
//!     /// Where a ship lies.
//!     pub SHIP_TO_BERTH = "ship-to-berth" {
//!         kind: Hash<Id<u32>, Id<u8>>, partition: Harbour, parts: (), ttl: persistent, owner: "harbour"
//!     }
//! }
//! family! {
//!     /// Who lies at a berth.
//!     pub BERTH_TO_SHIP = "berth-to-ship" {
//!         kind: Hash<Id<u8>, Id<u32>>, partition: Harbour, parts: (), ttl: persistent, owner: "harbour"
//!     }
//! }
//! fn berths() -> Claims<SHIP_TO_BERTH, BERTH_TO_SHIP> {
//!     Claims::new(SHIP_TO_BERTH.key(), BERTH_TO_SHIP.key(), ())
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let scope = Store::new(std::sync::Arc::new(Embedded::in_memory())).scope(Harbour);
//! let take = |ship, berth| scope.transact(move |tx| berths().take(tx, &ship, &berth));
//! assert_eq!(take(7001, 1).await?, Take::Taken);
//! assert_eq!(take(7002, 1).await?, Take::RightHeldBy(7001));
//! assert_eq!(take(7001, 2).await?, Take::LeftHas(1));
//! assert_eq!(scope.transact(|tx| berths().release_left(tx, &7001)).await?, Some(1));
//! assert_eq!(take(7002, 1).await?, Take::Taken);
//! # Ok(())
//! # }
//! ```

use crate::ttl::WriteTtl;
use emberkeep_hot::{ReadTx, Result, Tx};
use emberkeep_schema::{Codec, Family, Hash, Key, Partition};

/// The claims between two sides.
pub struct Claims<L: Family, R: Family>
where
    L::Ttl: WriteTtl,
{
    to_right: Key<L>,
    to_left: Key<R>,
    life: <L::Ttl as WriteTtl>::Life,
}

/// The result of [`Claims::take`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take<L, R> {
    /// The left has it now.
    Taken,
    /// The left has a right already, possibly the requested one.
    LeftHas(R),
    /// Another left has the right.
    RightHeldBy(L),
}

impl<P, L, R, A, B, T> Claims<L, R>
where
    P: Partition,
    L: Family<Partition = P, Kind = Hash<A, B>, Ttl = T>,
    R: Family<Partition = P, Kind = Hash<B, A>, Ttl = T>,
    A: Codec,
    B: Codec,
    A::Value: PartialEq,
    B::Value: PartialEq,
    T: WriteTtl,
{
    /// The claims of two hashes. `life` is `()`, or the deadline of both for families of `ttl: given`.
    pub fn new(to_right: Key<L>, to_left: Key<R>, life: T::Life) -> Self {
        Claims { to_right, to_left, life }
    }

    /// Takes a right for a left that has none, if no other left has it.
    pub fn take(
        &self,
        tx: &mut Tx<'_, P>,
        left: &A::Value,
        right: &B::Value,
    ) -> Result<Take<A::Value, B::Value>> {
        if let Some(has) = tx.hget(&self.to_right, left)?
            && !self.is_anothers_right(tx, &has, left)?
        {
            return Ok(Take::LeftHas(has));
        }
        if let Some(holder) = tx.hget(&self.to_left, right)?
            && !self.is_anothers_left(tx, &holder, right)?
        {
            return Ok(Take::RightHeldBy(holder));
        }
        T::hset(tx, &self.to_right, left, right, self.life)?;
        T::hset(tx, &self.to_left, right, left, self.life)?;
        Ok(Take::Taken)
    }

    /// The right of a left; `None` if it has none, or only one of the maps contains it.
    pub fn right_of(&self, tx: &mut ReadTx<'_, P>, left: &A::Value) -> Result<Option<B::Value>> {
        let Some(right) = tx.hget(&self.to_right, left)? else { return Ok(None) };
        let holder = tx.hget(&self.to_left, &right)?;
        Ok((holder.as_ref() == Some(left)).then_some(right))
    }

    /// The left that has a right; `None` if none has it, or only one of the maps contains it.
    pub fn left_of(&self, tx: &mut ReadTx<'_, P>, right: &B::Value) -> Result<Option<A::Value>> {
        let Some(left) = tx.hget(&self.to_left, right)? else { return Ok(None) };
        let has = tx.hget(&self.to_right, &left)?;
        Ok((has.as_ref() == Some(right)).then_some(left))
    }

    /// All claims, in the order of the left side's bytes. For maps that fit into one reply.
    pub fn all(&self, tx: &mut ReadTx<'_, P>) -> Result<Vec<(A::Value, B::Value)>> {
        let (mut all, backward) =
            tx.together(|tx| (tx.hgetall(&self.to_right), tx.hgetall(&self.to_left)))?;
        all.retain(|(left, right)| backward.iter().any(|(r, l)| l == left && r == right));
        Ok(all)
    }

    /// All rights that [`take`](Claims::take) refuses to a left that has none: those of whole claims, and of
    /// halves that may become whole. For maps that fit into one reply.
    pub fn held(&self, tx: &mut ReadTx<'_, P>) -> Result<Vec<B::Value>> {
        let whole = self.all(tx)?;
        let mut held = tx.hgetall(&self.to_left)?;
        held.retain(|(right, left)| !whole.iter().any(|(l, r)| l == left && r != right));
        Ok(held.into_iter().map(|(right, _)| right).collect())
    }

    /// Removes the claim of a left, whole or half. Returns the right if the claim was whole.
    pub fn release_left(&self, tx: &mut Tx<'_, P>, left: &A::Value) -> Result<Option<B::Value>> {
        let Some(right) = tx.hget(&self.to_right, left)? else { return Ok(None) };
        tx.hdel(&self.to_right, left)?;
        if tx.hget(&self.to_left, &right)?.as_ref() != Some(left) {
            return Ok(None);
        }
        tx.hdel(&self.to_left, &right)?;
        Ok(Some(right))
    }

    /// Removes the claim of a right, whole or half. Returns the left if the claim was whole.
    pub fn release_right(&self, tx: &mut Tx<'_, P>, right: &B::Value) -> Result<Option<A::Value>> {
        let Some(left) = tx.hget(&self.to_left, right)? else { return Ok(None) };
        tx.hdel(&self.to_left, right)?;
        if tx.hget(&self.to_right, &left)?.as_ref() != Some(right) {
            return Ok(None);
        }
        tx.hdel(&self.to_right, &left)?;
        Ok(Some(left))
    }

    /// Removes all claims, including halves.
    pub fn clear(&self, tx: &mut Tx<'_, P>) -> Result<()> {
        tx.del(&self.to_right)?;
        tx.del(&self.to_left)
    }

    /// Whether another left has a whole claim to this right.
    fn is_anothers_right(&self, tx: &mut Tx<'_, P>, right: &B::Value, left: &A::Value) -> Result<bool> {
        Ok(self.left_of(tx, right)?.is_some_and(|holder| holder != *left))
    }

    /// Whether a left has a whole claim to another right.
    fn is_anothers_left(&self, tx: &mut Tx<'_, P>, left: &A::Value, right: &B::Value) -> Result<bool> {
        Ok(self.right_of(tx, left)?.is_some_and(|has| has != *right))
    }
}
