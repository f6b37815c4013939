//! Why the server closes a connection, and its close frame.

use super::server_message;
use axum::extract::ws::{CloseFrame, Utf8Bytes};
use tokio_tungstenite::tungstenite;

/// Why the server closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseReason {
    RoomClosed,
    RoomExpired,
    /// The room was migrated to another version of the protocol.
    OtherVersion,
    Shutdown,
    /// The client violates the WebSocket protocol.
    ProtocolError,
    Binary,
    NotUtf8,
    TooLarge,
    Flood,
    NoJoin,
    TooSlow,
    /// The room has too many connections.
    Full,
    Idle,
    Replaced,
    /// The master banned the device.
    Banned,
    /// A connection to Galaxy did not authenticate in time.
    NotAuthenticated,
    /// The player was deleted.
    PlayerDeleted,
    /// The player's connections were closed by a caller of the API.
    Removed,
}

impl CloseReason {
    /// The reason for a frame that cannot be received; `None` if the connection is gone.
    pub(super) fn from_error(error: axum::Error) -> Option<CloseReason> {
        use tungstenite::Error as E;
        match error.into_inner().downcast_ref::<tungstenite::Error>()? {
            E::Capacity(_) => Some(CloseReason::TooLarge),
            E::Utf8(_) => Some(CloseReason::NotUtf8),
            E::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => None,
            E::Protocol(_) => Some(CloseReason::ProtocolError),
            _ => None,
        }
    }

    /// Whether the rest of the input cannot be parsed.
    pub(super) fn is_bad_frame(self) -> bool {
        matches!(self, CloseReason::TooLarge | CloseReason::NotUtf8 | CloseReason::ProtocolError)
    }

    /// The message before the close frame, if there is one.
    pub(super) fn final_message(self) -> Option<Utf8Bytes> {
        let error = |code, text| Some(server_message::error(None, code, text));
        match self {
            CloseReason::RoomClosed => Some(server_message::room_closed()),
            CloseReason::RoomExpired => error("room_expired", "the room has expired; create another one"),
            CloseReason::OtherVersion => {
                error("invalid_protocol_version", "the room speaks another version of the protocol now")
            }
            CloseReason::Full => {
                error("room_full", "the room is full, and its master or a player needed this place")
            }
            CloseReason::Banned => {
                error("banned", "this device was banned from the room; the master can lift the ban")
            }
            CloseReason::PlayerDeleted => error("player_deleted", "the player was deleted"),
            _ => None,
        }
    }

    pub(super) fn frame(self) -> CloseFrame {
        let (code, reason) = self.code();
        CloseFrame { code, reason: Utf8Bytes::from_static(reason) }
    }

    /// The code and the reason of the close frame.
    fn code(self) -> (u16, &'static str) {
        match self {
            CloseReason::RoomClosed => (1000, "room closed"),
            CloseReason::RoomExpired => (1000, "room expired"),
            CloseReason::OtherVersion => (1000, "another version of the protocol"),
            CloseReason::Shutdown => (1001, "server ends; connect again"),
            CloseReason::ProtocolError => (1002, "not WebSocket"),
            CloseReason::Binary => (1003, "text messages only"),
            CloseReason::NotUtf8 => (1007, "not UTF-8"),
            CloseReason::Flood => (1008, "too many messages"),
            CloseReason::NoJoin => (1008, "expected JOIN_ROOM as the first message"),
            CloseReason::NotAuthenticated => (1008, "expected AUTHENTICATE as the first message"),
            CloseReason::TooLarge => (1009, "message too large"),
            CloseReason::TooSlow => (1013, "too slow; connect again"),
            CloseReason::Full => (1013, "too many connections; try later"),
            CloseReason::Idle => (4000, "no sign of life"),
            CloseReason::Banned => (4003, "banned"),
            CloseReason::PlayerDeleted => (4004, "player deleted"),
            CloseReason::Removed => (4005, "closed by the game; connect again"),
            CloseReason::Replaced => (4001, "another connection of this device"),
        }
    }
}
