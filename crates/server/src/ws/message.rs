//! What a server says: `{"type": …, "sequence": …, "payload": {…}}`.

use super::command::Unreadable;
use super::outbox::Weight;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::model::Loss;
use emberkeep_games::party::{Error, Event, ItemId, PlayerId, SequencedEvent, RoundId};
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
struct Envelope<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    /// The event of the room's log that this is, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    payload: T,
}

fn envelope<T: Serialize>(kind: &str, sequence: Option<u64>, payload: T) -> Utf8Bytes {
    let text = serde_json::to_string(&Envelope { kind, sequence, payload });
    // Maps have text for keys and numbers are whole: nothing in a message can fail to be written.
    Utf8Bytes::from(text.unwrap_or_default())
}

/// The state, in whichever form the socket may see it.
pub(super) fn sync(state: &impl Serialize) -> Utf8Bytes {
    envelope("STATE_SYNC_RESPONSE", None, state)
}

/// The connection is part of the room.
pub(super) fn join_ok<S: Serialize>(is_master: bool, reconnect_token: &str, state: &S) -> Utf8Bytes {
    #[derive(Serialize)]
    struct Joined<'a, S> {
        is_master: bool,
        reconnect_token: &'a str,
        state: &'a S,
    }
    envelope("JOIN_OK", None, Joined { is_master, reconnect_token, state })
}

/// A request failed. `of` is the type of the message that asked, where it could be read.
pub(super) fn error(of: Option<&str>, code: &str, message: &str) -> Utf8Bytes {
    envelope("ERROR", None, json!({ "request": of, "code": code, "message": message }))
}

/// A claim was refused, which has an answer of its own.
pub(super) fn not_taken(player: &PlayerId, error: &Error) -> Utf8Bytes {
    let payload =
        json!({ "player_id": player, "code": error.code(), "message": super::client::public(error) });
    answer("TAKE_PLAYER_FAIL", payload)
}

/// A message cannot be read.
pub(super) fn unreadable(unreadable: &Unreadable) -> Utf8Bytes {
    error(unreadable.kind.as_deref(), "invalid_payload", &unreadable.problem)
}

/// The answer to a request of the socket's own.
pub(super) fn answer(kind: &str, payload: Value) -> Utf8Bytes {
    envelope(kind, None, payload)
}

/// A sign of life that says what the socket was sent last.
pub(super) fn ping(sequence: u64) -> Utf8Bytes {
    envelope("PING", None, json!({ "sequence": sequence }))
}

/// The last word of a room.
pub(super) fn room_closed() -> Utf8Bytes {
    envelope("ROOM_CLOSED_BROADCAST", None, json!({}))
}

/// How a device lost its player, told again to one that was away: no news, so without a sequence.
pub(super) fn lost(lost: &Loss) -> Utf8Bytes {
    let payload = json!({ "player_id": lost.player_id, "reason": lost.reason });
    envelope("SLOT_INVALIDATED", None, payload)
}

/// A vote was received. It is no event of the room's log, so it has no sequence.
pub(super) fn voted(round: &RoundId, item: &ItemId, player: &PlayerId) -> Utf8Bytes {
    let payload = json!({ "round_id": round, "item_id": item, "player_id": player });
    envelope("PLAYER_VOTED", None, payload)
}

/// An event on its way to the seats: what is said of it is written once, whoever hears it.
pub(super) struct News<'a> {
    pub(super) recorded: &'a SequencedEvent,
    /// A message of its own; without one the state says it all.
    pub(super) text: Option<Utf8Bytes>,
}

impl News<'_> {
    pub(super) fn of(recorded: &SequencedEvent) -> News<'_> {
        let told = told(&recorded.entry.event);
        let text = told.map(|(kind, payload)| envelope(kind, Some(recorded.sequence), payload));
        News { recorded, text }
    }

    /// Whether the state says it, too. How a player was lost it does not.
    pub(super) fn weight(&self) -> Weight {
        match self.recorded.entry.event {
            Event::SlotInvalidated { .. } => Weight::Owed,
            _ => Weight::News,
        }
    }
}

/// The type and the payload of an event's own message.
fn told(event: &Event) -> Option<(&'static str, Value)> {
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
