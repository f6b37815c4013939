//! Errors of room operations, one variant per remedy. Each has a stable code for clients.

use super::model::{PlayerId, RoomCode};
use emberkeep_hot as hot;

/// The result of an operation on rooms.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on a room failed. Nothing was changed, unless a store error says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The room does not exist: it was closed, or it never existed.
    #[error("room {0} does not exist; check the code")]
    RoomNotFound(RoomCode),
    /// The room was not used for a day.
    #[error("room {0} has expired; create another one")]
    RoomExpired(RoomCode),
    /// The client or this server uses another protocol version than the room.
    #[error(
        "the room uses protocol version {expected}, not {found}; reload the client, or use a server of that version"
    )]
    ProtocolVersion {
        /// The version of the client or of the server.
        found: u32,
        /// The version of the room.
        expected: u32,
    },
    /// An argument is invalid.
    #[error("invalid {what}: {problem}")]
    Invalid {
        /// The name of the argument.
        what: &'static str,
        /// The value and what was expected.
        problem: String,
    },
    /// The master key is wrong, or it belongs to an earlier room with the same code.
    #[error("wrong master key for room {0}")]
    NotMaster(RoomCode),
    /// The operation needs the master key, and the caller sent none.
    #[error("only the master of room {0} may do this; send the master key")]
    MasterOnly(RoomCode),
    /// A device can rename only its own player.
    #[error("player {0} belongs to another device; only the master can rename it")]
    NotYourPlayer(PlayerId),
    /// The caller did not prove the identity of the device that it names.
    #[error("the reconnect token is missing or wrong; send the token that the join returned")]
    NotThisDevice,
    /// The master banned the device.
    #[error("this device was banned from room {0}; the master can lift the ban")]
    Banned(RoomCode),
    /// The room is locked, and the device has not joined before.
    #[error("room {0} is locked; the master can unlock it")]
    RoomLocked(RoomCode),
    /// The ban does not exist.
    #[error("ban {0} does not exist; request the state again")]
    BanNotFound(String),
    /// The operation is not possible in the present phase or status.
    #[error("not possible now: {problem}")]
    NotInPhase {
        /// The present state and what the operation needs.
        problem: String,
    },
    /// A device has no player, or a player has no device.
    #[error("{problem}")]
    NotClaimed {
        /// Which of them is missing.
        problem: String,
    },
    /// The player does not exist.
    #[error("player {0} does not exist; request the state again")]
    PlayerNotFound(PlayerId),
    /// It already exists, or the request does not match the present state.
    #[error("conflict: {problem}")]
    Conflict {
        /// What it conflicts with.
        problem: String,
    },
    /// A device can have only one player.
    #[error("the device already has player {0}; release it first")]
    DeviceAlreadyHasPlayer(PlayerId),
    /// Another device has the player.
    #[error("player {0} is already taken; choose another one")]
    TakenNow(PlayerId),
    /// The player is inactive.
    #[error("player {0} is not active; the master can activate it")]
    Inactive(PlayerId),
    /// The player has already voted; the first vote counts.
    #[error("player {0} has already voted on this item; the first vote counts")]
    AlreadyVoted(PlayerId),
    /// The selection is not allowed for the item.
    #[error("invalid selection: {problem}")]
    InvalidSelection {
        /// The selection and what was expected.
        problem: String,
    },
    /// The vote has closed.
    #[error("the vote on this item is over")]
    Late,
    /// The room has the maximum number of something.
    #[error("the room already has {max} {what}, the maximum")]
    RoomFull {
        /// What there are too many of.
        what: &'static str,
        /// How many a room may have.
        max: usize,
    },
    /// The game needs more active players.
    #[error("the game needs {needed} active players, the room has {active}; add or activate some")]
    NotEnoughPlayers {
        /// Active players in the room.
        active: usize,
        /// Active players that are needed.
        needed: usize,
    },
    /// The operating system could not provide random bytes for a code or a key.
    #[error("the system's random source failed: {0}")]
    NoRandomness(String),
    /// An error of the store, unchanged.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

impl Error {
    /// The stable code of the error for clients. It never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Error::RoomNotFound(_) => "room_not_found",
            Error::RoomExpired(_) => "room_expired",
            Error::ProtocolVersion { .. } => "invalid_protocol_version",
            Error::Invalid { .. } => "invalid_payload",
            Error::NotMaster(_) | Error::MasterOnly(_) | Error::NotYourPlayer(_) => "not_master",
            Error::NotThisDevice => "not_this_device",
            Error::Banned(_) => "banned",
            Error::RoomLocked(_) => "room_locked",
            Error::BanNotFound(_) => "ban_not_found",
            Error::NotInPhase { .. } => "not_in_phase",
            Error::NotClaimed { .. } => "not_claimed",
            Error::PlayerNotFound(_) => "player_not_found",
            Error::Conflict { .. } => "conflict",
            Error::DeviceAlreadyHasPlayer(_) => "device_already_has_player",
            Error::TakenNow(_) => "taken_now",
            Error::Inactive(_) => "inactive",
            Error::AlreadyVoted(_) => "already_voted",
            Error::InvalidSelection { .. } => "invalid_selection",
            Error::Late => "late",
            Error::RoomFull { .. } => "room_full",
            Error::NotEnoughPlayers { .. } => "not_enough_players",
            // Problems that the client cannot solve have one code.
            Error::NoRandomness(_) => "unavailable",
            Error::Store(hot::Error::Corrupt { .. }) => "corrupt",
            Error::Store(_) => "unavailable",
        }
    }

    pub(super) fn invalid(what: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { what, problem: problem.into() }
    }

    pub(super) fn not_now(problem: impl Into<String>) -> Error {
        Error::NotInPhase { problem: problem.into() }
    }

    pub(super) fn conflict(problem: impl Into<String>) -> Error {
        Error::Conflict { problem: problem.into() }
    }
}
