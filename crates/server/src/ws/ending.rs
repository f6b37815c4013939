//! Why a server ends a connection, as its close frame says it.

use super::message;
use axum::extract::ws::{CloseFrame, Utf8Bytes};
use tokio_tungstenite::tungstenite;

/// Why a server ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    RoomClosed,
    RoomExpired,
    /// The room speaks another version of the protocol now.
    OtherVersion,
    ServerEnds,
    /// The client breaks the rules of WebSocket.
    Broken,
    Binary,
    NoText,
    TooLarge,
    TooMuch,
    NoJoin,
    TooSlow,
    /// More connections than a room has.
    Full,
    Idle,
    Replaced,
    /// The master banned the device.
    Banned,
}

impl Ending {
    /// What a frame that cannot be received says about its client; `None` if the connection itself is gone.
    pub(super) fn of_error(error: axum::Error) -> Option<Ending> {
        use tungstenite::Error as E;
        match error.into_inner().downcast_ref::<tungstenite::Error>()? {
            E::Capacity(_) => Some(Ending::TooLarge),
            E::Utf8(_) => Some(Ending::NoText),
            E::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => None,
            E::Protocol(_) => Some(Ending::Broken),
            _ => None,
        }
    }

    /// Whether nothing more can be read from the connection.
    pub(super) fn is_of_a_bad_frame(self) -> bool {
        matches!(self, Ending::TooLarge | Ending::NoText | Ending::Broken)
    }

    /// The last message before the close frame, where there is one.
    pub(super) fn last_word(self) -> Option<Utf8Bytes> {
        let error = |code, text| Some(message::error(None, code, text));
        match self {
            Ending::RoomClosed => Some(message::room_closed()),
            Ending::RoomExpired => error("room_expired", "the room has expired; create another one"),
            Ending::OtherVersion => {
                error("invalid_protocol_version", "the room speaks another version of the protocol now")
            }
            Ending::Full => {
                error("room_full", "the room is full, and its master or a player needed this place")
            }
            Ending::Banned => {
                error("banned", "this device was banned from the room; the master can lift the ban")
            }
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
            Ending::RoomClosed => (1000, "room closed"),
            Ending::RoomExpired => (1000, "room expired"),
            Ending::OtherVersion => (1000, "another version of the protocol"),
            Ending::ServerEnds => (1001, "server ends; connect again"),
            Ending::Broken => (1002, "not WebSocket"),
            Ending::Binary => (1003, "text messages only"),
            Ending::NoText => (1007, "not UTF-8"),
            Ending::TooMuch => (1008, "too many messages"),
            Ending::NoJoin => (1008, "expected JOIN_ROOM as the first message"),
            Ending::TooLarge => (1009, "message too large"),
            Ending::TooSlow => (1013, "too slow; connect again"),
            Ending::Full => (1013, "too many connections; try later"),
            Ending::Idle => (4000, "no sign of life"),
            Ending::Banned => (4003, "banned"),
            Ending::Replaced => (4001, "another connection of this device"),
        }
    }
}
