//! What can go wrong with monsters, one variant per remedy.

use super::model::MonsterId;
use emberkeep_hot as hot;
use emberkeep_primitives::Exhausted;

/// The result of an operation on monsters.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on monsters failed. Nothing was changed, unless the store says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that makes no sense.
    #[error("invalid {what}: {problem}")]
    Invalid {
        /// What.
        what: &'static str,
        /// What it was and what was expected.
        problem: String,
    },
    /// The tenant has no such monster: it was removed, never was, or is another tenant's.
    #[error("monster {id} is not there; list the field again")]
    NotFound {
        /// Which one.
        id: MonsterId,
    },
    /// The monster is dead, and only the living can do this or have it done to them.
    #[error("monster {id} is dead; remove it")]
    AlreadyDead {
        /// Which one.
        id: MonsterId,
    },
    /// The monster has no drop timer.
    #[error("monster {id} has no drop timer; register one first")]
    NoDropTimer {
        /// Which one.
        id: MonsterId,
    },
    /// One more would be more than a monster may have.
    #[error("monster {id} has {max} {what} already, no more are kept; cancel one first")]
    TooMany {
        /// The monster.
        id: MonsterId,
        /// Of what.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// Every id of the tenant is in use.
    #[error("no id for a new monster: {0}")]
    Exhausted(#[from] Exhausted),
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

impl Error {
    pub(super) fn invalid(what: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { what, problem: problem.into() }
    }
}

impl crate::type_guard::AsStoreError for Error {
    fn as_store_error(&self) -> Option<&hot::Error> {
        match self {
            Error::Store(error) => Some(error),
            _ => None,
        }
    }
}
