//! Stations, jump gates and celestial bodies, and the removal of all entities of a kind.

use super::acting::Acting;
use super::shapes::{self, BodyAnswer, JumpgateAnswer, StationAnswer};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{BodyPath, JumpgatePath, StationPath};
use crate::routes::responses::{ClearedCount, Conflict, Created, NotFound, percent_encode};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::galaxy::{Body, BodyName, Jumpgate, JumpgateId, Station, StationId, SystemId, Vector};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

fn missing(what: &str, id: impl ToString) -> ApiError {
    let id = id.to_string();
    ApiError::not_found(format!("{what} {id} does not exist")).with("id", id)
}

/// A station or a jump gate that is to be added. What is absent has the default of its kind.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"id": "770e8400-e29b-41d4-a716-446655440002", "name": "Halo", "parent_body": "Earth",
    "position": [6.778e6, 0, 0], "velocity": [0, 7_660, 0]}))]
pub(super) struct NewStructure {
    /// Its id; a new one if absent.
    id: Option<Uuid>,
    /// What players see, 1 to 64 bytes.
    name: String,
    /// The body that it belongs to, 1 to 64 bytes.
    parent_body: String,
    #[schema(schema_with = shapes::maybe_vector)]
    position: Option<Vector>,
    #[schema(schema_with = shapes::maybe_vector)]
    velocity: Option<Vector>,
    /// In kg; 420,000 for a station, 500,000 for a jump gate if absent.
    #[schema(exclusive_minimum = 0)]
    mass: Option<f64>,
    /// How near others may come, in metres; 50 for a station, 150 for a jump gate if absent.
    #[schema(exclusive_minimum = 0)]
    radius: Option<f64>,
    /// The star system; `sol` if absent.
    #[schema(value_type = Option<String>)]
    system_id: Option<SystemId>,
}

/// The entity of a body, with the defaults of its kind.
macro_rules! structure {
    ($kind:ident, $id:ident, $body:ident) => {{
        let new = $kind::new($id($body.id.unwrap_or_else(Uuid::new_v4)), $body.name, $body.parent_body);
        $kind {
            position: $body.position.unwrap_or_default(),
            velocity: $body.velocity.unwrap_or_default(),
            mass: $body.mass.unwrap_or($kind::MASS),
            radius: $body.radius.unwrap_or($kind::RADIUS),
            system_id: $body.system_id.unwrap_or_default(),
            ..new
        }
    }};
}

/// Adds a station. It is in the next tick.
#[utoipa::path(post, path = "/v1/galaxy/stations", tag = "galaxy", request_body = NewStructure,
    responses((status = 201, description = "The station", body = StationAnswer,
        headers(("Location" = String, description = "The station"))), Conflict))]
pub(super) async fn spawn_station(
    Acting(galaxy): Acting,
    Json(body): Json<NewStructure>,
) -> Result<Created<StationAnswer>, ApiError> {
    let new = structure!(Station, StationId, body);
    galaxy.physics().spawn_station(new.clone()).await?;
    Ok(Created { location: format!("/v1/galaxy/stations/{}", new.station_id), body: new.into() })
}

/// Returns a station as it is now.
#[utoipa::path(get, path = "/v1/galaxy/stations/{station}", tag = "galaxy", params(StationPath),
    responses((status = 200, description = "The station", body = StationAnswer), NotFound))]
pub(super) async fn get_station(
    State(app): State<AppState>,
    Path(id): StationPath,
) -> Result<Answer<StationAnswer>, ApiError> {
    let found = app.galaxy.station(&id).await?;
    found.map(|found| Answer(found.into())).ok_or_else(|| missing("station", id))
}

/// Removes a station.
#[utoipa::path(delete, path = "/v1/galaxy/stations/{station}", tag = "galaxy", params(StationPath),
    responses((status = 204, description = "It is removed"), NotFound))]
pub(super) async fn remove_station(
    Acting(galaxy): Acting,
    Path(id): StationPath,
) -> Result<StatusCode, ApiError> {
    match galaxy.physics().remove_station(id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing("station", id)),
    }
}

/// Adds a jump gate. It is in the next tick.
#[utoipa::path(post, path = "/v1/galaxy/jumpgates", tag = "galaxy", request_body = NewStructure,
    responses((status = 201, description = "The jump gate", body = JumpgateAnswer,
        headers(("Location" = String, description = "The jump gate"))), Conflict))]
pub(super) async fn spawn_jumpgate(
    Acting(galaxy): Acting,
    Json(body): Json<NewStructure>,
) -> Result<Created<JumpgateAnswer>, ApiError> {
    let new = structure!(Jumpgate, JumpgateId, body);
    galaxy.physics().spawn_jumpgate(new.clone()).await?;
    Ok(Created { location: format!("/v1/galaxy/jumpgates/{}", new.jumpgate_id), body: new.into() })
}

