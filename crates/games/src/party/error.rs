//! What can go wrong in a room, one variant per remedy. Each has a text that never changes, for clients.

use super::model::{PlayerId, RoomCode};
use emberkeep_hot as hot;

/// The result of an operation on rooms.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on a room failed. Nothing was changed, unless the store says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such room: it was closed, or never was.
    #[error("there is no room {0}; ask for the code again")]
    RoomNotFound(RoomCode),
    /// Nobody did anything in the room for a day.
    #[error("room {0} has expired; create another one")]
    RoomExpired(RoomCode),
    /// The client, or this server, speaks another version than the room.
    #[error(
        "the room speaks version {expected} of the protocol, not {found}; reload the client, or ask a server of that version"
    )]
    ProtocolVersion {
        /// What the client or the server speaks.
        found: u32,
        /// What the room speaks.
        expected: u32,
    },
    /// The caller asked for something that makes no sense.
    #[error("invalid {what}: {problem}")]
    Invalid {
        /// What.
        what: &'static str,
        /// What it was and what was expected.
        problem: String,
    },
    /// The key is not the room's, or the room it was for is no more.
    #[error("that is not the key of room {0}")]
    NotMaster(RoomCode),
    /// The caller sent no master key, and only the master may do this.
    #[error("only the master of room {0} may do this; send the master key")]
    MasterOnly(RoomCode),
    /// A device renames only its own player.
    #[error("player {0} belongs to another device; only the master renames it")]
    NotYourPlayer(PlayerId),
    /// The caller did not prove that it is the device that it names.
    #[error("the reconnect token is missing or is not this device's; send the one that joining returned")]
    NotThisDevice,
    /// The master banned the device.
    #[error("this device was banned from room {0}; the master can lift the ban")]
    Banned(RoomCode),
    /// The lobby is locked, and the device has not joined before.
    #[error("room {0} is locked; the master can unlock it")]
    RoomLocked(RoomCode),
    /// There is no such ban.
    #[error("there is no ban {0}; ask for the state again")]
    BanNotFound(String),
    /// The room is at another point of the game.
    #[error("not now: {problem}")]
    NotInPhase {
        /// Where the room is, and where it would have to be.
        problem: String,
    },
    /// The device has no player, or a player has no device.
    #[error("{problem}")]
    NotClaimed {
        /// Who has none.
        problem: String,
    },
    /// The room has no such player.
    #[error("there is no player {0}; ask for the state again")]
    PlayerNotFound(PlayerId),
    /// Something of that name is there already, or what was asked for is not what is there.
    #[error("conflict: {problem}")]
    Conflict {
        /// With what.
        problem: String,
    },
    /// A device has one player at a time.
    #[error("the device has player {0} already; release it first")]
    DeviceAlreadyHasPlayer(PlayerId),
    /// Another device has the player.
    #[error("player {0} is taken; take another one")]
    TakenNow(PlayerId),
    /// The player takes no part.
    #[error("player {0} is not active; the master can activate it")]
    Inactive(PlayerId),
    /// The first vote counts.
    #[error("player {0} has voted on this item; the first vote counts")]
    AlreadyVoted(PlayerId),
    /// The choice is none that the item allows.
    #[error("invalid selection: {problem}")]
    InvalidSelection {
        /// What it was and what was expected.
        problem: String,
    },
    /// The vote is over.
    #[error("the vote on this item is over")]
    Late,
    /// One more would be more than a room may have.
    #[error("the room has {max} {what} already, no more fit")]
    RoomFull {
        /// Of what.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// A game needs more players.
    #[error("the game needs {needed} active players, the room has {active}; add or activate some")]
    NotEnoughPlayers {
        /// How many there are.
        active: usize,
        /// How many it takes.
        needed: usize,
    },
    /// The system has no randomness for a code or a key.
    #[error("the system gives no randomness: {0}")]
    NoRandomness(String),
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] hot::Error),
}

impl Error {
    /// The error as clients know it; it never changes.
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
            // What the client cannot help is one thing to it.
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
