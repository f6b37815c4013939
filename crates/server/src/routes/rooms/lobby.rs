//! Players of a room, and which device has which.

use super::leader::{Key, KeyHeader, RoomPath, Token, TokenHeader};
use super::problems::{OfDevice, OfMaster, OfRoom};
use super::setup::RoomPlayer;
use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::{Cleared, Conflict, Created, encoded};
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{DeviceId, PlayerId, SetupPlayer};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A player of a room.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct PlayerPath {
    /// The player.
    #[param(example = "ann", min_length = 1, max_length = 64, value_type = String)]
    pub(super) player: PlayerId,
}

/// Which player it was.
#[derive(Serialize, ToSchema)]
pub(super) struct OfPlayer {
    /// The player.
    #[schema(value_type = String, example = "ann")]
    player_id: PlayerId,
}

/// Adds a player to the lobby of a room.
#[utoipa::path(post, path = "/v1/rooms/{code}/players", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 201, description = "The player is there", body = OfPlayer,
        headers(("Location" = String, description = "The player's place"))), OfRoom, OfMaster, Conflict))]
pub(super) async fn add_player(
    State(app): State<App>,
    Key(master): Key,
    Json(body): Json<RoomPlayer>,
) -> Result<Created<OfPlayer>, Problem> {
    let player = SetupPlayer::from(body);
    let player_id = player.player_id.clone();
    app.rooms.add_player(&master, player).await?;
    let location = format!("/v1/rooms/{}/players/{}", master.room_code(), encoded(player_id.as_str()));
    Ok(Created { location, body: OfPlayer { player_id } })
}

/// Removes a player from a room, with its points and its vote. The device that has it is told.
#[utoipa::path(delete, path = "/v1/rooms/{code}/players/{player}", tag = "rooms",
    params(RoomPath, PlayerPath, KeyHeader),
    responses((status = 204, description = "The player is gone"), OfRoom, OfMaster, Conflict))]
pub(super) async fn delete_player(
    State(app): State<App>,
    Key(master): Key,
    Path(path): Path<PlayerPath>,
) -> Result<StatusCode, Problem> {
    app.rooms.delete_player(&master, &path.player).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A name.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Anna"}))]
pub(super) struct PlayerName {
    /// What people read.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
}

/// Gives a player another name.
#[utoipa::path(put, path = "/v1/rooms/{code}/players/{player}/name", tag = "rooms",
    params(RoomPath, PlayerPath, KeyHeader),
    responses((status = 204, description = "The player has it"), OfRoom, OfMaster, Conflict))]
pub(super) async fn rename_player(
    State(app): State<App>,
    Key(master): Key,
    Path(path): Path<PlayerPath>,
    Json(body): Json<PlayerName>,
) -> Result<StatusCode, Problem> {
    app.rooms.rename_player(&master, &path.player, &body.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a player takes part.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"active": false}))]
pub(super) struct PlayerActive {
    /// Whether.
    active: bool,
}

/// Lets a player take part, or not. The device of one that does not is told, and has none.
#[utoipa::path(put, path = "/v1/rooms/{code}/players/{player}/active", tag = "rooms",
    params(RoomPath, PlayerPath, KeyHeader),
    responses((status = 204, description = "It is so"), OfRoom, OfMaster, Conflict))]
pub(super) async fn toggle_player(
    State(app): State<App>,
    Key(master): Key,
    Path(path): Path<PlayerPath>,
    Json(body): Json<PlayerActive>,
) -> Result<StatusCode, Problem> {
    app.rooms.toggle_player(&master, &path.player, body.active).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A device's own name.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "name": "Anna"}))]
pub(super) struct MyName {
    /// The device.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// What people read.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
}

/// Gives the player of a device another name.
#[utoipa::path(put, path = "/v1/rooms/{code}/my-name", tag = "rooms", params(RoomPath, TokenHeader),
    responses((status = 200, description = "Whose name it is", body = OfPlayer), OfRoom, OfDevice, Conflict))]
pub(super) async fn rename_own_player(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    token: Token,
    Json(body): Json<MyName>,
) -> Result<Answer<OfPlayer>, Problem> {
    let code = token.prove(&app, &path, &body.device_id).await?;
    let player_id = app.rooms.rename_own_player(code, &body.device_id, None, &body.name).await?;
    Ok(Answer(OfPlayer { player_id }))
}

/// Who wants which player.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "player_id": "ann"}))]
pub(super) struct Claim {
    /// The device.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The player.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    player_id: PlayerId,
}

/// Takes a free player for a device that has none. Of several devices one gets it.
#[utoipa::path(post, path = "/v1/rooms/{code}/claims", tag = "rooms", params(RoomPath, TokenHeader),
    responses((status = 204, description = "The device has it"), OfRoom, OfDevice, Conflict))]
pub(super) async fn take_player(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    token: Token,
    Json(body): Json<Claim>,
) -> Result<StatusCode, Problem> {
    let code = token.prove(&app, &path, &body.device_id).await?;
    app.rooms.take_player(code, &body.device_id, &body.player_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes all players of a room free. Each device that had one is told.
#[utoipa::path(delete, path = "/v1/rooms/{code}/claims", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 200, description = "How many were taken", body = Cleared), OfRoom, OfMaster, Conflict))]
pub(super) async fn reset_claims(
    State(app): State<App>,
    Key(master): Key,
) -> Result<Answer<Cleared>, Problem> {
    Ok(Answer(Cleared { cleared: app.rooms.reset_claims(&master).await? }))
}

/// A device.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b"}))]
pub(super) struct Device {
    /// The device.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
}

/// Gives a device's player up. Its vote stays: it is the player's.
#[utoipa::path(post, path = "/v1/rooms/{code}/release", tag = "rooms", params(RoomPath, TokenHeader),
    responses((status = 200, description = "Which player it was", body = OfPlayer), OfRoom, OfDevice, Conflict))]
pub(super) async fn release_player(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    token: Token,
    Json(body): Json<Device>,
) -> Result<Answer<OfPlayer>, Problem> {
    let code = token.prove(&app, &path, &body.device_id).await?;
    let player_id = app.rooms.release_player(code, &body.device_id).await?;
    Ok(Answer(OfPlayer { player_id }))
}
