//! Star systems: all their entities as of one tick.

use super::shapes::{PlaceAnswer, ShipStateAnswer, time_text};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Path, Query};
use crate::limits::{PAGE_ENTRIES_DEFAULT, PAGE_ENTRIES_MAX};
use crate::routes::path::SystemPath;
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::galaxy::{ShipId, SystemView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// All entities of a star system, as of one tick.
#[derive(Serialize, ToSchema)]
pub(super) struct SystemState {
    /// The generation of the game: a reset begins the next one.
    #[schema(example = 1)]
    generation: i64,
    /// The tick of which everything is.
    #[schema(example = 123_456)]
    tick: i64,
    /// Its game time in ISO 8601.
    #[schema(example = "2000-01-01T13:00:00Z")]
    time: String,
    /// The ships, by id.
    ships: BTreeMap<String, ShipStateAnswer>,
    /// The celestial bodies, by name.
    bodies: BTreeMap<String, PlaceAnswer>,
    /// The stations, by id.
    stations: BTreeMap<String, PlaceAnswer>,
    /// The jump gates, by id.
    jumpgates: BTreeMap<String, PlaceAnswer>,
}

impl From<SystemView> for SystemState {
    fn from(view: SystemView) -> SystemState {
        let world = view.world;
        let ships = world.ships.into_iter().map(|(id, ship)| (id.to_string(), ship.into()));
        let stations = world.stations.into_iter().map(|(id, state)| (id.to_string(), state.into()));
        let jumpgates = world.jumpgates.into_iter().map(|(id, state)| (id.to_string(), state.into()));
        SystemState {
            generation: view.generation,
            tick: view.tick,
            time: time_text(view.time),
            ships: ships.collect(),
            bodies: world.bodies.into_iter().map(|(name, state)| (name.to_string(), state.into())).collect(),
            stations: stations.collect(),
            jumpgates: jumpgates.collect(),
        }
    }
}

/// Returns all entities of a star system as of one tick. A system without entities is empty.
#[utoipa::path(get, path = "/v1/galaxy/systems/{system}", tag = "galaxy", params(SystemPath),
    responses((status = 200, description = "One whole tick", body = SystemState)))]
pub(super) async fn get_system(
    State(app): State<AppState>,
    Path(system): SystemPath,
) -> Result<Answer<SystemState>, ApiError> {
    Ok(Answer(app.galaxy.system(&system).await?.into()))
}

/// Which page of a system's ships.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ShipPageQuery {
    /// At most this many ships; 100 if absent.
    #[param(minimum = 1, maximum = 1_000, example = 100)]
    limit: Option<u16>,
    /// The `next` of the page before; absent for the first page.
    cursor: Option<Uuid>,
}

/// A ship of a page.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedShip {
    /// Its id.
    ship_id: Uuid,
    /// What the tick has of it.
    state: ShipStateAnswer,
}

/// Ships of a system, all as of one tick.
#[derive(Serialize, ToSchema)]
pub(super) struct ShipPage {
    /// The generation of the game.
    #[schema(example = 1)]
    generation: i64,
    /// The tick of which all ships of this page are. The next page may be of a later one.
    #[schema(example = 123_456)]
    tick: i64,
    /// The ships, in the order of their ids.
    ships: Vec<ListedShip>,
    /// The `cursor` of the next page; `null` on the last one.
    next: Option<Uuid>,
}

/// Lists the ships of a star system by pages. Ships that were spawned since the present tick come with the next one.
#[utoipa::path(get, path = "/v1/galaxy/systems/{system}/ships", tag = "galaxy",
    params(SystemPath, ShipPageQuery), responses((status = 200, description = "A page", body = ShipPage)))]
pub(super) async fn list_ships(
    State(app): State<AppState>,
    Path(system): SystemPath,
    Query(query): Query<ShipPageQuery>,
) -> Result<Answer<ShipPage>, ApiError> {
    let limit = query.limit.map_or(PAGE_ENTRIES_DEFAULT, usize::from);
    if !(1..=PAGE_ENTRIES_MAX).contains(&limit) {
        let detail = format!("a limit of {limit}, expected 1 to {PAGE_ENTRIES_MAX}");
        return Err(ApiError::invalid(detail).with("what", "limit"));
    }
    let view = app.galaxy.tick().await?;
    let after = query.cursor.map_or(Bound::Unbounded, |cursor| Bound::Excluded(ShipId(cursor)));
    let mut of_system =
        view.world.ships.range((after, Bound::Unbounded)).filter(|(_, ship)| ship.system_id == system);
    let listed =
        |(id, state): (&ShipId, &_)| ListedShip { ship_id: id.0, state: ShipStateAnswer::clone_of(state) };
    let ships: Vec<ListedShip> = of_system.by_ref().take(limit).map(listed).collect();
    let next = ships.last().map(|last| last.ship_id).filter(|_| of_system.next().is_some());
    Ok(Answer(ShipPage { generation: view.generation, tick: view.tick, ships, next }))
}
