//! What a server says: `{"type": …, "sequence": …, "payload": {…}}`.

use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{Event, Recorded};
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
pub(super) fn join_ok<S: Serialize>(is_master: bool, state: &S) -> Utf8Bytes {
    #[derive(Serialize)]
    struct Joined<'a, S> {
        is_master: bool,
        state: &'a S,
    }
    envelope("JOIN_OK", None, Joined { is_master, state })
}

/// A request failed. `of` is the type of the message that asked, where it could be read.
pub(super) fn error(of: Option<&str>, code: &str, message: &str) -> Utf8Bytes {
    envelope("ERROR", None, json!({ "request": of, "code": code, "message": message }))
}

/// The answer to a request of the socket's own.
pub(super) fn answer(kind: &str, payload: Value) -> Utf8Bytes {
    envelope(kind, None, payload)
}

/// A sign of life that says how far the room's log is.
pub(super) fn ping(sequence: u64) -> Utf8Bytes {
    envelope("PING", None, json!({ "sequence": sequence }))
}

/// The last word of a room.
pub(super) fn room_closed() -> Utf8Bytes {
    envelope("ROOM_CLOSED_BROADCAST", None, json!({}))
}

/// What becomes of an event.
pub(super) enum Told {
    /// A message of its own.
    Message(Utf8Bytes),
    /// A message of its own, and the state has changed in more ways.
    MessageAndState(Utf8Bytes),
    /// The state says it all.
    State,
}

/// An event as clients hear of it.
pub(super) fn told(recorded: &Recorded) -> Told {
    let sequence = Some(recorded.sequence);
    match &recorded.entry.event {
        Event::SlotInvalidated { player_id, reason, .. } => Told::MessageAndState(envelope(
            "SLOT_INVALIDATED",
            sequence,
            json!({ "player_id": player_id, "reason": reason }),
        )),
        Event::GameStarted => Told::MessageAndState(envelope("GAME_START", sequence, json!({}))),
        Event::VoteStarted { round_id, item_id, reel_url, k } => Told::MessageAndState(envelope(
            "START_VOTE",
            sequence,
            json!({ "round_id": round_id, "item_id": item_id, "reel_url": reel_url, "k": k }),
        )),
        Event::PlayerVoted { round_id, item_id, player_id } => Told::Message(envelope(
            "PLAYER_VOTED",
            sequence,
            json!({ "round_id": round_id, "item_id": item_id, "player_id": player_id }),
        )),
        Event::ItemRevealed { results } => {
            Told::MessageAndState(envelope("VOTE_RESULTS", sequence, json!(results)))
        }
        Event::RoundScored { round_id, ranking } => Told::MessageAndState(envelope(
            "ROUND_SCORE_MODAL",
            sequence,
            json!({ "round_id": round_id, "ranking": ranking, "game_over": false }),
        )),
        Event::GameOver { ranking } => Told::MessageAndState(envelope(
            "ROUND_SCORE_MODAL",
            sequence,
            json!({ "round_id": null, "ranking": ranking, "game_over": true }),
        )),
        _ => Told::State,
    }
}
