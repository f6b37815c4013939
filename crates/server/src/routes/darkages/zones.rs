//! Zones: who is where.

use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{Json, Path};
use crate::routes::path::{EntityPath, ZoneMemberPath, ZonePath};
use crate::routes::responses::{NotFound, problems};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::{Session, ZoneId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a player goes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"zone_id": 43}))]
pub(super) struct ZoneDestination {
    /// The zone; 0 leaves the present one.
    #[schema(minimum = 0)]
    zone_id: i32,
}

/// Where the player was.
#[derive(Serialize, ToSchema)]
pub(super) struct FormerZone {
    /// The zone that the player left; 0 is none.
    #[schema(example = 42)]
    former_zone_id: i32,
}

/// Moves a player into another zone. A player is in at most one.
#[utoipa::path(put, path = "/v1/darkages/sessions/{entity}/zone", tag = "darkages",
    params(EntityPath), request_body = ZoneDestination,
    responses((status = 200, description = "The former zone", body = FormerZone), NotFound))]
pub(super) async fn move_player(
    State(app): State<AppState>,
    Path(entity): EntityPath,
    Json(body): Json<ZoneDestination>,
) -> Result<Answer<FormerZone>, ApiError> {
    let former = app.darkages.move_to(entity, ZoneId(body.zone_id)).await?;
    Ok(Answer(FormerZone { former_zone_id: former.0 }))
}

/// The players of a zone.
#[derive(Serialize, ToSchema)]
pub(super) struct ZoneMembers {
    /// The sessions, in the order of their entities.
    sessions: Vec<Session>,
    /// Records that could not be read; the others are listed.
    corrupt: Vec<ProblemDetails>,
}

/// Lists the sessions of the players in a zone.
#[utoipa::path(get, path = "/v1/darkages/zones/{zone}/members", tag = "darkages",
    params(ZonePath), responses((status = 200, description = "The sessions", body = ZoneMembers)))]
pub(super) async fn list_zone_members(
    State(app): State<AppState>,
    Path(zone): ZonePath,
) -> Result<Answer<ZoneMembers>, ApiError> {
    let listing = app.darkages.members(zone).await?;
    Ok(Answer(ZoneMembers { sessions: listing.living, corrupt: problems(listing.corrupt) }))
}

/// How many players a zone has.
#[derive(Serialize, ToSchema)]
pub(super) struct ZoneCount {
    /// Players with a living session.
    #[schema(example = 64)]
    count: usize,
}

/// Counts the players in a zone.
#[utoipa::path(get, path = "/v1/darkages/zones/{zone}/count", tag = "darkages",
    params(ZonePath), responses((status = 200, description = "The number", body = ZoneCount)))]
pub(super) async fn count_zone_members(
    State(app): State<AppState>,
    Path(zone): ZonePath,
) -> Result<Answer<ZoneCount>, ApiError> {
    Ok(Answer(ZoneCount { count: app.darkages.count(zone).await? }))
}

/// Whether a player is in a zone.
#[derive(Serialize, ToSchema)]
pub(super) struct ZoneMember {
    /// `true` if the player is in the zone and has a living session.
    is_member: bool,
}

/// Returns whether a player is in a zone.
#[utoipa::path(get, path = "/v1/darkages/zones/{zone}/members/{entity}", tag = "darkages",
    params(ZoneMemberPath), responses((status = 200, description = "Whether it is", body = ZoneMember)))]
pub(super) async fn get_zone_member(
    State(app): State<AppState>,
    Path((zone, entity)): ZoneMemberPath,
) -> Result<Answer<ZoneMember>, ApiError> {
    Ok(Answer(ZoneMember { is_member: app.darkages.is_in_zone(entity, zone).await? }))
}

/// Keeps the members of a zone for another half hour. A zone server calls it while it serves the zone.
#[utoipa::path(post, path = "/v1/darkages/zones/{zone}/heartbeat", tag = "darkages",
    params(ZonePath), responses((status = 204, description = "They are kept")))]
pub(super) async fn keep_zone(
    State(app): State<AppState>,
    Path(zone): ZonePath,
) -> Result<StatusCode, ApiError> {
    app.darkages.heartbeat(zone).await?;
    Ok(StatusCode::NO_CONTENT)
}
