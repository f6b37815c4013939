//! Messages to clients: `{"type": …, "sequence": …, "payload": {…}}`.

use super::client_message::ParseError;
use super::send_queue::Priority;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::model::Loss;
use emberkeep_games::party::{Error, Event, ItemId, PlayerId, RoundId, SequencedEvent};
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
struct Envelope<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    /// The sequence of an event of the room's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    payload: T,
}

pub(super) fn envelope<T: Serialize>(kind: &str, sequence: Option<u64>, payload: T) -> Utf8Bytes {
    let text = serde_json::to_string(&Envelope { kind, sequence, payload });
    // Maps have string keys, so that serialization cannot fail.
    Utf8Bytes::from(text.unwrap_or_default())
}

/// The state, as the client may see it.
pub(super) fn sync(state: &impl Serialize) -> Utf8Bytes {
    envelope("STATE_SYNC_RESPONSE", None, state)
}

pub(super) fn join_ok<S: Serialize>(is_master: bool, reconnect_token: &str, state: &S) -> Utf8Bytes {
    #[derive(Serialize)]
    struct JoinReply<'a, S> {
        is_master: bool,
        reconnect_token: &'a str,
        state: &'a S,
    }
    envelope("JOIN_OK", None, JoinReply { is_master, reconnect_token, state })
}

/// A request failed. `request` is the type of the client message, if it could be parsed.
pub(super) fn error(request: Option<&str>, code: &str, message: &str) -> Utf8Bytes {
    envelope("ERROR", None, json!({ "request": request, "code": code, "message": message }))
}

/// The device did not get the player; the code says why.
pub(super) fn take_player_fail(player: &PlayerId, error: &Error) -> Utf8Bytes {
    let payload = json!({ "player_id": player, "code": error.code(), "message": super::session::public_error_text(error) });
    frame("TAKE_PLAYER_FAIL", payload)
}

pub(super) fn parse_error(parse: &ParseError) -> Utf8Bytes {
    error(parse.kind.as_deref(), "invalid_payload", &parse.problem)
}

/// The answer to a client message.
pub(super) fn frame(kind: &str, payload: Value) -> Utf8Bytes {
    envelope(kind, None, payload)
}

/// Tells the client the last sequence that it was sent, so that it can detect a lost message.
pub(super) fn ping(sequence: u64) -> Utf8Bytes {
    envelope("PING", None, json!({ "sequence": sequence }))
}

pub(super) fn room_closed() -> Utf8Bytes {
    envelope("ROOM_CLOSED_BROADCAST", None, json!({}))
}

/// How a device lost its player, repeated after a join. It is not a new event, so it has no sequence.
pub(super) fn slot_invalidated(lost: &Loss) -> Utf8Bytes {
    let payload = json!({ "player_id": lost.player_id, "reason": lost.reason });
    envelope("SLOT_INVALIDATED", None, payload)
}

/// A vote was received. It is not an event of the room's log, so it has no sequence.
pub(super) fn player_voted(round: &RoundId, item: &ItemId, player: &PlayerId) -> Utf8Bytes {
    let payload = json!({ "round_id": round, "item_id": item, "player_id": player });
    envelope("PLAYER_VOTED", None, payload)
}

/// An event of the log with its message, which is serialized once for all subscribers.
pub(super) struct EventMessage<'a> {
    pub(super) recorded: &'a SequencedEvent,
    /// `None` if only the state shows the event.
    pub(super) text: Option<Utf8Bytes>,
}

impl EventMessage<'_> {
    pub(super) fn new(recorded: &SequencedEvent) -> EventMessage<'_> {
        let message = message(&recorded.entry.event);
        let text = message.map(|(kind, payload)| envelope(kind, Some(recorded.sequence), payload));
        EventMessage { recorded, text }
    }

    /// The state also shows every event except the loss of a player.
    pub(super) fn priority(&self) -> Priority {
        match self.recorded.entry.event {
            Event::SlotInvalidated { .. } => Priority::Required,
            _ => Priority::Droppable,
        }
    }
}

/// Type and payload of an event's message.
fn message(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::SlotInvalidated { player_id, reason, .. } => {
            ("SLOT_INVALIDATED", json!({ "player_id": player_id, "reason": reason }))
        }
        Event::GameStarted => ("GAME_START", json!({})),
        Event::VoteStarted { round_id, item_id, reel_url, k } => {
            ("START_VOTE", json!({ "round_id": round_id, "item_id": item_id, "reel_url": reel_url, "k": k }))
        }
        Event::ItemRevealed { results } => ("VOTE_RESULTS", json!(results)),
        Event::RoundScored { round_id, ranking } => {
            ("ROUND_SCORE_MODAL", json!({ "round_id": round_id, "ranking": ranking, "game_over": false }))
        }
        Event::BackToLobby { keep_rounds } => ("BACK_TO_LOBBY", json!({ "keep_rounds": keep_rounds })),
        Event::GameOver { ranking } => {
            ("ROUND_SCORE_MODAL", json!({ "round_id": null, "ranking": ranking, "game_over": true }))
        }
        _ => return None,
    })
}
