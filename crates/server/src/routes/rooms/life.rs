//! A room itself: created, joined, read, followed, closed.

use super::leader::{Key, KeyHeader, RoomPath, Token, TokenHeader};
use super::problems::{OfCrowd, OfDevice, OfMaster, OfRoom};
use super::shape;
use crate::access::Paced;
use crate::app::App;
use crate::extract::{Address, Json, Path, Query};
use crate::problem::Problem;
use crate::routes::answers::Created;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{Audience, DeviceId, EventPage, JoinRequest, JoinReply, MasterSync, PlayerSync};
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

/// How a room is to be.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RoomOptions {
    /// Whether a device that has joined before must show its reconnect token to join again; no if not given.
    strict_devices: Option<bool>,
}

/// Creates a room. An address may do so only so often, unless it shows a token.
#[utoipa::path(post, path = "/v1/rooms", tag = "rooms", params(RoomOptions),
    responses((status = 201, description = "The room", body = NewRoom,
        headers(("Location" = String, description = "Where it is read"))), OfCrowd))]
pub(super) async fn create_room(
    State(app): State<App>,
    _: Paced,
    Address(from): Address,
    Query(options): Query<RoomOptions>,
) -> Result<Created<NewRoom>, Problem> {
    let created = match options.strict_devices {
        Some(true) => app.rooms.create_strict().await?,
        _ => app.rooms.create().await?,
    };
    app.room_codes.found(from, created.room_code);
    let (room_code, master_key) = (created.room_code.to_string(), created.master_key.as_str().to_owned());
    Ok(Created { location: format!("/v1/rooms/{room_code}"), body: NewRoom { room_code, master_key } })
}

/// Creates a room, where the game's clients expect it.
#[utoipa::path(post, path = "/room", tag = "rooms", params(RoomOptions),
    responses((status = 201, description = "The room", body = NewRoom,
        headers(("Location" = String, description = "Where it is read"))), OfCrowd))]
pub(super) async fn create_room_of_client(
    app: State<App>,
    paced: Paced,
    from: Address,
    options: Query<RoomOptions>,
) -> Result<Created<NewRoom>, Problem> {
    create_room(app, paced, from, options).await
}

/// On whose behalf something is read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Viewer {
    /// The device that asks, if it has an id. Its own fields are shown only with its reconnect token.
    #[param(value_type = Option<String>, example = "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", min_length = 1, max_length = 64)]
    device_id: Option<DeviceId>,
}

/// Reads the state of a room. With its reconnect token a device sees its own player, and keeps the room alive if it has one.
#[utoipa::path(get, path = "/v1/rooms/{code}", tag = "rooms", params(RoomPath, Viewer, TokenHeader),
    responses((status = 200, description = "The state", body = shape::PlayerSync), OfRoom))]
pub(super) async fn get_room(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    Query(viewer): Query<Viewer>,
    token: Token,
) -> Result<Answer<PlayerSync>, Problem> {
    let code = path.code()?;
    Ok(Answer(match token.device(&app, &path, viewer.device_id).await? {
        Some(device) => app.rooms.sync(code, Some(&device)).await?,
        None => app.rooms.view(code).await?,
    }))
}

/// Reads the state of a room as its master sees it. The room lives for another day.
#[utoipa::path(get, path = "/v1/rooms/{code}/master", tag = "rooms", params(RoomPath, KeyHeader, Viewer),
    responses((status = 200, description = "The state", body = shape::MasterSync), OfRoom, OfMaster))]
pub(super) async fn get_room_as_master(
    State(app): State<App>,
    Query(viewer): Query<Viewer>,
    Key(master): Key,
) -> Result<Answer<MasterSync>, Problem> {
    Ok(Answer(app.rooms.sync_master(&master, viewer.device_id.as_ref()).await?))
}

/// Closes a room: all of it goes, and who follows it is told.
#[utoipa::path(delete, path = "/v1/rooms/{code}", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "It is closed"), OfRoom, OfMaster))]
pub(super) async fn close_room(State(app): State<App>, Key(master): Key) -> Result<StatusCode, Problem> {
    app.rooms.close(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A device that enters.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "protocol_version": 1}))]
pub(super) struct Entrance {
    /// The device: a random id that only it knows.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The version of the protocol that its client speaks.
    protocol_version: u32,
}

/// Lets a device enter a room, or come back with its reconnect token. The room lives for another day.
#[utoipa::path(post, path = "/v1/rooms/{code}/join", tag = "rooms", params(RoomPath, TokenHeader),
    responses((status = 200, description = "The device is in", body = shape::Joined), OfRoom, OfDevice))]
pub(super) async fn join_room(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    token: Token,
    Json(body): Json<Entrance>,
) -> Result<Answer<JoinReply>, Problem> {
    let (code, device) = (path.code()?, body.device_id);
    let request = JoinRequest::new(device.clone(), body.protocol_version);
    let request = JoinRequest { reconnect_token: token.into_shown(), proves_itself: true, ..request };
    Ok(Answer(app.rooms.admit(code, request).await?.joined(&device)))
}

/// From where on, and on whose behalf.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Since {
    /// The sequence of the last event that is known; 0 if none is.
    #[param(example = 0)]
    after: Option<u64>,
    /// The device that asks, if it has an id. What concerns it alone is listed only with its reconnect token.
    #[param(value_type = Option<String>, example = "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", min_length = 1, max_length = 64)]
    device_id: Option<DeviceId>,
}

/// Lists what happened in a room after a sequence, as far as the caller may know. Single votes are not listed.
#[utoipa::path(get, path = "/v1/rooms/{code}/events", tag = "rooms", params(RoomPath, Since, TokenHeader),
    responses((status = 200, description = "A page", body = shape::EventPage), OfRoom))]
pub(super) async fn list_room_events(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    Query(since): Query<Since>,
    token: Token,
) -> Result<Answer<EventPage>, Problem> {
    let asking = token.device(&app, &path, since.device_id).await?;
    let mut page = app.rooms.events_after(path.code()?, since.after.unwrap_or(0)).await?;
    page.events.retain(|recorded| match recorded.entry.event.audience() {
        Audience::Everyone => true,
        Audience::Device(device) => Some(device) == asking.as_ref(),
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
