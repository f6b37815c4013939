//! Errors of the archive, one variant per remedy.

use super::super::history::ClaimKind;
use emberkeep_history as history;

/// The result of an operation on the archive.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on the archive failed. Nothing was changed, unless an error of history says otherwise.
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
    /// The name or the address belongs to another player, or is being claimed by one.
    #[error("the {} is taken; choose another one", .kind.text())]
    Taken {
        /// Whether it is the name or the address.
        kind: ClaimKind,
    },
    /// The player has a profile already.
    #[error("player {player_id} is registered already; change the profile instead")]
    Registered {
        /// The player who has the profile.
        player_id: i64,
    },
    /// The player has no profile.
    #[error("player {player_id} is not registered; register the player first")]
    NotFound {
        /// The player who was looked for.
        player_id: i64,
    },
    /// Another call changed the same profile or claim at the same time.
    #[error("player {player_id} was changed by another call: {reason}; read the profile and try again")]
    Conflict {
        /// The player whose profile or claim changed.
        player_id: i64,
        /// What the other call did.
        reason: &'static str,
    },
    /// The history store failed.
    #[error(transparent)]
    History(#[from] history::Error),
}

impl Error {
    /// Whether history cannot be reached now, or has too much to do. What needs no history can go on.
    pub fn is_away(&self) -> bool {
        use history::Error as E;
        let Error::History(error) = self else { return false };
        matches!(
            error,
            E::Unavailable { .. } | E::Busy { .. } | E::Stopped { .. } | E::OutcomeUnknown { .. } | E::Closed
        )
    }

    pub(super) fn invalid(what: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { what, problem: problem.into() }
    }
}

/// Refuses a text that is empty, too long, or has control characters.
pub(super) fn check_text(what: &'static str, text: &str, bytes_max: usize) -> Result<()> {
    if text.is_empty() || text.len() > bytes_max || text.chars().any(char::is_control) {
        let problem = format!("expected 1 to {bytes_max} bytes without control characters");
        return Err(Error::invalid(what, problem));
    }
    Ok(())
}

/// Refuses bytes that are not JSON, or too many.
pub(super) fn check_json(what: &'static str, bytes: &[u8], bytes_max: usize) -> Result<()> {
    if bytes.len() > bytes_max {
        return Err(Error::invalid(what, format!("{} bytes, at most {bytes_max} are allowed", bytes.len())));
    }
    let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(bytes);
    parsed.map(drop).map_err(|error| Error::invalid(what, format!("not JSON: {error}")))
}
