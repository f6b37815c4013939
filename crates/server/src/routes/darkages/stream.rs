//! The channel of a zone as a stream of server-sent events.
//!
//! The store's subscription is the queue of a client, and it is bounded: what does not fit because the client reads too
//! slowly is dropped, and the client is told of the gap. Messages only wake, so a client that missed some reads the state.

use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{ClientAddress, Json, Path};
use crate::limit::connections::ConnectionPermit;
use crate::limits::{SOCKETS_PER_ADDRESS_MAX, STREAM_HEARTBEAT_EVERY};
use crate::metrics::Metrics;
use crate::routes::path::ZonePath;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use emberkeep_games::darkages::ZoneId;
use emberkeep_games::darkages::channel::{MessageType, Payload, ZoneEvent, ZoneMessage, ZoneSubscription};
use futures_util::stream::{Stream, unfold};
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::watch;
use utoipa::ToSchema;

/// The types of messages in the storage document.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum MessageTypeWord {
    EntityEntering,
    EntityLeaving,
    Broadcast,
    HandoffComplete,
}

impl From<MessageTypeWord> for MessageType {
    fn from(word: MessageTypeWord) -> MessageType {
        match word {
            MessageTypeWord::EntityEntering => MessageType::EntityEntering,
            MessageTypeWord::EntityLeaving => MessageType::EntityLeaving,
            MessageTypeWord::Broadcast => MessageType::Broadcast,
            MessageTypeWord::HandoffComplete => MessageType::HandoffComplete,
        }
    }
}

/// A message for a zone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"message_type": "broadcast", "payload": {"text": "The gates are open"}}))]
pub(super) struct NewZoneMessage {
    /// What it is about.
    message_type: MessageTypeWord,
    /// The zone that it comes from; 0 is none.
    #[serde(default)]
    source_zone: i32,
    /// Any JSON of at most 16 KiB.
    #[serde(default)]
    payload: Value,
}

/// Sends a message to all who listen to a zone. Those that are not connected do not receive it.
#[utoipa::path(post, path = "/v1/darkages/zones/{zone}/messages", tag = "darkages",
    params(ZonePath), request_body = NewZoneMessage,
    responses((status = 200, description = "The message as it was sent", body = ZoneMessage)))]
pub(super) async fn publish_zone_message(
    State(app): State<AppState>,
    Path(zone): ZonePath,
    Json(body): Json<NewZoneMessage>,
) -> Result<Answer<ZoneMessage>, ApiError> {
    let payload = Payload::of(&body.payload).unwrap_or_default();
    let message = ZoneMessage::of(body.message_type.into(), ZoneId(body.source_zone), zone, payload);
    Ok(Answer(app.darkages.publish(zone, message).await?))
}

/// Streams the messages of a zone's channel as server-sent events, until the client leaves or the server ends. The name of
/// an event is its `message_type`. `missed` says that messages were lost: read the state of the zone. `closing` is the last
/// one, with a `reason`.
#[utoipa::path(get, path = "/v1/darkages/zones/{zone}/stream", tag = "darkages",
    params(ZonePath),
    responses(
        (status = 200, description = "The messages", body = String, content_type = "text/event-stream"),
        (status = 429, description = "Too many streams from one address", body = ProblemDetails,
            content_type = "application/problem+json")))]
pub(super) async fn stream_zone(
    State(app): State<AppState>,
    ClientAddress(address): ClientAddress,
    Path(zone): ZonePath,
) -> Result<impl IntoResponse, ApiError> {
    let permit = app.streams.connections.acquire(address).ok_or_else(|| {
        let detail = format!("this address has {SOCKETS_PER_ADDRESS_MAX} streams already; close some");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", detail)
    })?;
    let messages = app.darkages.subscribe(&[zone]).await?;
    let open = OpenStream::new(app.metrics.clone(), permit);
    let stopped = app.streams.stopped();
    let heartbeat = KeepAlive::new().interval(STREAM_HEARTBEAT_EVERY).text("heartbeat");
    Ok(Sse::new(events(messages, stopped, open)).keep_alive(heartbeat))
}

/// A stream, counted until it is dropped.
struct OpenStream {
    metrics: Arc<Metrics>,
    _permit: ConnectionPermit,
}

impl OpenStream {
    fn new(metrics: Arc<Metrics>, permit: ConnectionPermit) -> OpenStream {
        metrics.darkages.streams.fetch_add(1, Relaxed);
        OpenStream { metrics, _permit: permit }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.metrics.darkages.streams.fetch_sub(1, Relaxed);
    }
}

/// The events of a stream, to its end.
fn events(
    messages: ZoneSubscription,
    stopped: watch::Receiver<bool>,
    open: OpenStream,
) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(Some((messages, stopped, open)), |state| async move {
        let (mut messages, mut stopped, open) = state?;
        let next = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => Next::Closing("the server ends; connect again"),
            event = messages.next() => event.map_or(Next::Closing("the store was closed"), Next::Event),
        };
        let event = event_of(&next, &open.metrics);
        let state = matches!(next, Next::Event(_)).then_some((messages, stopped, open));
        Some((Ok(event), state))
    })
}

enum Next {
    Event(ZoneEvent),
    Closing(&'static str),
}

fn event_of(next: &Next, metrics: &Metrics) -> Event {
    let counters = &metrics.darkages;
    let named = |name: &str, data: Value| Event::default().event(name).data(data.to_string());
    match next {
        Next::Closing(reason) => named("closing", json!({ "reason": reason })),
        Next::Event(ZoneEvent::Missed { count }) => {
            counters.stream_gaps.fetch_add(1, Relaxed);
            named("missed", json!({ "count": count }))
        }
        Next::Event(ZoneEvent::Message { message, .. }) => {
            counters.stream_messages.fetch_add(1, Relaxed);
            // A type of another program may have any characters; names of events have no line breaks.
            let name = match &message.message_type {
                MessageType::Unknown(_) => "unknown",
                known => known.text(),
            };
            named(name, json!(message))
        }
        Next::Event(ZoneEvent::Unknown { payload, .. }) => {
            counters.stream_messages.fetch_add(1, Relaxed);
            named("unknown", json!({ "text": String::from_utf8_lossy(payload) }))
        }
    }
}
