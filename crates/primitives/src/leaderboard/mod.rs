//! A leaderboard: players by score, highest first, with exact 64-bit scores.
//!
//! Promises:
//! 1. The order is by score, highest first; equal scores by the time at which they were reached, earliest first;
//!    then by player id, ascending (integers by value, all others by the bytes of their text). Every `i64` is
//!    exact: the score of a Redis sorted set is a double and would merge neighbours above 2^53.
//! 2. A player has one entry. A set of the score that the player has keeps the time at which it was reached.
//! 3. Ranks begin at 1 for the best. [`top`](Leaderboard::top), [`rank`](Leaderboard::rank) and
//!    [`around`](Leaderboard::around) are of one moment and cost O(log n) and what they return.
//! 4. [`apply`](Leaderboard::apply) counts each entry of a log once: the position of its source advances in the
//!    transaction that changes the scores. Entries at or below it are ignored. This is exact if the entries of a
//!    source arrive in order.
//! 5. No wrong rank is returned silently. The sorted set must have as many members as the hash has players,
//!    a player's entry must be in both, and a page must have only entries with different players; otherwise the
//!    read is `Error::Corrupt`, which names the key. [`repair`](Leaderboard::repair) mends the board. What these
//!    checks do not see, until the member itself is read: an external client that removed one member and added
//!    another one, or that changed the score of one.
//! 6. While a board is rebuilt ([`begin_rebuild`](Leaderboard::begin_rebuild)) every change is refused with
//!    [`LeaderboardError::Rebuilding`], so nothing is counted twice or lost. Reads go on.
//!
//! Keys, all the caller's. The order: a sorted set with all scores 0, whose members sort as the board does
//! (see [`Ranked`] for the bytes). The players: a hash from player to member, which is authoritative. The sources: a
//! hash from source to position; its field with the empty name exists while the board is rebuilt.
//!
//! The TTL of a board is that of its families. The order and the players must have the same policy, which the
//! compiler checks; the sources must live as long. A daily board is a key per day with `fixed` 48 hours: nothing
//! is reset at midnight.
//!
//! Cost on Redis: a change reads the player's entry and the sources, in one round trip, and takes part in
//! group commits. `top` is one round trip, `rank` and `around` are two.
//!
//! ```
//! use emberkeep_hot::{Store, embedded::Embedded};
//! use emberkeep_primitives::leaderboard::{Change, Leaderboard, LeaderboardError, Ranked};
//! use emberkeep_schema::{Hash, Id, Name, Number, SortedSet, Utf8, family, partition};
//!
//! partition! {
//!     /// One realm.
//!     pub struct Realm(Name) as "realm";
//! }
//! const TWO_DAYS_MS: i64 = 48 * 60 * 60 * 1_000;
//! family! {
//!     /// Players by the kills of a day (days since 1970, UTC).
//!     pub KILLS = "kills:{realm}:{day}" {
//!         kind: SortedSet<Ranked<u64>>, partition: Realm, parts: (day: u32), ttl: fixed(TWO_DAYS_MS), owner: "ranks"
//!     }
//! }
//! family! {
//!     /// The entry of each player.
//!     pub KILLERS = "kills:{realm}:{day}:players" {
//!         kind: Hash<Id<u64>, Ranked<u64>>, partition: Realm, parts: (day: u32), ttl: fixed(TWO_DAYS_MS), owner: "ranks"
//!     }
//! }
//! family! {
//!     /// How far each log was counted.
//!     pub COUNTED = "kills:{realm}:{day}:sources" {
//!         kind: Hash<Utf8, Number<u64>>, partition: Realm, parts: (day: u32), ttl: fixed(TWO_DAYS_MS), owner: "ranks"
//!     }
//! }
//! fn kills(day: u32) -> Leaderboard<KILLS, KILLERS, COUNTED> {
//!     Leaderboard::new(KILLS.key(day), KILLERS.key(day), COUNTED.key(day))
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), LeaderboardError> {
//! let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
//! let realm = store.scope(Realm(Name::new("north").expect("a word")));
//! realm.transact(|tx| kills(20_000).add(tx, &7, 3, 1_000)).await?;
//! realm.transact(|tx| kills(20_000).set(tx, &8, 3, 900)).await?;
//! // The same entry of a log, delivered twice, counts once.
//! for _ in 0..2 {
//!     let kill = [Change::Add { player: 9, delta: 5, at: 2_000 }];
//!     realm.transact(move |tx| kills(20_000).apply(tx, "zone-3", 41, &kill)).await?;
//! }
//! let top = realm.read(|tx| kills(20_000).top(tx, 10)).await?;
//! let top: Vec<_> = top.iter().map(|one| (one.rank, one.player, one.score)).collect();
//! assert_eq!(top, [(1, 9, 5), (2, 8, 3), (3, 7, 3)]);
//! assert_eq!(realm.read(|tx| kills(20_000).rank(tx, &7)).await?, Some(3));
//! assert_eq!(realm.read(|tx| kills(20_001).count(tx)).await?, 0, "the next day is another board");
//! # Ok(())
//! # }
//! ```

mod change;
mod member;
mod read;
mod rebuild;
mod repair;

pub use change::Change;
pub use member::{Entry, Ranked};
pub use rebuild::{Rebuild, RebuildReport};
pub use repair::RepairReport;

use emberkeep_hot::{Error, show};
use emberkeep_schema::{Automatic, Family, Hash, Id, Key, Number, Part, Partition, SortedSet, Ttl, Utf8};

/// The field of the sources that exists while the board is rebuilt. No source has this name.
const REBUILD_MARK: &str = "";

/// Players by score. See the [module](self) for what it promises.
#[derive(Clone, Debug)]
pub struct Leaderboard<O: Family, M: Family, S: Family> {
    order: Key<O>,
    players: Key<M>,
    sources: Key<S>,
}

/// The type of a player's id: any key part that can be compared. `u64`, `i64`, `Uuid`, `Name` and types of
/// [`part!`](emberkeep_schema::part!) are.
pub trait PlayerId: Part + Clone + PartialEq + Send + Sync + 'static {}

impl<I: Part + Clone + PartialEq + Send + Sync + 'static> PlayerId for I {}

/// An entry and its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Standing<I> {
    /// From 1, the best.
    pub rank: u64,
    /// The player's id.
    pub player: I,
    /// The score; higher is better.
    pub score: i64,
    /// When the score was reached.
    pub reached_at: i64,
}

