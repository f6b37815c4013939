//! Ships: spawn, controls, name, fuel, removal.

use super::acting::Acting;
use super::shapes::{self, ShipAnswer};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::ShipPath;
use crate::routes::responses::{Conflict, Created, NotFound};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::galaxy::{
    AttitudeMode, Controls, GalaxyState, Motion, MotionChange, NewShip, PlayerId, Quaternion, ShipClass,
    ShipId, SystemId, TargetType, Vector,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A ship that is to be spawned. It rests in the middle of its system with full tanks unless the body says otherwise.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"ship_id": "550e8400-e29b-41d4-a716-446655440000",
    "player_id": "660e8400-e29b-41d4-a716-446655440001", "name": "PlayerOne", "ship_class": "fast_frigate",
    "position": [1.5e11, 0, 0], "velocity": [0, 29_780, 0]}))]
pub(super) struct ShipSpawn {
    /// Its id; a new one if absent.
    ship_id: Option<Uuid>,
    /// Whose it is.
    player_id: Uuid,
    /// What players see, 1 to 64 bytes.
    name: String,
    #[schema(schema_with = shapes::maybe_ship_class)]
    ship_class: Option<ShipClass>,
    #[schema(schema_with = shapes::maybe_vector)]
    position: Option<Vector>,
    #[schema(schema_with = shapes::maybe_vector)]
    velocity: Option<Vector>,
    #[schema(schema_with = shapes::maybe_quaternion)]
    attitude: Option<Quaternion>,
    #[schema(schema_with = shapes::maybe_vector)]
    angular_velocity: Option<Vector>,
    /// In kg, at most the capacity; full tanks if absent.
    #[schema(minimum = 0)]
    fuel: Option<f64>,
    /// The most fuel, in kg; that of the class if absent.
    #[schema(exclusive_minimum = 0)]
    fuel_capacity: Option<f64>,
    /// Mass without fuel, in kg; that of the class if absent.
    #[schema(exclusive_minimum = 0)]
    dry_mass: Option<f64>,
    /// The star system; `sol` if absent.
    #[schema(value_type = Option<String>)]
    system_id: Option<SystemId>,
}

impl From<ShipSpawn> for NewShip {
    fn from(body: ShipSpawn) -> NewShip {
        let class = body.ship_class.unwrap_or_default();
        let id = ShipId(body.ship_id.unwrap_or_else(Uuid::new_v4));
        NewShip {
            ship_id: id,
            player_id: PlayerId(body.player_id),
            name: body.name,
            ship_class: class,
            motion: Motion {
                position: body.position.unwrap_or_default(),
                velocity: body.velocity.unwrap_or_default(),
                attitude: body.attitude.unwrap_or_default(),
                angular_velocity: body.angular_velocity.unwrap_or_default(),
                fuel: body.fuel.or(body.fuel_capacity).unwrap_or(class.fuel_capacity()),
                wheel_momentum: Vector::ZERO,
            },
            fuel_capacity: body.fuel_capacity,
            dry_mass: body.dry_mass,
            system_id: body.system_id.unwrap_or_default(),
        }
    }
}

fn no_ship(ship: ShipId) -> ApiError {
    ApiError::not_found(format!("ship {ship} does not exist")).with("id", ship.to_string())
}

async fn read(galaxy: &GalaxyState, ship: ShipId) -> Result<ShipAnswer, ApiError> {
    galaxy.ship(&ship).await?.map(ShipAnswer).ok_or_else(|| no_ship(ship))
}

/// Spawns a ship into its player's fleet. The first one becomes the active ship. It is in the next tick.
#[utoipa::path(post, path = "/v1/galaxy/ships", tag = "galaxy", request_body = ShipSpawn,
    responses((status = 201, description = "The ship", body = ShipAnswer,
        headers(("Location" = String, description = "The ship"))), Conflict))]
pub(super) async fn spawn_ship(
    Acting(galaxy): Acting,
    Json(body): Json<ShipSpawn>,
) -> Result<Created<ShipAnswer>, ApiError> {
    let new = NewShip::from(body);
    let ship = new.ship_id;
    galaxy.physics().spawn_ship(new).await?;
    let body = read(&galaxy, ship).await?;
    Ok(Created { location: format!("/v1/galaxy/ships/{ship}"), body })
}

/// Returns a ship as it is now.
#[utoipa::path(get, path = "/v1/galaxy/ships/{ship}", tag = "galaxy", params(ShipPath),
    responses((status = 200, description = "The ship", body = ShipAnswer), NotFound))]
pub(super) async fn get_ship(
    State(app): State<AppState>,
    Path(ship): ShipPath,
) -> Result<Answer<ShipAnswer>, ApiError> {
    read(&app.galaxy, ship).await.map(Answer)
}

/// Removes a ship with its rules and its maneuver.
#[utoipa::path(delete, path = "/v1/galaxy/ships/{ship}", tag = "galaxy", params(ShipPath),
    responses((status = 204, description = "It is removed"), NotFound))]
pub(super) async fn remove_ship(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
) -> Result<StatusCode, ApiError> {
    match galaxy.physics().remove_ship(ship).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_ship(ship)),
    }
}

/// Another name for a ship.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"player_id": "660e8400-e29b-41d4-a716-446655440001", "name": "Rocinante"}))]
pub(super) struct ShipName {
    /// The player, whose ship it is.
    player_id: Uuid,
    /// 1 to 64 bytes.
    name: String,
}

