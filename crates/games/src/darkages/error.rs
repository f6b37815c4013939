//! Errors of DarkAges' hot state, one variant per remedy.

use super::model::{EntityId, ZoneId};
use emberkeep_hot as hot;
use emberkeep_schema::Name;

/// The result of an operation on hot state.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed. Nothing was changed, unless a store error says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is invalid.
    #[error("invalid {what}: {problem}")]
    Invalid {
        /// The name of the argument.
        what: &'static str,
        /// The value and what was expected.
        problem: String,
    },
    /// The player has no living session: it expired, was closed, or never began.
    #[error("entity {entity} is not logged in; log in first")]
    NotLoggedIn {
        /// The entity of the player.
        entity: EntityId,
    },
    /// The player is logged in, and the login does not replace a session.
    #[error("entity {entity} is logged in since {since}; log out first, or replace the session")]
    AlreadyLoggedIn {
        /// The entity of the player.
        entity: EntityId,
        /// Start of the session, in milliseconds since 1970.
        since: i64,
    },
    /// The player is on its way between two shards, or was so a moment ago.
    #[error("entity {entity} is on its way to another shard; try again when it has arrived")]
    InTransit {
        /// The entity of the player.
        entity: EntityId,
    },
    /// No hand-off of the player to this zone waits: it was accepted by another server, went back, or ended.
    #[error("entity {entity} did not arrive in zone {zone}, or is not there any more")]
    NotArrived {
        /// The entity of the player.
        entity: EntityId,
        /// The zone that was to accept it.
        zone: ZoneId,
    },
    /// Another login, logout or hand-off of the player came after the beginning of this one, and replaced it.
    #[error("a later login or hand-off of entity {entity} replaced this one; read where it is")]
    Replaced {
        /// The entity of the player.
        entity: EntityId,
    },
    /// Two players, or a player and a zone, are of different shards: no transaction changes both.
    #[error("{what} and entity {entity} are of different shards; hand one of them off first")]
    OtherShard {
        /// The entity of the player.
        entity: EntityId,
        /// What it was to be changed together with.
        what: String,
    },
    /// Too many players are on their way out of a shard. The player stays where it is.
    #[error("too many players are on their way out of shard {shard}; try again")]
    TooManyInTransit {
        /// The shard whose outbox is full.
        shard: u16,
    },
    /// The target has no health left.
    #[error("entity {entity} is dead; give it health first")]
    Dead {
        /// The entity that was to be hit or changed.
        entity: EntityId,
    },
    /// The id of a connection that another entity has.
    #[error("connection {connection} is that of entity {entity}; choose another id, or close it first")]
    ConnectionInUse {
        /// The id that is taken.
        connection: Name,
        /// The entity that has it.
        entity: EntityId,
    },
    /// The entity has as many connections as it may have.
    #[error("entity {entity} has {max} connections; close one first")]
    TooManyConnections {
        /// The entity that has too many.
        entity: EntityId,
        /// How many it may have.
        max: usize,
    },
    /// An error of the store, unchanged.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

impl Error {
    pub(super) fn invalid(what: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { what, problem: problem.into() }
    }
}
