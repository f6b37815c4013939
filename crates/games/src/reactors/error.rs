//! Errors of reactor operations, one variant per remedy.

use super::model::{Reactor, ReactorId};
use emberkeep_hot as hot;
use emberkeep_primitives::Exhausted;
use std::time::Duration;

/// The result of an operation on reactors.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on reactors failed. Nothing was changed, unless a store error says otherwise.
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
    /// The tenant has no reactor with this id. It was destroyed, never existed, or belongs to another tenant.
    #[error("reactor {id} does not exist; list the field again")]
    NotFound {
        /// The id that was asked for.
        id: ReactorId,
    },
    /// The spot is on cooldown after an earlier reactor.
    #[error("the spot is on cooldown for another {remaining:?}; retry then, or clear the cooldown")]
    OnCooldown {
        /// The remaining cooldown; [`Duration::MAX`] if an external client set a marker without a TTL.
        remaining: Duration,
    },
    /// A living reactor of the same classification occupies the spot.
    #[error(
        "reactor {id} of the same classification occupies the spot; destroy it first, or choose another spot"
    )]
    SpotTaken {
        /// The reactor on the spot.
        id: ReactorId,
    },
    /// The field has the maximum number of reactors.
    #[error("the field has {max} reactors, the maximum; destroy some first")]
    FieldFull {
        /// How many a field may have.
        max: usize,
    },
    /// Every id is in use.
    #[error("no free id for a new reactor: {0}")]
    Exhausted(#[from] Exhausted),
    /// The reactor has changed since the caller read it.
    #[error("reactor {} has changed since it was read; read it again", .current.id)]
    Conflict {
        /// The reactor as it is now.
        current: Box<Reactor>,
    },
    /// An error of the store, unchanged.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

impl crate::type_guard::AsStoreError for Error {
    fn as_store_error(&self) -> Option<&hot::Error> {
        match self {
            Error::Store(error) => Some(error),
            _ => None,
        }
    }
}
