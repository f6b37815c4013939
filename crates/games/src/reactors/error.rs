//! What can go wrong with reactors, one variant per remedy.

use super::model::{Reactor, ReactorId};
use emberkeep_hot as hot;
use emberkeep_primitives::Exhausted;
use std::time::Duration;

/// The result of an operation on reactors.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on reactors failed. Nothing was changed, unless the store says otherwise.
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
    /// The tenant has no such reactor: it was destroyed, never was, or is another tenant's.
    #[error("reactor {id} is not there; list the field again")]
    NotFound {
        /// Which one.
        id: ReactorId,
    },
    /// The spot cools down after an earlier reactor.
    #[error("the spot is on cooldown for another {remaining:?}; create it then, or clear the cooldown")]
    OnCooldown {
        /// Until it has cooled down; [`Duration::MAX`] if an external client set a marker that never ends.
        remaining: Duration,
    },
    /// A living reactor of the same classification stands on the spot.
    #[error(
        "reactor {id} of the same classification stands on that spot; destroy it first, or choose another spot"
    )]
    SpotTaken {
        /// Which one.
        id: ReactorId,
    },
    /// The field holds as many reactors as a field may.
    #[error("the field holds {max} reactors or more, as many as a field may; destroy some")]
    FieldFull {
        /// How many that is.
        max: usize,
    },
    /// Every id is in use.
    #[error("no id for a new reactor: {0}")]
    Exhausted(#[from] Exhausted),
    /// The reactor is not as the caller saw it.
    #[error("reactor {} changed since it was read; decide again on its current form", .current.id)]
    Conflict {
        /// As it is.
        current: Box<Reactor>,
    },
    /// The store could not do it.
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
