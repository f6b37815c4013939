//! Errors of DarkAges' hot state, one variant per remedy.

use super::model::EntityId;
use emberkeep_hot as hot;

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
        /// The entity.
        entity: EntityId,
    },
    /// The player is logged in, and the login does not replace a session.
    #[error("entity {entity} is logged in since {since}; log out first, or replace the session")]
    AlreadyLoggedIn {
        /// The entity.
        entity: EntityId,
        /// Start of the session, in milliseconds since 1970.
        since: i64,
    },
    /// The target has no health left.
    #[error("entity {entity} is dead; give it health first")]
    Dead {
        /// The target.
        entity: EntityId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

impl Error {
    pub(super) fn invalid(what: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { what, problem: problem.into() }
    }
}
