//! One room: create, join, read, follow, close.

use super::credentials::{
    MasterKeyParam, ReconnectToken, ReconnectTokenParam, RoomMaster, RoomPath, RoomRateLimit,
};
use super::responses::{DeviceErrors, MasterErrors, RateLimitErrors, RoomErrors};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{ClientAddress, Json, Path, Query};
use crate::routes::responses::Created;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{Audience, DeviceId, EventPage, JoinReply, JoinRequest, MasterSync, PlayerSync};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A room that was created.
#[derive(Serialize, ToSchema)]
pub(super) struct NewRoom {
    /// The code for joining.
    #[schema(example = "AB23CD")]
    room_code: String,
    /// The secret of the room's master. It is never returned again.
    #[schema(example = "dGhpcyBpcyBhbiBleGFtcGxlIGtleSEh")]
    master_key: String,
}

/// Options of a new room.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RoomOptions {
    /// Whether a device must send its reconnect token to join again; `false` if absent.
    strict_devices: Option<bool>,
}

/// Creates a room. Requests without a service token are rate-limited per address.
#[utoipa::path(post, path = "/v1/rooms", tag = "rooms", params(RoomOptions),
    responses((status = 201, description = "The room", body = NewRoom,
        headers(("Location" = String, description = "The URL of the room"))), RateLimitErrors))]
pub(super) async fn create_room(
    State(app): State<AppState>,
    _: RoomRateLimit,
    ClientAddress(address): ClientAddress,
    Query(options): Query<RoomOptions>,
) -> Result<Created<NewRoom>, ApiError> {
    let created = match options.strict_devices {
        Some(true) => app.rooms.create_strict().await?,
        _ => app.rooms.create().await?,
    };
    app.room_codes.remember(address, created.room_code);
    let (room_code, master_key) = (created.room_code.to_string(), created.master_key.as_str().to_owned());
    Ok(Created { location: format!("/v1/rooms/{room_code}"), body: NewRoom { room_code, master_key } })
}

/// Creates a room, at the path of the game's clients.
#[utoipa::path(post, path = "/room", tag = "rooms", params(RoomOptions),
    responses((status = 201, description = "The room", body = NewRoom,
        headers(("Location" = String, description = "The URL of the room"))), RateLimitErrors))]
pub(super) async fn create_room_of_client(
    app: State<AppState>,
    limit: RoomRateLimit,
    address: ClientAddress,
    options: Query<RoomOptions>,
) -> Result<Created<NewRoom>, ApiError> {
    create_room(app, limit, address, options).await
}

/// The device that reads.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Viewer {
    /// The device. Its own fields are shown only with its reconnect token.
    #[param(value_type = Option<String>, example = "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", min_length = 1,
        max_length = 64)]
    device_id: Option<DeviceId>,
}

/// Returns the state of a room. With its reconnect token a device sees its player and keeps the room alive.
#[utoipa::path(get, path = "/v1/rooms/{code}", tag = "rooms", params(RoomPath, Viewer, ReconnectTokenParam),
    responses((status = 200, description = "The state", body = PlayerSync), RoomErrors))]
pub(super) async fn get_room(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
    Query(viewer): Query<Viewer>,
    token: ReconnectToken,
) -> Result<Answer<PlayerSync>, ApiError> {
    let code = path.code()?;
    Ok(Answer(match token.verified_device(&app, &path, viewer.device_id).await? {
        Some(device) => app.rooms.sync(code, Some(&device)).await?,
        None => app.rooms.view(code).await?,
    }))
}

/// Returns the state of a room for its master. It extends the life of the room by a day.
#[utoipa::path(get, path = "/v1/rooms/{code}/master", tag = "rooms", params(RoomPath, MasterKeyParam, Viewer),
    responses((status = 200, description = "The state", body = MasterSync), RoomErrors, MasterErrors))]
pub(super) async fn get_room_as_master(
    State(app): State<AppState>,
    Query(viewer): Query<Viewer>,
    RoomMaster(master): RoomMaster,
) -> Result<Answer<MasterSync>, ApiError> {
    Ok(Answer(app.rooms.sync_master(&master, viewer.device_id.as_ref()).await?))
}

/// Closes a room: deletes its data and closes its connections.
#[utoipa::path(delete, path = "/v1/rooms/{code}", tag = "rooms", params(RoomPath, MasterKeyParam),
    responses((status = 204, description = "The room is closed"), RoomErrors, MasterErrors))]
pub(super) async fn close_room(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
) -> Result<StatusCode, ApiError> {
    app.rooms.close(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A device that joins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "protocol_version": 1}))]
pub(super) struct JoinBody {
    /// The device: a random, secret id.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The protocol version of the client.
    protocol_version: u32,
}

/// Joins a device to a room, or reconnects it with its token. It extends the life of the room by a day.
#[utoipa::path(post, path = "/v1/rooms/{code}/join", tag = "rooms", params(RoomPath, ReconnectTokenParam),
    request_body = JoinBody,
    responses((status = 200, description = "The device has joined", body = JoinReply),
        RoomErrors, DeviceErrors))]
pub(super) async fn join_room(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
    token: ReconnectToken,
    Json(body): Json<JoinBody>,
) -> Result<Answer<JoinReply>, ApiError> {
    let (code, device) = (path.code()?, body.device_id);
    let request = JoinRequest::new(device.clone(), body.protocol_version);
    let request = JoinRequest { reconnect_token: token.into_text(), proves_itself: true, ..request };
    Ok(Answer(app.rooms.admit(code, request).await?.joined(&device)))
}

/// From where on events are returned.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// The sequence of the last known event; 0 or absent for all.
    #[param(example = 0)]
    after: Option<u64>,
    /// The device. Events for it alone are listed only with its reconnect token.
    #[param(value_type = Option<String>, example = "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", min_length = 1,
        max_length = 64)]
    device_id: Option<DeviceId>,
}

/// Lists the events of a room after a sequence that the caller may see. Single votes are not listed.
#[utoipa::path(get, path = "/v1/rooms/{code}/events",
    tag = "rooms", params(RoomPath, EventsQuery, ReconnectTokenParam),
    responses((status = 200, description = "A page", body = EventPage), RoomErrors))]
pub(super) async fn list_room_events(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
    Query(since): Query<EventsQuery>,
    token: ReconnectToken,
) -> Result<Answer<EventPage>, ApiError> {
    let asking = token.verified_device(&app, &path, since.device_id).await?;
    let mut page = app.rooms.events_after(path.code()?, since.after.unwrap_or(0)).await?;
    page.events.retain(|recorded| match recorded.entry.event.audience() {
        Audience::Everyone => true,
        Audience::Device(device) => Some(device) == asking.as_ref(),
        Audience::None => false,
    });
    Ok(Answer(page))
}

/// The next deadline of a room.
#[derive(Serialize, ToSchema)]
pub(super) struct NextDeadline {
    /// In milliseconds since 1970; `null` if there is none.
    next_deadline: Option<i64>,
}

/// Runs what is due in a room: closes a vote whose countdown is over.
#[utoipa::path(post, path = "/v1/rooms/{code}/settle", tag = "rooms", params(RoomPath),
    responses((status = 200, description = "The next deadline", body = NextDeadline), RoomErrors))]
pub(super) async fn settle_room(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
) -> Result<Answer<NextDeadline>, ApiError> {
    Ok(Answer(NextDeadline { next_deadline: app.rooms.settle(path.code()?).await?.next_deadline }))
}
