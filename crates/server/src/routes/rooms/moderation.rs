//! Who may come in, and another game in the same room.

use super::leader::{Key, KeyHeader, RoomPath};
use super::lobby::PlayerPath;
use super::problems::{OfMaster, OfRoom};
use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::{Conflict, Created};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Whether the lobby is locked.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"locked": true}))]
pub(super) struct Lock {
    /// While it is `true`, a device that has not joined before neither joins nor takes a player.
    locked: bool,
}

/// Locks or unlocks the lobby of a room.
#[utoipa::path(put, path = "/v1/rooms/{code}/locked", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "The lock is set"), OfRoom, OfMaster, Conflict))]
pub(super) async fn lock_lobby(
    State(app): State<App>,
    Key(master): Key,
    Json(body): Json<Lock>,
) -> Result<StatusCode, Problem> {
    app.rooms.lock_lobby(&master, body.locked).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A ban.
#[derive(Serialize, ToSchema)]
pub(super) struct NewBan {
    /// The id with which it is lifted.
    #[schema(example = "b1")]
    ban_id: String,
}

/// Bans the device that has a player: the player is free, the device may neither join nor take a player.
#[utoipa::path(post, path = "/v1/rooms/{code}/players/{player}/ban", tag = "rooms",
    params(RoomPath, PlayerPath, KeyHeader),
    responses((status = 201, description = "The device is banned", body = NewBan,
        headers(("Location" = String, description = "The ban's place"))), OfRoom, OfMaster, Conflict))]
pub(super) async fn ban_player(
    State(app): State<App>,
    Key(master): Key,
    Path(path): Path<PlayerPath>,
) -> Result<Created<NewBan>, Problem> {
    let ban_id = app.rooms.ban_player(&master, &path.player).await?;
    let location = format!("/v1/rooms/{}/bans/{ban_id}", master.room_code());
    Ok(Created { location, body: NewBan { ban_id } })
}

/// A ban of a room.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct BanPath {
    /// The id of the ban, as the master's state lists it.
    #[param(example = "b1")]
    ban: String,
}

/// Lifts a ban.
#[utoipa::path(delete, path = "/v1/rooms/{code}/bans/{ban}", tag = "rooms", params(RoomPath, BanPath, KeyHeader),
    responses((status = 204, description = "The ban is lifted"), OfRoom, OfMaster, Conflict))]
pub(super) async fn unban(
    State(app): State<App>,
    Key(master): Key,
    Path(path): Path<BanPath>,
) -> Result<StatusCode, Problem> {
    app.rooms.unban(&master, &path.ban).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How the next game begins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"keep_rounds": true}))]
pub(super) struct Again {
    /// Whether the same rounds are played; otherwise the room is set up again.
    keep_rounds: bool,
}

/// Brings a room back to the lobby: players keep their devices, points begin at 0.
#[utoipa::path(post, path = "/v1/rooms/{code}/play-again", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "The room is in the lobby"), OfRoom, OfMaster, Conflict))]
pub(super) async fn play_again(
    State(app): State<App>,
    Key(master): Key,
    Json(body): Json<Again>,
) -> Result<StatusCode, Problem> {
    app.rooms.play_again(&master, body.keep_rounds).await?;
    Ok(StatusCode::NO_CONTENT)
}
