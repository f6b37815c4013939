//! Lobby lock, bans, and another game in the same room.

use super::credentials::{MasterKeyParam, RoomMaster, RoomPath};
use super::lobby::RoomPlayerPath;
use super::responses::{MasterErrors, RoomErrors};
use crate::error::ApiError;
use crate::extract::{FromPath, Json, Path, PathParameters};
use crate::routes::responses::{Conflict, Created};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The lock of a lobby.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"locked": true}))]
pub(super) struct Lock {
    /// While it is `true`, new devices can neither join nor claim a player.
    locked: bool,
}

/// Locks or unlocks the lobby of a room.
#[utoipa::path(put, path = "/v1/rooms/{code}/locked", tag = "rooms", params(RoomPath, MasterKeyParam),
    request_body = Lock,
    responses((status = 204, description = "The lock is set"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn lock_lobby(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Json(body): Json<Lock>,
) -> Result<StatusCode, ApiError> {
    app.rooms.lock_lobby(&master, body.locked).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A ban that was made.
#[derive(Serialize, ToSchema)]
pub(super) struct NewBan {
    /// The id for lifting the ban.
    #[schema(example = "b1")]
    ban_id: String,
}

/// Bans the device of a player. The player becomes free; the device can neither join nor claim a player.
#[utoipa::path(post, path = "/v1/rooms/{code}/players/{player}/ban", tag = "rooms",
    params(RoomPath, RoomPlayerPath, MasterKeyParam),
    responses((status = 201, description = "The device is banned", body = NewBan,
        headers(("Location" = String, description = "The URL of the ban"))),
        RoomErrors, MasterErrors, Conflict))]
pub(super) async fn ban_player(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Path(path): Path<RoomPlayerPath>,
) -> Result<Created<NewBan>, ApiError> {
    let ban_id = app.rooms.ban_player(&master, &path.player).await?;
    let location = format!("/v1/rooms/{}/bans/{ban_id}", master.room_code());
    Ok(Created { location, body: NewBan { ban_id } })
}

/// A ban of a room.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct BanPath {
    /// The id of the ban, from the master's state.
    #[param(example = "b1")]
    ban: String,
}

impl FromPath for BanPath {
    fn from_path(parameters: &PathParameters) -> Result<BanPath, ApiError> {
        Ok(BanPath { ban: parameters.get("ban")? })
    }
}

/// Lifts a ban; the device can join again.
#[utoipa::path(delete, path = "/v1/rooms/{code}/bans/{ban}",
    tag = "rooms", params(RoomPath, BanPath, MasterKeyParam),
    responses((status = 204, description = "The ban is lifted"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn unban(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Path(path): Path<BanPath>,
) -> Result<StatusCode, ApiError> {
    app.rooms.unban(&master, &path.ban).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Options of the next game.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"keep_rounds": true}))]
pub(super) struct Again {
    /// Whether to play the same rounds; otherwise the room must be set up again.
    keep_rounds: bool,
}

/// Returns a room to the lobby. Devices keep their players; points restart at 0.
#[utoipa::path(post, path = "/v1/rooms/{code}/play-again", tag = "rooms", params(RoomPath, MasterKeyParam),
    request_body = Again,
    responses((status = 204, description = "The room is in the lobby"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn play_again(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Json(body): Json<Again>,
) -> Result<StatusCode, ApiError> {
    app.rooms.play_again(&master, body.keep_rounds).await?;
    Ok(StatusCode::NO_CONTENT)
}