/// Gives a ship of a player another name.
#[utoipa::path(put, path = "/v1/galaxy/ships/{ship}/name", tag = "galaxy", params(ShipPath),
    request_body = ShipName,
    responses((status = 204, description = "It has the name"), NotFound, Conflict))]
pub(super) async fn rename_ship(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
    Json(body): Json<ShipName>,
) -> Result<StatusCode, ApiError> {
    galaxy.api_gateway().rename_ship(PlayerId(body.player_id), ship, body.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a player asks of a ship. What is absent has its default.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"rotation_input": [0, 0.25, -1], "thrust_level": 0.5, "attitude_mode": "target",
    "attitude_target_id": "Earth", "attitude_target_type": "body"}))]
pub(super) struct ShipControls {
    #[serde(default)]
    #[schema(schema_with = shapes::vector)]
    rotation_input: Vector,
    /// From 0 to 1.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    thrust_level: f64,
    /// Whether rotation is damped.
    #[serde(default)]
    attitude_hold: bool,
    #[serde(default)]
    #[schema(schema_with = shapes::attitude_mode)]
    attitude_mode: AttitudeMode,
    #[schema(schema_with = shapes::maybe_quaternion)]
    attitude_target: Option<Quaternion>,
    /// The name of a body, an id, or the key of a Lagrange point. The modes `target` and `target_retrograde` need it.
    attitude_target_id: Option<String>,
    #[schema(schema_with = shapes::maybe_target_type)]
    attitude_target_type: Option<TargetType>,
}

/// Sets all controls of a ship.
#[utoipa::path(put, path = "/v1/galaxy/ships/{ship}/controls", tag = "galaxy", params(ShipPath),
    request_body = ShipControls, responses((status = 204, description = "They are set"), NotFound))]
pub(super) async fn control_ship(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
    Json(body): Json<ShipControls>,
) -> Result<StatusCode, ApiError> {
    let controls = Controls {
        rotation_input: body.rotation_input,
        thrust_level: body.thrust_level,
        attitude_hold: body.attitude_hold,
        attitude_mode: body.attitude_mode,
        attitude_target: body.attitude_target,
        attitude_target_id: body.attitude_target_id,
        attitude_target_type: body.attitude_target_type,
    };
    galaxy.physics().control(ship, controls).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// New fuel of a ship.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"fuel": 25_000}))]
pub(super) struct Refuelling {
    /// In kg; the ship's capacity if absent.
    #[schema(minimum = 0)]
    fuel: Option<f64>,
}

/// Refuels a ship: the next tick has the new fuel.
#[utoipa::path(post, path = "/v1/galaxy/ships/{ship}/refuel", tag = "galaxy", params(ShipPath),
    request_body = Refuelling, responses((status = 202, description = "The next tick has it", body = QueuedChange), NotFound))]
pub(super) async fn refuel_ship(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
    Json(body): Json<Refuelling>,
) -> Result<(StatusCode, Answer<QueuedChange>), ApiError> {
    let fuel = match body.fuel {
        Some(fuel) => fuel,
        None => read(&galaxy, ship).await?.0.fuel_capacity,
    };
    queue(&galaxy, ship, MotionChange::fuel(fuel)).await
}

/// Another place, speed or attitude of a ship. What is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"system_id": "sol", "position": [1.5e11, 0, 0], "velocity": [0, 29_780, 0]}))]
pub(super) struct ShipMove {
    #[schema(schema_with = shapes::maybe_vector)]
    position: Option<Vector>,
    #[schema(schema_with = shapes::maybe_vector)]
    velocity: Option<Vector>,
    #[schema(schema_with = shapes::maybe_quaternion)]
    attitude: Option<Quaternion>,
    #[schema(schema_with = shapes::maybe_vector)]
    angular_velocity: Option<Vector>,
    #[schema(schema_with = shapes::maybe_vector)]
    wheel_momentum: Option<Vector>,
    /// Another star system.
    #[schema(value_type = Option<String>)]
    system_id: Option<SystemId>,
}

/// Moves a ship, such as through a jump gate: the next tick has it there.
#[utoipa::path(post, path = "/v1/galaxy/ships/{ship}/move", tag = "galaxy", params(ShipPath),
    request_body = ShipMove, responses((status = 202, description = "The next tick has it", body = QueuedChange), NotFound))]
pub(super) async fn move_ship(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
    Json(body): Json<ShipMove>,
) -> Result<(StatusCode, Answer<QueuedChange>), ApiError> {
    let change = MotionChange {
        position: body.position,
        velocity: body.velocity,
        attitude: body.attitude,
        angular_velocity: body.angular_velocity,
        fuel: None,
        wheel_momentum: body.wheel_momentum,
        system_id: body.system_id,
    };
    queue(&galaxy, ship, change).await
}

/// A change that waits for the next tick.
#[derive(Serialize, ToSchema)]
pub(super) struct QueuedChange {
    /// The present tick; a later one has the change.
    #[schema(example = 123_456)]
    after_tick: i64,
}

async fn queue(
    galaxy: &GalaxyState,
    ship: ShipId,
    change: MotionChange,
) -> Result<(StatusCode, Answer<QueuedChange>), ApiError> {
    // Read first: a tick that comes in between may have the change already.
    let after_tick = galaxy.head().await?.tick;
    galaxy.physics().move_ship(ship, change).await?;
    Ok((StatusCode::ACCEPTED, Answer(QueuedChange { after_tick })))
}
