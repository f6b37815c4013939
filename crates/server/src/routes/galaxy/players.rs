//! Players: registration, fleets, presence, deletion.

use super::acting::Acting;
use super::shapes::FleetAnswer;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::PilotPath;
use crate::routes::responses::{Conflict, NotFound};
use crate::state::AppState;
use crate::ws::CloseReason;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::galaxy::ShipId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A player who wants to register.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "PlayerOne"}))]
pub(super) struct PilotRegistration {
    /// 1 to 64 bytes.
    name: String,
}

/// Checks that a player may register: registration is open, and the id is not that of a deleted player. Nothing is stored.
#[utoipa::path(post, path = "/v1/galaxy/players/{player_id}/register", tag = "galaxy", params(PilotPath),
    request_body = PilotRegistration, responses((status = 204, description = "The player may register"), Conflict))]
pub(super) async fn register_pilot(
    Acting(galaxy): Acting,
    Path(player): PilotPath,
    Json(body): Json<PilotRegistration>,
) -> Result<StatusCode, ApiError> {
    galaxy.players().register(player, body.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Verifies the fleet of a player who logs in, and chooses the oldest ship if none is active.
#[utoipa::path(post, path = "/v1/galaxy/players/{player_id}/login", tag = "galaxy", params(PilotPath),
    responses((status = 200, description = "The fleet", body = FleetAnswer), Conflict))]
pub(super) async fn log_in_pilot(
    Acting(galaxy): Acting,
    Path(player): PilotPath,
) -> Result<Answer<FleetAnswer>, ApiError> {
    Ok(Answer(galaxy.players().login(player).await?.into()))
}

/// Returns the ships of a player, and which one is active.
#[utoipa::path(get, path = "/v1/galaxy/players/{player_id}/fleet", tag = "galaxy", params(PilotPath),
    responses((status = 200, description = "The fleet", body = FleetAnswer)))]
pub(super) async fn get_fleet(
    State(app): State<AppState>,
    Path(player): PilotPath,
) -> Result<Answer<FleetAnswer>, ApiError> {
    Ok(Answer(app.galaxy.fleet(player).await?.into()))
}

/// The ship that a player pilots.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"ship_id": "550e8400-e29b-41d4-a716-446655440000"}))]
pub(super) struct ActiveShip {
    /// One of the player's ships.
    ship_id: Uuid,
}

/// Makes a ship of a player the active one.
#[utoipa::path(put, path = "/v1/galaxy/players/{player_id}/active-ship", tag = "galaxy", params(PilotPath),
    request_body = ActiveShip,
    responses((status = 204, description = "It is active"), NotFound, Conflict))]
pub(super) async fn switch_ship(
    Acting(galaxy): Acting,
    Path(player): PilotPath,
    Json(body): Json<ActiveShip>,
) -> Result<StatusCode, ApiError> {
    galaxy.players().switch_ship(player, ShipId(body.ship_id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Players with a live connection.
#[derive(Serialize, ToSchema)]
pub(super) struct OnlinePlayers {
    /// Their ids, in order.
    players: Vec<Uuid>,
}

/// Lists the players who have a live connection to any server.
#[utoipa::path(get, path = "/v1/galaxy/online", tag = "galaxy",
    responses((status = 200, description = "The players", body = OnlinePlayers)))]
pub(super) async fn list_online_players(
    State(app): State<AppState>,
) -> Result<Answer<OnlinePlayers>, ApiError> {
    let players = app.galaxy.online().await?.into_iter().map(|player| player.0).collect();
    Ok(Answer(OnlinePlayers { players }))
}

/// Whether a player is online.
#[derive(Serialize, ToSchema)]
pub(super) struct PilotPresence {
    /// Whether the player has a live connection to any server.
    online: bool,
}

/// Returns whether a player has a live connection to any server.
#[utoipa::path(get, path = "/v1/galaxy/players/{player_id}/presence", tag = "galaxy", params(PilotPath),
    responses((status = 200, description = "Whether it has", body = PilotPresence)))]
pub(super) async fn get_presence(
    State(app): State<AppState>,
    Path(player): PilotPath,
) -> Result<Answer<PilotPresence>, ApiError> {
    Ok(Answer(PilotPresence { online: app.galaxy.is_online(player).await? }))
}

/// Connections that end.
#[derive(Serialize, ToSchema)]
pub(super) struct ClosedConnections {
    /// How many WebSockets of this server are closed.
    #[schema(example = 1)]
    closed: usize,
}

/// Closes the WebSockets that a player has to this server. They may connect again.
#[utoipa::path(delete, path = "/v1/galaxy/players/{player_id}/connections", tag = "galaxy", params(PilotPath),
    responses((status = 200, description = "How many", body = ClosedConnections)))]
pub(super) async fn close_pilot_connections(
    State(app): State<AppState>,
    Acting(galaxy): Acting,
    Path(player): PilotPath,
) -> Result<Answer<ClosedConnections>, ApiError> {
    let (gateway, api) = (&app.galaxy_gateway, galaxy.api_gateway());
    let mut closed = 0;
    for connection in gateway.connections_of(player) {
        // First in the store, as the caller's service: it refuses those who may not do this.
        api.disconnect(gateway.name(), &connection).await?;
        closed += usize::from(gateway.close(&connection, CloseReason::Removed));
    }
    Ok(Answer(ClosedConnections { closed }))
}

/// What the deletion of a player removed.
#[derive(Serialize, ToSchema)]
pub(super) struct PilotDeleted {
    /// Ships, with their rules and maneuvers.
    #[schema(example = 2)]
    ships: usize,
    /// Whether the player was online.
    was_online: bool,
}

/// Deletes a player with its ships, rules, maneuvers and presence, and closes its WebSockets on all servers. The id is not used again.
#[utoipa::path(delete, path = "/v1/galaxy/players/{player_id}", tag = "galaxy", params(PilotPath),
    responses((status = 200, description = "What was removed", body = PilotDeleted), Conflict))]
pub(super) async fn delete_pilot(
    Acting(galaxy): Acting,
    Path(player): PilotPath,
) -> Result<Answer<PilotDeleted>, ApiError> {
    // Read before: gateways close the connections while the rest of the player is removed.
    let was_online = galaxy.is_online(player).await?;
    let deleted = galaxy.players().delete_player(player).await?;
    Ok(Answer(PilotDeleted { ships: deleted.ships, was_online: was_online || deleted.was_online }))
}
