//! A log that feeds state of another partition, such as a leaderboard: each entry once.
//!
//! Promises:
//! 1. The state and the position in the log change in one transaction of the state's partition. So an entry counts once,
//!    whatever is killed in between, and with several processes that feed the same state.
//! 2. It needs nothing but hot state: it goes on while history cannot be reached. It is woken by the log's messages, and
//!    reads every [`FEED_POLL_EVERY`] without one.
//! 3. A log that is set back (a failover, a restore, FLUSHALL) is noticed by the mark of the entry at the position. The feed
//!    remembers the marks of the last [`FEED_PAGES_REMEMBERED`] pages. It goes on after the last entry of the log that
//!    it has applied already, so the entries that the log has kept do not count again.
//! 4. An entry that cannot be decoded, or that the effect refuses for good, is skipped, logged and counted. It does not
//!    stop the ones behind it.
//!
//! What it does not promise: events that the log lost after they were applied stay applied. If the *state* is set back and
//! the log is not, the entries between that were trimmed are missing: they are counted as missed, and the state is
//! rebuilt from history. On one server both are set back together.
//!
//! A caller that trims the log must leave what a feed has not read: see [`LogReader::position`]. A consumer of history does.
//!
//! Keys, all the caller's: a hash from source to position, and a log of the marks.

mod apply;
mod feed;
mod follow;
mod marks;

pub use apply::{EntryFeed, NumberedFeed};
pub use feed::{Feed, FeedRecord};
pub use follow::LogFeed;

use crate::leaderboard::LeaderboardError;
use bytes::Bytes;
use emberkeep_hot::Error;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::LogPosition;

#[cfg(doc)]
use crate::limits::{FEED_PAGES_REMEMBERED, FEED_POLL_EVERY};

/// An entry of a log that an effect applies.
#[derive(Debug, Clone, PartialEq)]
pub struct FedEntry<E> {
    /// Its sequence in the log.
    pub sequence: u64,
    /// The event, decoded.
    pub event: E,
}

/// Why entries were not applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FeedError {
    /// The state takes no changes now; the entries wait.
    #[error("the state takes no changes now: {reason}")]
    Waits {
        /// Why it takes none, for the log of the program.
        reason: String,
    },
    /// The entry can never be applied; it is skipped.
    #[error("the entry is refused: {reason}")]
    Refused {
        /// Why, for the log of the program.
        reason: String,
    },
    /// An error of the store, unchanged. If it is not the entries' fault, the page is tried again.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<LeaderboardError> for FeedError {
    fn from(error: LeaderboardError) -> FeedError {
        match error {
            LeaderboardError::Store(error) => FeedError::Store(error),
            waits => FeedError::Waits { reason: waits.to_string() },
        }
    }
}

impl FeedError {
    /// Whether the entries themselves are at fault, and would be again.
    fn is_refusal(&self) -> bool {
        matches!(
            self,
            FeedError::Refused { .. } | FeedError::Store(Error::Overflow { .. } | Error::Invalid { .. })
        )
    }
}

/// Counters of a reader since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedStats {
    /// Entries that were applied.
    pub applied: u64,
    /// Entries that were skipped, because they cannot be decoded or are refused.
    pub skipped: u64,
    /// Entries that were trimmed before they were applied.
    pub missed: u64,
    /// How often the log was set back.
    pub set_backs: u64,
    /// Passes that failed; each is repeated after a pause.
    pub errors: u64,
}

/// A reader of a log beside its consumer.
pub trait LogReader: Send + Sync + 'static {
    /// Applies what is in the log now. Returns how many entries; those that another process applied meanwhile are not counted.
    fn feed_once(&self) -> Pending<'_, Result<u64, FeedError>>;
    /// Applies entries as they come, until the store is closed. It can be dropped at any time.
    fn follow(&self) -> Pending<'_, ()>;
    /// The last entry that was applied. Entries after it must not be trimmed.
    fn position(&self) -> Pending<'_, Result<LogPosition, Error>>;
    /// What was applied, skipped and missed since the start of this process.
    fn stats(&self) -> FeedStats;
}

/// A reader of entries that another part of the program delivers in order, such as the consumer of a spool.
pub trait EntryReader: Send + Sync + 'static {
    /// Applies those of some entries that were not applied before. They follow those of the last call for this source without a
    /// gap; repeating a call changes nothing. Returns how many were applied.
    fn apply<'a>(
        &'a self,
        source: &'a str,
        entries: &'a [(u64, Bytes)],
    ) -> Pending<'a, Result<u64, FeedError>>;
    /// What was applied, skipped and missed since the start of this process.
    fn stats(&self) -> FeedStats;
}
