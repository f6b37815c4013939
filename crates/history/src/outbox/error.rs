//! Why a consumer could not go on.

use crate::error::Error;

/// The error of a consumer. Nothing is lost by it: what was not acknowledged is delivered again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DrainError {
    /// Hot state could not be read or changed.
    #[error("the outbox cannot be read or trimmed: {0}")]
    Hot(#[from] emberkeep_hot::Error),
    /// History could not be read or written.
    #[error("history does not take the entries of the outbox: {0}")]
    History(#[from] Error),
    /// A spool of another process has the entries before these.
    #[error(
        "entry {sequence} of {log} waits for the entries before it, which are in the spool of another process: start that process, or drain its folder in another one"
    )]
    InOtherSpool {
        /// The name of the log: its partition and key.
        log: String,
        /// The first entry that waits.
        sequence: u64,
    },
}

impl DrainError {
    /// Whether it goes away without a repair.
    pub fn is_transient(&self) -> bool {
        use emberkeep_hot::Error as Hot;
        match self {
            DrainError::Hot(error) => {
                matches!(error, Hot::Unavailable { .. } | Hot::Conflict { .. } | Hot::OutcomeUnknown { .. })
            }
            DrainError::History(error) => error.is_transient(),
            DrainError::InOtherSpool { .. } => true,
        }
    }

    /// Whether the hot store or history was closed: there is nothing more to do.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, DrainError::Hot(emberkeep_hot::Error::Closed) | DrainError::History(Error::Closed))
    }
}