/// Returns a jump gate as it is now.
#[utoipa::path(get, path = "/v1/galaxy/jumpgates/{jumpgate}", tag = "galaxy", params(JumpgatePath),
    responses((status = 200, description = "The jump gate", body = JumpgateAnswer), NotFound))]
pub(super) async fn get_jumpgate(
    State(app): State<AppState>,
    Path(id): JumpgatePath,
) -> Result<Answer<JumpgateAnswer>, ApiError> {
    let found = app.galaxy.jumpgate(&id).await?;
    found.map(|found| Answer(found.into())).ok_or_else(|| missing("jump gate", id))
}

/// Removes a jump gate.
#[utoipa::path(delete, path = "/v1/galaxy/jumpgates/{jumpgate}", tag = "galaxy", params(JumpgatePath),
    responses((status = 204, description = "It is removed"), NotFound))]
pub(super) async fn remove_jumpgate(
    Acting(galaxy): Acting,
    Path(id): JumpgatePath,
) -> Result<StatusCode, ApiError> {
    match galaxy.physics().remove_jumpgate(id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing("jump gate", id)),
    }
}

/// A celestial body that is to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Earth", "position": [-2.627e10, 1.445e11, -1.038e4],
    "velocity": [-2.983e4, -5.22e3, 0]}))]
pub(super) struct NewBody {
    /// Its name, a word without `:`, `{` and `}`.
    #[schema(value_type = String)]
    name: BodyName,
    #[schema(schema_with = shapes::vector)]
    position: Vector,
    #[schema(schema_with = shapes::vector)]
    velocity: Vector,
    /// The star system; `sol` if absent.
    #[schema(value_type = Option<String>)]
    system_id: Option<SystemId>,
}

/// Creates a celestial body. It is in the next tick.
#[utoipa::path(post, path = "/v1/galaxy/bodies", tag = "galaxy", request_body = NewBody,
    responses((status = 201, description = "The body", body = BodyAnswer,
        headers(("Location" = String, description = "The body"))), Conflict))]
pub(super) async fn create_body(
    Acting(galaxy): Acting,
    Json(body): Json<NewBody>,
) -> Result<Created<BodyAnswer>, ApiError> {
    let NewBody { name, position, velocity, system_id } = body;
    let new = Body { name, position, velocity, system_id: system_id.unwrap_or_default() };
    galaxy.initializer().create_body(new.clone()).await?;
    Ok(Created {
        location: format!("/v1/galaxy/bodies/{}", percent_encode(&new.name.to_string())),
        body: new.into(),
    })
}

/// Returns a celestial body as it is now.
#[utoipa::path(get, path = "/v1/galaxy/bodies/{body}", tag = "galaxy", params(BodyPath),
    responses((status = 200, description = "The body", body = BodyAnswer), NotFound))]
pub(super) async fn get_body(
    State(app): State<AppState>,
    Path(name): BodyPath,
) -> Result<Answer<BodyAnswer>, ApiError> {
    let found = app.galaxy.body(&name).await?;
    found.map(|found| Answer(found.into())).ok_or_else(|| missing("body", name))
}

/// Removes a celestial body.
#[utoipa::path(delete, path = "/v1/galaxy/bodies/{body}", tag = "galaxy", params(BodyPath),
    responses((status = 204, description = "It is removed"), NotFound))]
pub(super) async fn remove_body(
    Acting(galaxy): Acting,
    Path(name): BodyPath,
) -> Result<StatusCode, ApiError> {
    match galaxy.physics().remove_body(&name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing("body", name)),
    }
}

/// Declares the routes that remove all entities of a kind.
macro_rules! clear_routes {
    ($($(#[$doc:meta])* $handler:ident = $path:literal, $clear:ident;)+) => { $(
        $(#[$doc])*
        #[utoipa::path(delete, path = $path, tag = "galaxy",
            responses((status = 200, description = "How many there were", body = ClearedCount)))]
        pub(super) async fn $handler(Acting(galaxy): Acting) -> Result<Answer<ClearedCount>, ApiError> {
            Ok(Answer(ClearedCount { cleared: galaxy.physics().$clear().await? }))
        }
    )+ };
}

clear_routes! {
    /// Removes all ships of all players, with their rules and maneuvers.
    clear_ships = "/v1/galaxy/ships", clear_ships;
    /// Removes all stations.
    clear_stations = "/v1/galaxy/stations", clear_stations;
    /// Removes all jump gates.
    clear_jumpgates = "/v1/galaxy/jumpgates", clear_jumpgates;
    /// Removes all celestial bodies.
    clear_bodies = "/v1/galaxy/bodies", clear_bodies;
}
