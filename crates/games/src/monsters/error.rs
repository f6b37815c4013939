//! Errors of monster operations, one variant per remedy.

use super::model::MonsterId;
use emberkeep_hot as hot;
use emberkeep_primitives::Exhausted;

/// The result of an operation on monsters.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on monsters failed. Nothing was changed, unless a store error says otherwise.
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
    /// The tenant has no monster with this id. It was removed, or it never existed.
    #[error("monster {id} does not exist; list the field again")]
    NotFound {
        /// The id that was asked for.
        id: MonsterId,
    },
    /// The monster is dead, and the operation needs a living one.
    #[error("monster {id} is dead; remove it")]
    AlreadyDead {
        /// The id of the dead monster.
        id: MonsterId,
    },
    /// The monster has no drop timer.
    #[error("monster {id} has no drop timer; register one first")]
    NoDropTimer {
        /// The id of the monster without a timer.
        id: MonsterId,
    },
    /// The monster has the maximum number of something.
    #[error("monster {id} already has {max} {what}, the maximum; cancel one first")]
    TooMany {
        /// The monster that has too many.
        id: MonsterId,
        /// What there are too many of.
        what: &'static str,
        /// How many it may have.
        max: usize,
    },
    /// Every id of the tenant is in use.
    #[error("no free id for a new monster: {0}")]
    Exhausted(#[from] Exhausted),
    /// An error of the store, unchanged.
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
