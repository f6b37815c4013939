//! A room itself: created, joined, read, followed, closed.

use super::leader::{Key, KeyHeader, RoomPath};
use super::problems::{OfCrowd, OfMaster, OfRoom};
use super::shape;
use crate::access::Paced;
use crate::app::App;
use crate::extract::{Json, Path, Query};
use crate::problem::Problem;
use crate::routes::answers::Created;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{Audience, DeviceId, EventPage, Joined, MasterSync, PlayerSync};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A room that was created.
#[derive(Serialize, ToSchema)]
pub(super) struct NewRoom {
    /// What people join with.
    #[schema(example = "AB23CD")]
    room_code: String,
    /// Who has it leads the room. It is shown here and never again.
    #[schema(example = "dGhpcyBpcyBhbiBleGFtcGxlIGtleSEh")]
    master_key: String,
}

/// Creates a room. An address may do so only so often, unless it shows a token.
#[utoipa::path(post, path = "/v1/rooms", tag = "rooms",
    responses((status = 201, description = "The room", body = NewRoom,
        headers(("Location" = String, description = "Where it is read"))), OfCrowd))]
pub(super) async fn create_room(State(app): State<App>, _: Paced) -> Result<Created<NewRoom>, Problem> {
    let created = app.rooms.create().await?;
    let (room_code, master_key) = (created.room_code.to_string(), created.master_key.as_str().to_owned());
    Ok(Created { location: format!("/v1/rooms/{room_code}"), body: NewRoom { room_code, master_key } })
}

/// Creates a room, where the game's clients expect it.
#[utoipa::path(post, path = "/room", tag = "rooms",
    responses((status = 201, description = "The room", body = NewRoom,
        headers(("Location" = String, description = "Where it is read"))), OfCrowd))]
pub(super) async fn create_room_of_client(
    app: State<App>,
    paced: Paced,
) -> Result<Created<NewRoom>, Problem> {
    create_room(app, paced).await
}

/// On whose behalf something is read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Viewer {
    /// The device that asks, if it has an id.
    #[param(value_type = Option<String>, example = "phone-1", min_length = 1, max_length = 64)]
    device_id: Option<DeviceId>,
}

/// Reads the state of a room as a device sees it, or somebody without one. The room lives for another day.
#[utoipa::path(get, path = "/v1/rooms/{code}", tag = "rooms", params(RoomPath, Viewer),
    responses((status = 200, description = "The state", body = shape::PlayerSync), OfRoom))]
pub(super) async fn get_room(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    Query(viewer): Query<Viewer>,
) -> Result<Answer<PlayerSync>, Problem> {
    Ok(Answer(app.rooms.sync(path.code()?, viewer.device_id.as_ref()).await?))
}

/// Reads the state of a room as its master sees it. The room lives for another day.
#[utoipa::path(get, path = "/v1/rooms/{code}/master", tag = "rooms", params(RoomPath, KeyHeader, Viewer),
    responses((status = 200, description = "The state", body = shape::MasterSync), OfRoom, OfMaster))]
pub(super) async fn get_room_as_master(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    Query(viewer): Query<Viewer>,
    key: Key,
) -> Result<Answer<MasterSync>, Problem> {
    let master = key.lead(&app, &path).await?;
    Ok(Answer(app.rooms.sync_master(&master, viewer.device_id.as_ref()).await?))
}

/// Closes a room: all of it goes, and who follows it is told.
#[utoipa::path(delete, path = "/v1/rooms/{code}", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "It is closed"), OfRoom, OfMaster))]
pub(super) async fn close_room(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    key: Key,
) -> Result<StatusCode, Problem> {
    app.rooms.close(&key.lead(&app, &path).await?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A device that enters.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "phone-1", "protocol_version": 1}))]
pub(super) struct Entrance {
    /// The device.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The version of the protocol that its client speaks.
    protocol_version: u32,
}

/// Lets a device enter a room, or come back. The room lives for another day.
#[utoipa::path(post, path = "/v1/rooms/{code}/join", tag = "rooms", params(RoomPath),
    responses((status = 200, description = "The device is in", body = shape::Joined), OfRoom))]
pub(super) async fn join_room(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    Json(body): Json<Entrance>,
) -> Result<Answer<Joined>, Problem> {
    Ok(Answer(app.rooms.join(path.code()?, &body.device_id, body.protocol_version).await?))
}

/// From where on, and on whose behalf.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Since {
    /// The sequence of the last event that is known; 0 if none is.
    #[param(example = 0)]
    after: Option<u64>,
    /// The device that asks, if it has an id.
    #[param(value_type = Option<String>, example = "phone-1", min_length = 1, max_length = 64)]
    device_id: Option<DeviceId>,
}

/// Lists what happened in a room after a sequence, as far as the caller may know. With the master key, the votes too.
#[utoipa::path(get, path = "/v1/rooms/{code}/events", tag = "rooms", params(RoomPath, Since),
    responses((status = 200, description = "A page", body = shape::EventPage), OfRoom, OfMaster))]
pub(super) async fn list_room_events(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    Query(since): Query<Since>,
    key: Key,
) -> Result<Answer<EventPage>, Problem> {
    let leads = key.is_shown() && key.lead(&app, &path).await.map(|_| true)?;
    let mut page = app.rooms.events_after(path.code()?, since.after.unwrap_or(0)).await?;
    page.events.retain(|recorded| match recorded.entry.event.audience() {
        Audience::Everyone => true,
        Audience::Master => leads,
        Audience::Device(device) => Some(device) == since.device_id.as_ref(),
        Audience::Nobody => false,
    });
    Ok(Answer(page))
}

/// A room in which nothing is due.
#[derive(Serialize, ToSchema)]
pub(super) struct Settled {
    /// When something will be, in milliseconds since 1970; `null` if nothing is foreseen.
    next_deadline: Option<i64>,
}

/// Does what is due in a room and nothing else: a vote whose countdown is over ends.
#[utoipa::path(post, path = "/v1/rooms/{code}/settle", tag = "rooms", params(RoomPath),
    responses((status = 200, description = "Nothing is due any more", body = Settled), OfRoom))]
pub(super) async fn settle_room(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
) -> Result<Answer<Settled>, Problem> {
    Ok(Answer(Settled { next_deadline: app.rooms.settle(path.code()?).await?.next_deadline }))
}
