//! Messages of clients, and answers: `{"type": …, "payload": {…}}`.

use crate::ws::server_message;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::galaxy::limits::{CLIENT_PING_EVERY, CLIENT_PONG_WAIT, CONNECTION_IDLE_MAX};
use emberkeep_games::galaxy::{Clock, Fleet, PlayerId, SystemId};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The first message of a connection.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Authenticate {
    #[serde(default)]
    pub(super) token: Option<String>,
    #[serde(default)]
    pub(super) player_id: Option<PlayerId>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subscribe {
    pub(super) system_id: SystemId,
}

/// A message without content.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// A message of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "SCREAMING_SNAKE_CASE", deny_unknown_fields)]
pub(super) enum PilotMessage {
    Authenticate(Authenticate),
    Subscribe(Subscribe),
    Unsubscribe(Nothing),
    Clock(Nothing),
    Ping(Nothing),
}

impl PilotMessage {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            PilotMessage::Authenticate(_) => "AUTHENTICATE",
            PilotMessage::Subscribe(_) => "SUBSCRIBE",
            PilotMessage::Unsubscribe(_) => "UNSUBSCRIBE",
            PilotMessage::Clock(_) => "CLOCK",
            PilotMessage::Ping(_) => "PING",
        }
    }
}

/// A message; the error is an answer.
pub(super) fn parse(text: &str) -> Result<PilotMessage, Utf8Bytes> {
    let message = serde_json::from_str(text).or_else(|error| match serde_json::from_str::<Kind>(text) {
        // An empty payload may be omitted.
        Ok(Kind { kind }) => {
            serde_json::from_value(json!({ "type": kind, "payload": {} })).map_err(|_| error)
        }
        Err(_) => Err(error),
    });
    message
        .map_err(|error| server_message::error(None, "invalid_payload", &format!("not a message: {error}")))
}

/// A message of a type alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Serialize)]
struct WelcomePayload<'a> {
    protocol_version: u32,
    player_id: Option<PlayerId>,
    fleet: Option<Fleet>,
    ping_every_s: u64,
    pong_within_s: u64,
    idle_s: u64,
    #[serde(flatten)]
    clock: &'a Clock,
}

/// The answer to the first message.
pub(super) fn welcome(player_id: Option<PlayerId>, fleet: Option<Fleet>, clock: &Clock) -> Utf8Bytes {
    let payload = WelcomePayload {
        protocol_version: 1,
        player_id,
        fleet,
        ping_every_s: CLIENT_PING_EVERY.as_secs(),
        pong_within_s: CLIENT_PONG_WAIT.as_secs(),
        idle_s: CONNECTION_IDLE_MAX.as_secs(),
        clock,
    };
    server_message::envelope("WELCOME", None, payload)
}

pub(super) fn clock(clock: &Clock) -> Utf8Bytes {
    server_message::envelope("CLOCK", None, clock)
}

pub(super) fn pong() -> Utf8Bytes {
    server_message::frame("PONG", json!({}))
}
