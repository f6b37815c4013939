//! A ballot: one vote each, the first one counts.
//!
//! Promises:
//! 1. Of all votes of one voter the first is counted; every other one gets [`Cast::AlreadyVoted`].
//! 2. A vote and its entry among the received ones are written in one transaction.
//! 3. No vote is counted at or after the deadline, in any process. The caller stores the deadline. No timer
//!    is needed: the first caller after it finds the ballot over and closes it in its own transaction.
//!
//! Keys, both the caller's: a hash from voter to choice, and a set of the voters whose vote was received.
//! The hash decides: a vote that an external client wrote only there is a vote.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::{Clock, Embedded, ManualClock}};
//! use emberkeep_primitives::{Ballot, ballot::Cast};
//! use emberkeep_schema::{Hash, Id, Set, Utf8, family, partition};
//!
//! partition! {
//!     /// One village.
//!     pub struct Village = "village";
//! }
//! family! {
//!     /// Who is voted for.
//!     pub VOTES = "votes" {
//!         kind: Hash<Id<u32>, Utf8>, partition: Village, parts: (), ttl: persistent, owner: "village"
//!     }
//! }
//! family! {
//!     /// Who has voted.
//!     pub RECEIVED = "votes-received" {
//!         kind: Set<Id<u32>>, partition: Village, parts: (), ttl: persistent, owner: "village"
//!     }
//! }
//! fn ballot() -> Ballot<VOTES, RECEIVED> {
//!     Ballot::new(VOTES.key(), RECEIVED.key(), ())
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let clock = ManualClock::at(1_000);
//! let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open()?;
//! let scope = Store::new(std::sync::Arc::new(engine)).scope(Village);
//! let cast = |voter, choice: &str| {
//!     let choice = choice.to_owned();
//!     scope.transact(move |tx| ballot().cast(tx, &voter, &choice, Some(5_000)))
//! };
//! assert_eq!(cast(1, "ann").await?, Cast::Counted);
//! assert_eq!(cast(1, "ben").await?, Cast::AlreadyVoted);
//! clock.set(5_000);
//! assert_eq!(cast(2, "ben").await?, Cast::Late);
//! assert_eq!(scope.transact(|tx| ballot().votes(tx)).await?, [(1, "ann".to_owned())]);
//! # Ok(())
//! # }
//! ```

use crate::ttl::WriteTtl;
use emberkeep_hot::{ReadTx, Result, Tx};
use emberkeep_schema::{Codec, Family, Hash, Key, Partition, Set};

/// One ballot: the keys of its votes and of who has voted. It holds no state of its own.
pub struct Ballot<V: Family, R: Family>
where
    V::Ttl: WriteTtl,
{
    votes: Key<V>,
    received: Key<R>,
    life: <V::Ttl as WriteTtl>::Life,
}

/// The result of [`Ballot::cast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cast {
    /// It is the voter's first vote, and it was stored.
    Counted,
    /// The voter's first vote counts; this one does not.
    AlreadyVoted,
    /// The ballot is over.
    Late,
}

impl<P, V, R, A, C, T> Ballot<V, R>
where
    P: Partition,
    V: Family<Partition = P, Kind = Hash<A, C>, Ttl = T>,
    R: Family<Partition = P, Kind = Set<A>, Ttl = T>,
    A: Codec,
    C: Codec,
    T: WriteTtl,
{
    /// The ballot of a hash and a set. `life` is `()`, or the deadline of both for families of `ttl: given`.
    pub fn new(votes: Key<V>, received: Key<R>, life: T::Life) -> Self {
        Ballot { votes, received, life }
    }

    /// Casts a vote, unless `closes_at` (milliseconds since 1970) has passed.
    pub fn cast(
        &self,
        tx: &mut Tx<'_, P>,
        voter: &A::Value,
        choice: &C::Value,
        closes_at: Option<i64>,
    ) -> Result<Cast> {
        if closes_at.is_some_and(|at| tx.now() >= at) {
            return Ok(Cast::Late);
        }
        if tx.hget(&self.votes, voter)?.is_some() {
            return Ok(Cast::AlreadyVoted);
        }
        T::hset(tx, &self.votes, voter, choice, self.life)?;
        T::sadd(tx, &self.received, voter, self.life)?;
        Ok(Cast::Counted)
    }

    /// The voters, in the order of their bytes.
    pub fn voters(&self, tx: &mut ReadTx<'_, P>) -> Result<Vec<A::Value>> {
        Ok(self.votes(tx)?.into_iter().map(|(voter, _)| voter).collect())
    }

    /// All votes, in the order of the voters' bytes.
    pub fn votes(&self, tx: &mut ReadTx<'_, P>) -> Result<Vec<(A::Value, C::Value)>> {
        tx.hgetall(&self.votes)
    }

    /// Removes a voter with the vote.
    pub fn strike(&self, tx: &mut Tx<'_, P>, voter: &A::Value) -> Result<()> {
        tx.hdel(&self.votes, voter)?;
        tx.srem(&self.received, voter)
    }

    /// Removes all votes, so that everyone can vote again.
    pub fn clear(&self, tx: &mut Tx<'_, P>) -> Result<()> {
        tx.del(&self.votes)?;
        tx.del(&self.received)
    }
}
