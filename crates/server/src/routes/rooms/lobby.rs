//! Players of a room, and claims of devices on them.

use super::credentials::{MasterKeyParam, ReconnectToken, ReconnectTokenParam, RoomMaster, RoomPath};
use super::responses::{DeviceErrors, MasterErrors, RoomErrors};
use super::setup::RoomPlayer;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{FromPath, Json, Path, PathParameters};
use crate::routes::responses::{ClearedCount, Conflict, Created, percent_encode};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{DeviceId, PlayerId, SetupPlayer};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A player of a room.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RoomPlayerPath {
    /// The id of the player.
    #[param(example = "ann", min_length = 1, max_length = 64, value_type = String)]
    pub(super) player: PlayerId,
}

impl FromPath for RoomPlayerPath {
    fn from_path(parameters: &PathParameters) -> Result<RoomPlayerPath, ApiError> {
        Ok(RoomPlayerPath { player: parameters.parse("player", |text| PlayerId::new(text))? })
    }
}

/// The player that was added, renamed or released.
#[derive(Serialize, ToSchema)]
pub(super) struct OfPlayer {
    /// The id of the player.
    #[schema(value_type = String, example = "ann")]
    player_id: PlayerId,
}

/// Adds a player to the lobby of a room.
#[utoipa::path(post, path = "/v1/rooms/{code}/players", tag = "rooms", params(RoomPath, MasterKeyParam),
    request_body = RoomPlayer,
    responses((status = 201, description = "The player was added", body = OfPlayer,
        headers(("Location" = String, description = "The URL of the player"))),
        RoomErrors, MasterErrors, Conflict))]
pub(super) async fn add_player(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Json(body): Json<RoomPlayer>,
) -> Result<Created<OfPlayer>, ApiError> {
    let player = SetupPlayer::from(body);
    let player_id = player.player_id.clone();
    app.rooms.add_player(&master, player).await?;
    let location = format!("/v1/rooms/{}/players/{}", master.room_code(), percent_encode(player_id.as_str()));
    Ok(Created { location, body: OfPlayer { player_id } })
}

/// Removes a player with its points and its vote. Its device is notified.
#[utoipa::path(delete, path = "/v1/rooms/{code}/players/{player}", tag = "rooms",
    params(RoomPath, RoomPlayerPath, MasterKeyParam),
    responses((status = 204, description = "The player was removed"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn delete_player(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Path(path): Path<RoomPlayerPath>,
) -> Result<StatusCode, ApiError> {
    app.rooms.delete_player(&master, &path.player).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A new name for a player.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Anna"}))]
pub(super) struct PlayerName {
    /// The name to show.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
}

/// Gives a player another name.
#[utoipa::path(put, path = "/v1/rooms/{code}/players/{player}/name", tag = "rooms",
    params(RoomPath, RoomPlayerPath, MasterKeyParam),
    request_body = PlayerName,
    responses((status = 204, description = "The player was renamed"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn rename_player(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Path(path): Path<RoomPlayerPath>,
    Json(body): Json<PlayerName>,
) -> Result<StatusCode, ApiError> {
    app.rooms.rename_player(&master, &path.player, &body.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The participation of a player.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"active": false}))]
pub(super) struct PlayerActive {
    /// `true` if the player takes part.
    active: bool,
}

/// Sets whether a player takes part. The device of an inactive player loses it and is notified.
#[utoipa::path(put, path = "/v1/rooms/{code}/players/{player}/active", tag = "rooms",
    params(RoomPath, RoomPlayerPath, MasterKeyParam),
    request_body = PlayerActive,
    responses((status = 204, description = "The player was updated"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn toggle_player(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Path(path): Path<RoomPlayerPath>,
    Json(body): Json<PlayerActive>,
) -> Result<StatusCode, ApiError> {
    app.rooms.toggle_player(&master, &path.player, body.active).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A new name for the player of a device.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "name": "Anna"}))]
pub(super) struct MyName {
    /// The device that has the player.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The name to show.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
}

/// Renames the player of a device.
#[utoipa::path(put, path = "/v1/rooms/{code}/my-name", tag = "rooms", params(RoomPath, ReconnectTokenParam),
    request_body = MyName,
    responses((status = 200, description = "The renamed player", body = OfPlayer),
        RoomErrors, DeviceErrors, Conflict))]
pub(super) async fn rename_own_player(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
    token: ReconnectToken,
    Json(body): Json<MyName>,
) -> Result<Answer<OfPlayer>, ApiError> {
    let code = token.verify(&app, &path, &body.device_id).await?;
    let player_id = app.rooms.rename_own_player(code, &body.device_id, None, &body.name).await?;
    Ok(Answer(OfPlayer { player_id }))
}

/// A claim of a device on a player.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "player_id": "ann"}))]
pub(super) struct Claim {
    /// The device that takes the player.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The player that it takes.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    player_id: PlayerId,
}

/// Claims a free player for a device without one. If several devices try, one succeeds.
#[utoipa::path(post, path = "/v1/rooms/{code}/claims", tag = "rooms", params(RoomPath, ReconnectTokenParam),
    request_body = Claim,
    responses((status = 204, description = "The device has the player"), RoomErrors, DeviceErrors, Conflict))]
pub(super) async fn take_player(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
    token: ReconnectToken,
    Json(body): Json<Claim>,
) -> Result<StatusCode, ApiError> {
    let code = token.verify(&app, &path, &body.device_id).await?;
    app.rooms.take_player(code, &body.device_id, &body.player_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Releases all players of a room. Each device that had one is notified.
#[utoipa::path(delete, path = "/v1/rooms/{code}/claims", tag = "rooms", params(RoomPath, MasterKeyParam),
    responses((status = 200, description = "The number of released players", body = ClearedCount),
        RoomErrors, MasterErrors, Conflict))]
pub(super) async fn reset_claims(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
) -> Result<Answer<ClearedCount>, ApiError> {
    Ok(Answer(ClearedCount { cleared: app.rooms.reset_claims(&master).await? }))
}

/// A device that acts for itself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b"}))]
pub(super) struct Device {
    /// The id of the device, its secret.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
}

/// Releases the player of a device. The player's vote stays.
#[utoipa::path(post, path = "/v1/rooms/{code}/release", tag = "rooms", params(RoomPath, ReconnectTokenParam),
    request_body = Device,
    responses((status = 200, description = "The released player", body = OfPlayer),
        RoomErrors, DeviceErrors, Conflict))]
pub(super) async fn release_player(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
    token: ReconnectToken,
    Json(body): Json<Device>,
) -> Result<Answer<OfPlayer>, ApiError> {
    let code = token.verify(&app, &path, &body.device_id).await?;
    let player_id = app.rooms.release_player(code, &body.device_id).await?;
    Ok(Answer(OfPlayer { player_id }))
}
