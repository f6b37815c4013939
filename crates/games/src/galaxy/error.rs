//! Errors of Galaxy, one variant per remedy.

use super::model::{PlayerId, RuleId, ShipId};
use emberkeep_hot as hot;
use emberkeep_primitives::lease::LeaseError;

/// The result of an operation on Galaxy.
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
    /// There is no such entity, rule, maneuver or gateway.
    #[error("{what} {id} does not exist")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// An entity with this id exists.
    #[error("{what} {id} exists already; choose another id, or remove it first")]
    Exists {
        /// What it is.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The ship is another player's.
    #[error("ship {ship} does not belong to player {player}")]
    NotOwner {
        /// The ship.
        ship: ShipId,
        /// The player who called.
        player: PlayerId,
    },
    /// There are as many as there may be.
    #[error("there are {max} {what}; remove one first")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// The ship has a rule with this id.
    #[error("ship {ship} has a rule {rule} already; change it, or choose another id")]
    RuleExists {
        /// The ship.
        ship: ShipId,
        /// The rule.
        rule: RuleId,
    },
    /// Registration is closed.
    #[error("registration is closed; an administrator can open it")]
    RegistrationClosed,
    /// The player was deleted. Its id is not used again.
    #[error("player {player} was deleted")]
    PlayerDeleted {
        /// The player.
        player: PlayerId,
    },
    /// Ticks are paused.
    #[error("the game is paused; resume it before the next tick")]
    Paused,
    /// A reset or a restore is under way.
    #[error("a {phase} is under way; try again when it is done")]
    Busy {
        /// `reset` or `restore`.
        phase: &'static str,
    },
    /// Another process runs the ticks.
    #[error("{holder} runs the ticks for another {left_ms} ms at least; stop it, or wait")]
    LeaseHeld {
        /// The process that has the lease.
        holder: String,
        /// How long its lease lasts unless it is renewed.
        left_ms: u64,
    },
    /// The step is not the one after the present tick: another tick or a reset came between.
    #[error("the tick to commit is {step}, but the next one is {next}; begin a new step")]
    StaleStep {
        /// The generation and tick of the step.
        step: String,
        /// The generation and tick that come next.
        next: String,
    },
    /// The tick is not kept any more: its chunks were removed.
    #[error("tick {tick} of generation {generation} is not kept any more")]
    TickGone {
        /// The generation.
        generation: i64,
        /// The tick.
        tick: i64,
    },
    /// The tick engine's lease is over.
    #[error(transparent)]
    Lease(LeaseError),
    /// An error of the store, unchanged.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

impl Error {
    pub(super) fn invalid(what: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { what, problem: problem.into() }
    }

    pub(super) fn not_found(what: &'static str, id: impl ToString) -> Error {
        Error::NotFound { what, id: id.to_string() }
    }

    pub(super) fn exists(what: &'static str, id: impl ToString) -> Error {
        Error::Exists { what, id: id.to_string() }
    }
}

impl From<LeaseError> for Error {
    fn from(error: LeaseError) -> Error {
        match error {
            LeaseError::Store(error) => Error::Store(error),
            error => Error::Lease(error),
        }
    }
}
