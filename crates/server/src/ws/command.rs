//! What a client says: `{"type": …, "payload": {…}}`.

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
struct Nothing {}

/// What a client asks for.
#[derive(Debug)]
pub(super) enum Command {
    JoinRoom(JoinRoom),
    RequestSync,
    TakePlayer(OfPlayer),
    ReleasePlayer,
    RenamePlayer(RenamePlayer),
    AddPlayer(AddPlayer),
    DeletePlayer(OfPlayer),
    TogglePlayer(TogglePlayer),
    ResetClaims,
    StartGame,
    OpenItem(OfItem),
    SubmitVote(SubmitVote),
    ForceCloseVote,
    RevealItem,
    StartNextRound,
    LockLobby(LockLobby),
    BanPlayer(OfPlayer),
    Unban(Unban),
    PlayAgain(PlayAgain),
    RoomClosed,
}

impl Command {
    /// The type of its message.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Command::JoinRoom(_) => "JOIN_ROOM",
            Command::RequestSync => "REQUEST_SYNC",
            Command::TakePlayer(_) => "TAKE_PLAYER",
            Command::ReleasePlayer => "RELEASE_PLAYER",
            Command::RenamePlayer(_) => "RENAME_PLAYER",
            Command::AddPlayer(_) => "ADD_PLAYER",
            Command::DeletePlayer(_) => "DELETE_PLAYER",
            Command::TogglePlayer(_) => "TOGGLE_PLAYER",
            Command::ResetClaims => "RESET_CLAIMS",
            Command::StartGame => "START_GAME",
            Command::OpenItem(_) => "OPEN_ITEM",
            Command::SubmitVote(_) => "SUBMIT_VOTE",
            Command::ForceCloseVote => "FORCE_CLOSE_VOTE",
            Command::RevealItem => "REVEAL_ITEM",
            Command::StartNextRound => "START_NEXT_ROUND",
            Command::LockLobby(_) => "LOCK_LOBBY",
            Command::BanPlayer(_) => "BAN_PLAYER",
            Command::Unban(_) => "UNBAN",
            Command::PlayAgain(_) => "PLAY_AGAIN",
            Command::RoomClosed => "ROOM_CLOSED",
        }
    }
}

const KNOWN: &str = "JOIN_ROOM, REQUEST_SYNC, TAKE_PLAYER, RELEASE_PLAYER, RENAME_PLAYER, ADD_PLAYER, DELETE_PLAYER, \
                     TOGGLE_PLAYER, RESET_CLAIMS, START_GAME, OPEN_ITEM, SUBMIT_VOTE, FORCE_CLOSE_VOTE, \
                     REVEAL_ITEM, START_NEXT_ROUND, LOCK_LOBBY, BAN_PLAYER, UNBAN, PLAY_AGAIN, ROOM_CLOSED";

/// A message that cannot be read: what it said it was, and what is wrong.
#[derive(Debug)]
pub(super) struct Unreadable {
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

/// Reads a message.
pub(super) fn read(text: &str) -> Result<Command, Unreadable> {
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| Unreadable {
        kind: None,
        problem: format!("no message: {error}; expected {{\"type\": …, \"payload\": {{…}}}}"),
    })?;
    let payload = envelope.payload.map_or("{}", RawValue::get);
    command(&envelope.kind, payload).map_err(|problem| Unreadable { kind: Some(envelope.kind), problem })
}

fn command(kind: &str, payload: &str) -> Result<Command, String> {
    let nothing = |command: Command| payload_of::<Nothing>(payload).map(|Nothing {}| command);
    match kind {
        "JOIN_ROOM" => payload_of(payload).map(Command::JoinRoom),
        "REQUEST_SYNC" => nothing(Command::RequestSync),
        "TAKE_PLAYER" => payload_of(payload).map(Command::TakePlayer),
        "RELEASE_PLAYER" => nothing(Command::ReleasePlayer),
        "RENAME_PLAYER" => payload_of(payload).map(Command::RenamePlayer),
        "ADD_PLAYER" => payload_of(payload).map(Command::AddPlayer),
        "DELETE_PLAYER" => payload_of(payload).map(Command::DeletePlayer),
        "TOGGLE_PLAYER" => payload_of(payload).map(Command::TogglePlayer),
        "RESET_CLAIMS" => nothing(Command::ResetClaims),
        "START_GAME" => nothing(Command::StartGame),
        "OPEN_ITEM" => payload_of(payload).map(Command::OpenItem),
        "SUBMIT_VOTE" => payload_of(payload).map(Command::SubmitVote),
        "FORCE_CLOSE_VOTE" => nothing(Command::ForceCloseVote),
        "REVEAL_ITEM" => nothing(Command::RevealItem),
        "START_NEXT_ROUND" => nothing(Command::StartNextRound),
        "LOCK_LOBBY" => payload_of(payload).map(Command::LockLobby),
        "BAN_PLAYER" => payload_of(payload).map(Command::BanPlayer),
        "UNBAN" => payload_of(payload).map(Command::Unban),
        "PLAY_AGAIN" => payload_of(payload).map(Command::PlayAgain),
        "ROOM_CLOSED" => nothing(Command::RoomClosed),
        _ => Err(format!("unknown type; known are {KNOWN}")),
    }
}

fn payload_of<T: DeserializeOwned>(payload: &str) -> Result<T, String> {
    serde_json::from_str(payload).map_err(|error| format!("payload: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_type_is_read_or_its_payload_refused() {
        for kind in KNOWN.split(',').map(str::trim) {
            match read(&format!("{{\"type\":\"{kind}\"}}")) {
                Ok(command) => assert_eq!(command.kind(), kind),
                Err(unreadable) => assert!(unreadable.problem.contains("missing field"), "{unreadable:?}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, problem) in [
            ("", "no message"),
            ("[]", "no message"),
            (r#"{"type":"DANCE"}"#, "unknown type; known are JOIN_ROOM"),
            (r#"{"type":"TAKE_PLAYER","payload":{"player_id":7}}"#, "expected a string"),
            (r#"{"type":"START_GAME","payload":{"now":true}}"#, "unknown field `now`"),
            (r#"{"type":"START_GAME","payload":{},"extra":1}"#, "unknown field `extra`"),
        ] {
            let unreadable = read(text).unwrap_err();
            assert!(unreadable.problem.contains(problem), "{text}: {}", unreadable.problem);
        }
    }
}
