//! Hand-off of players between zones and shards.

use super::sessions::ZonePoint;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{EntityPath, ZoneMemberPath, ZonePath};
use crate::routes::responses::{Conflict, NotFound};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::{self, HandOffRequest, Session, ZoneId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a player is handed off to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"zone_id": 43, "position": {"x": 0.0, "y": 0.0, "z": 12.5}}))]
pub(super) struct HandOffTarget {
    /// The zone that the player enters, from 1.
    #[schema(minimum = 1)]
    zone_id: i32,
    /// Where in the zone.
    position: ZonePoint,
}

/// How far a hand-off came.
#[derive(Serialize, ToSchema)]
pub(super) struct HandOffState {
    /// Whether the player is in the zone. If not, it is on its way to another shard, whose zone server accepts it.
    done: bool,
    /// The session, if it is done.
    session: Option<Session>,
    /// The number of the hand-off, if it is not done.
    number: Option<i64>,
}

/// Hands a player off to a zone. Within a shard it is done at once; else the target's zone server accepts the player.
#[utoipa::path(post, path = "/v1/darkages/sessions/{entity}/hand-off", tag = "darkages",
    params(EntityPath), request_body = HandOffTarget,
    responses((status = 200, description = "How far it came", body = HandOffState), NotFound, Conflict))]
pub(super) async fn hand_off_player(
    State(app): State<AppState>,
    Path(entity): EntityPath,
    Json(body): Json<HandOffTarget>,
) -> Result<Answer<HandOffState>, ApiError> {
    let request = HandOffRequest { entity, zone: ZoneId(body.zone_id), position: body.position.into() };
    Ok(Answer(match app.darkages.hand_off(request).await? {
        darkages::HandOff::Done(session) => HandOffState { done: true, session: Some(session), number: None },
        darkages::HandOff::InTransit { number } => {
            HandOffState { done: false, session: None, number: Some(number) }
        }
    }))
}

/// Players who arrived in a zone from other shards.
#[derive(Serialize, ToSchema)]
pub(super) struct Arrivals {
    /// The entities of the players.
    entities: Vec<i64>,
}

/// Lists players who arrived in a zone from other shards and are not accepted. They go back after 30 s.
#[utoipa::path(get, path = "/v1/darkages/zones/{zone}/arrivals", tag = "darkages",
    params(ZonePath), responses((status = 200, description = "The entities", body = Arrivals)))]
pub(super) async fn list_arrivals(
    State(app): State<AppState>,
    Path(zone): ZonePath,
) -> Result<Answer<Arrivals>, ApiError> {
    let arrived = app.darkages.arrivals(zone).await?;
    Ok(Answer(Arrivals { entities: arrived.into_iter().map(|passage| passage.entity().0).collect() }))
}

/// Takes a player in who arrived in a zone. Accepting it again returns the session, too.
#[utoipa::path(post, path = "/v1/darkages/zones/{zone}/arrivals/{entity}/accept", tag = "darkages",
    params(ZoneMemberPath),
    responses((status = 200, description = "The session", body = Session), NotFound, Conflict))]
pub(super) async fn accept_arrival(
    State(app): State<AppState>,
    Path((zone, entity)): ZoneMemberPath,
) -> Result<Answer<Session>, ApiError> {
    Ok(Answer(app.darkages.accept(entity, zone).await?))
}

/// Sends a player who arrived in a zone back to the zone that it left.
#[utoipa::path(delete, path = "/v1/darkages/zones/{zone}/arrivals/{entity}", tag = "darkages",
    params(ZoneMemberPath), responses((status = 204, description = "It goes back"), NotFound, Conflict))]
pub(super) async fn refuse_arrival(
    State(app): State<AppState>,
    Path((zone, entity)): ZoneMemberPath,
) -> Result<StatusCode, ApiError> {
    app.darkages.refuse(entity, zone).await?;
    Ok(StatusCode::NO_CONTENT)
}
