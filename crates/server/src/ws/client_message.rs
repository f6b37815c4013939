//! Messages of clients: `{"type": …, "payload": {…}}`.

use emberkeep_games::party::{DeviceId, ItemId, PlayerId, RoundId, SenderId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The first message of every connection.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JoinRoom {
    pub(super) room_code: String,
    pub(super) device_id: DeviceId,
    pub(super) protocol_version: u32,
    #[serde(default)]
    pub(super) master_key: Option<String>,
    #[serde(default)]
    pub(super) reconnect_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfPlayer {
    pub(super) player_id: PlayerId,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RenamePlayer {
    pub(super) player_id: PlayerId,
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddPlayer {
    pub(super) player_id: PlayerId,
    pub(super) name: String,
    #[serde(default)]
    pub(super) sender_id: Option<SenderId>,
    #[serde(default)]
    pub(super) avatar_url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TogglePlayer {
    pub(super) player_id: PlayerId,
    pub(super) active: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfItem {
    pub(super) round_id: RoundId,
    pub(super) item_id: ItemId,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubmitVote {
    pub(super) round_id: RoundId,
    pub(super) item_id: ItemId,
    pub(super) selections: Vec<SenderId>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockLobby {
    pub(super) locked: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unban {
    pub(super) ban_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlayAgain {
    #[serde(default = "yes")]
    pub(super) keep_rounds: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoPayload {}

/// Declares every message once: its type, its variant and its payload.
macro_rules! client_messages {
    ($($kind:literal => $variant:ident $(($payload:ty))?,)+) => {
        /// A message of a client.
        #[derive(Debug)]
        pub(super) enum ClientMessage {
            $($variant $(($payload))?,)+
        }

        /// All types, for the error of an unknown one.
        const KINDS: &[&str] = &[$($kind),+];

        impl ClientMessage {
            /// The `type` of the message, as the protocol spells it.
            pub(super) fn kind(&self) -> &'static str {
                match self {
                    $(client_messages!(@pattern $variant $($payload)?) => $kind,)+
                }
            }

            fn from_parts(kind: &str, payload: &str) -> Result<ClientMessage, String> {
                match kind {
                    $($kind => client_messages!(@parse payload, $variant $($payload)?),)+
                    _ => Err(format!("unknown type; known are {}", KINDS.join(", "))),
                }
            }
        }
    };
    (@pattern $variant:ident $payload:ty) => { ClientMessage::$variant(_) };
    (@pattern $variant:ident) => { ClientMessage::$variant };
    (@parse $text:ident, $variant:ident $payload:ty) => { parse_payload($text).map(ClientMessage::$variant) };
    (@parse $text:ident, $variant:ident) => {
        parse_payload($text).map(|NoPayload {}| ClientMessage::$variant)
    };
}

client_messages! {
    "JOIN_ROOM" => JoinRoom(JoinRoom),
    "REQUEST_SYNC" => RequestSync,
    "TAKE_PLAYER" => TakePlayer(OfPlayer),
    "RELEASE_PLAYER" => ReleasePlayer,
    "RENAME_PLAYER" => RenamePlayer(RenamePlayer),
    "ADD_PLAYER" => AddPlayer(AddPlayer),
    "DELETE_PLAYER" => DeletePlayer(OfPlayer),
    "TOGGLE_PLAYER" => TogglePlayer(TogglePlayer),
    "RESET_CLAIMS" => ResetClaims,
    "START_GAME" => StartGame,
    "OPEN_ITEM" => OpenItem(OfItem),
    "SUBMIT_VOTE" => SubmitVote(SubmitVote),
    "FORCE_CLOSE_VOTE" => ForceCloseVote,
    "REVEAL_ITEM" => RevealItem,
    "START_NEXT_ROUND" => StartNextRound,
    "LOCK_LOBBY" => LockLobby(LockLobby),
    "BAN_PLAYER" => BanPlayer(OfPlayer),
    "UNBAN" => Unban(Unban),
    "PLAY_AGAIN" => PlayAgain(PlayAgain),
    "ROOM_CLOSED" => RoomClosed,
}

/// A message that cannot be parsed.
#[derive(Debug)]
pub(super) struct ParseError {
    /// The type, if the envelope could be parsed.
    pub(super) kind: Option<String>,
    pub(super) problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

pub(super) fn parse(text: &str) -> Result<ClientMessage, ParseError> {
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| ParseError {
        kind: None,
        problem: format!("not a message: {error}; expected {{\"type\": …, \"payload\": {{…}}}}"),
    })?;
    let payload = envelope.payload.map_or("{}", RawValue::get);
    ClientMessage::from_parts(&envelope.kind, payload)
        .map_err(|problem| ParseError { kind: Some(envelope.kind), problem })
}

fn parse_payload<T: DeserializeOwned>(payload: &str) -> Result<T, String> {
    serde_json::from_str(payload).map_err(|error| format!("payload: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_parsed_or_its_payload_refused() {
        for kind in KINDS {
            match parse(&format!("{{\"type\":\"{kind}\"}}")) {
                Ok(message) => assert_eq!(message.kind(), *kind),
                Err(error) => assert!(error.problem.contains("missing field"), "{error:?}"),
            }
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (text, problem) in [
            ("", "not a message"),
            ("[]", "not a message"),
            (r#"{"type":"DANCE"}"#, "unknown type; known are JOIN_ROOM"),
            (r#"{"type":"TAKE_PLAYER","payload":{"player_id":7}}"#, "expected a string"),
            (r#"{"type":"START_GAME","payload":{"now":true}}"#, "unknown field `now`"),
            (r#"{"type":"START_GAME","payload":{},"extra":1}"#, "unknown field `extra`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.problem.contains(problem), "{text}: {}", error.problem);
        }
    }
}