/// Why a board was not changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LeaderboardError {
    /// The board is being rebuilt.
    #[error(
        "the leaderboard {key} is being rebuilt; nothing was written; retry when the rebuild has finished, or begin another one if its process died"
    )]
    Rebuilding {
        /// The key of the sources.
        key: String,
    },
    /// Another rebuild has begun, or this one was cancelled.
    #[error(
        "the leaderboard {key} is not rebuilt by this call any more; another rebuild began, or it was cancelled"
    )]
    Superseded {
        /// The key of the sources.
        key: String,
    },
    /// The store failed, or an argument or a stored value is wrong.
    #[error(transparent)]
    Store(#[from] Error),
}

impl<P, O, M, S, I> Leaderboard<O, M, S>
where
    P: Partition,
    O: Family<Partition = P, Kind = SortedSet<Ranked<I>>, Ttl: Automatic>,
    M: Family<Partition = P, Kind = Hash<Id<I>, Ranked<I>>, Ttl: Automatic>,
    S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    I: PlayerId,
{
    /// The board at these keys: the order, the players, the sources. That the first two have one TTL policy is
    /// checked at compile time.
    pub fn new(order: Key<O>, players: Key<M>, sources: Key<S>) -> Self {
        const {
            let same = is_same_ttl(O::DECLARATION.ttl, M::DECLARATION.ttl);
            assert!(same, "the order and the players of a leaderboard need the same `ttl`");
        }
        Leaderboard { order, players, sources }
    }
}

const fn is_same_ttl(one: Ttl, other: Ttl) -> bool {
    match (one, other) {
        (Ttl::Persistent, Ttl::Persistent) => true,
        (Ttl::Fixed { ms: one }, Ttl::Fixed { ms: other }) => one == other,
        (Ttl::Refresh { ms: one }, Ttl::Refresh { ms: other }) => one == other,
        _ => false,
    }
}

/// What a key of the board holds is wrong.
#[cold]
fn corrupt<F: Family>(key: &[u8], reason: impl Into<String>) -> Error {
    Error::Corrupt { key: format!("{} (family {})", show(key), F::DECLARATION.name), reason: reason.into() }
}
