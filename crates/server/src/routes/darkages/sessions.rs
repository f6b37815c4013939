//! Sessions: login, reading, activity, changes, logout, expiry.

use super::page::realm;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path, Query};
use crate::limits::{
    DARKAGES_LOGGED_EVERY, SESSIONS_CLOSED_MAX, SESSIONS_LISTED_DEFAULT, SESSIONS_LISTED_MAX,
};
use crate::routes::path::EntityPath;
use crate::routes::responses::{Banned, Conflict, Created, NotFound};
use crate::seldom::Seldom;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::{
    EntityId, LoggedIn, LoginPolicy, LoginRequest, Point, Realm, RealmError, Session, SessionChange, ZoneId,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use utoipa::{IntoParams, ToSchema};

/// A point of a zone.
#[derive(Deserialize, ToSchema, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub(super) struct ZonePoint {
    /// The coordinate to the east.
    x: f64,
    /// The coordinate upwards.
    y: f64,
    /// The coordinate to the north.
    z: f64,
}

impl From<ZonePoint> for Point {
    fn from(ZonePoint { x, y, z }: ZonePoint) -> Point {
        Point::new(x, y, z)
    }
}

/// What a login does if the player has a living session.
#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "snake_case")]
enum ExistingSession {
    /// Closes it into history.
    #[default]
    Replace,
    /// Refuses the login with `already_logged_in`.
    Refuse,
}

/// A player who logs in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"player_id": 12_345, "client_id": "player_abc123", "player_name": "Ann", "zone_id": 42,
    "position": {"x": 1234.5, "y": 0.0, "z": 6789.0}, "team_id": 1, "client_version": "1.4.2"}))]
pub(super) struct Login {
    /// The player, who may play several entities.
    player_id: i64,
    /// The entity; the player's id if absent.
    entity_id: Option<i64>,
    /// The client, at most 128 bytes.
    client_id: String,
    /// The name that leaderboards show; the id if absent.
    player_name: Option<String>,
    /// The zone that the player enters; 0 is none.
    #[schema(minimum = 0)]
    zone_id: i32,
    /// Where in the zone.
    position: ZonePoint,
    /// Full health, with which the player begins; 100 if absent.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    max_health: Option<i32>,
    /// The team; 0 is none.
    #[serde(default)]
    team_id: i32,
    /// The client's version, at most 128 bytes.
    #[serde(default)]
    client_version: String,
    /// The player's address, for the audit log.
    #[schema(value_type = Option<String>, examples("192.0.2.7"))]
    ip: Option<IpAddr>,
    /// What to do with a living session of the player.
    #[serde(default)]
    existing: ExistingSession,
}

impl From<Login> for LoginRequest {
    fn from(login: Login) -> LoginRequest {
        let new =
            LoginRequest::new(login.player_id, login.client_id, ZoneId(login.zone_id), login.position.into());
        LoginRequest {
            entity: login.entity_id.map(EntityId),
            player_name: login.player_name.unwrap_or(new.player_name),
            max_health: login.max_health.unwrap_or(new.max_health),
            team_id: login.team_id,
            client_version: login.client_version,
            ip: login.ip,
            existing: match login.existing {
                ExistingSession::Replace => LoginPolicy::Replace,
                ExistingSession::Refuse => LoginPolicy::Refuse,
            },
            ..new
        }
    }
}

/// Logs a player in. A living session of the player is closed into history, or makes the login fail. A banned player is
/// refused, and the login is noted in the profile of a registered one, unless history is away.
#[utoipa::path(post, path = "/v1/darkages/sessions", tag = "darkages",
    request_body = Login,
    responses((status = 201, description = "The session", body = Session,
        headers(("Location" = String, description = "The URL of the session"))), Banned, Conflict))]
pub(super) async fn log_in(
    State(app): State<AppState>,
    Json(body): Json<Login>,
) -> Result<Created<Session>, ApiError> {
    let session = match realm(&app) {
        Some(realm) => log_in_with_profile(&app, &realm, body.into()).await?,
        None => app.darkages.login(body.into()).await?,
    };
    let location = format!("/v1/darkages/sessions/{}", session.entity_id);
    Ok(Created { location, body: session })
}

/// The game goes on while history is away: then bans are not seen, and the login is not noted.
async fn log_in_with_profile(
    app: &AppState,
    realm: &Realm,
    request: LoginRequest,
) -> Result<Session, RealmError> {
    let player_id = request.player_id;
    let (session, error) = match realm.login(request.clone()).await {
        Ok(LoggedIn { session, profile: Ok(_) }) => return Ok(session),
        Ok(LoggedIn { session, profile: Err(error) }) => (session, error),
        Err(RealmError::Archive(error)) if error.is_away() => (app.darkages.login(request).await?, error),
        Err(error) => return Err(error),
    };
    app.metrics.darkages.logins_unchecked.fetch_add(1, Relaxed);
    UNCHECKED_LOG.log(|| {
        tracing::warn!(player_id, %error, "a player logged in, and its profile could not be read or written");
    });
    Ok(session)
}

static UNCHECKED_LOG: Seldom = Seldom::new(DARKAGES_LOGGED_EVERY);

/// Returns the living session of an entity.
#[utoipa::path(get, path = "/v1/darkages/sessions/{entity}", tag = "darkages",
    params(EntityPath), responses((status = 200, description = "The session", body = Session), NotFound))]
pub(super) async fn get_session(
    State(app): State<AppState>,
    Path(entity): EntityPath,
) -> Result<Answer<Session>, ApiError> {
    let session = app.darkages.session(entity).await?;
    session.map(Answer).ok_or_else(|| {
        let detail = format!("entity {entity} is not logged in");
        ApiError::new(StatusCode::NOT_FOUND, "not_logged_in", detail).with("entity_id", entity.0)
    })
}

/// Notes that a player is active: the session lives for another hour.
#[utoipa::path(post, path = "/v1/darkages/sessions/{entity}/touch", tag = "darkages",
    params(EntityPath), responses((status = 200, description = "The session", body = Session), NotFound))]
pub(super) async fn touch_session(
    State(app): State<AppState>,
    Path(entity): EntityPath,
) -> Result<Answer<Session>, ApiError> {
    Ok(Answer(app.darkages.touch(entity).await?))
}

/// What changes in a session; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"health": 85, "status": "resting"}))]
pub(super) struct SessionUpdate {
    /// Health, at most the full one; 0 is dead.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    health: Option<i32>,
    /// Full health, from 1.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    max_health: Option<i32>,
    /// The team; 0 is none.
    team_id: Option<i32>,
    /// What the player does, at most 32 bytes.
    status: Option<String>,
}

/// Changes health, team and status. This is activity, too.
#[utoipa::path(post, path = "/v1/darkages/sessions/{entity}/change", tag = "darkages",
    params(EntityPath), request_body = SessionUpdate,
    responses((status = 200, description = "The session", body = Session), NotFound))]
pub(super) async fn change_session(
    State(app): State<AppState>,
    Path(entity): EntityPath,
    Json(body): Json<SessionUpdate>,
) -> Result<Answer<Session>, ApiError> {
    let SessionUpdate { health, max_health, team_id, status } = body;
    let change = SessionChange { health, max_health, team_id, status };
    Ok(Answer(app.darkages.change(entity, change).await?))
}

/// Logs a player out: the session becomes a play session of history.
#[utoipa::path(delete, path = "/v1/darkages/sessions/{entity}", tag = "darkages",
    params(EntityPath), responses((status = 204, description = "The session has ended"), NotFound))]
pub(super) async fn log_out(
    State(app): State<AppState>,
    Path(entity): EntityPath,
) -> Result<StatusCode, ApiError> {
    app.darkages.logout(entity).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Why a player is kicked.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"reason": "speed hack"}))]
pub(super) struct Kick {
    /// The reason, for the audit log; at most 128 bytes.
    reason: String,
}

/// Ends a session against the player's will.
#[utoipa::path(post, path = "/v1/darkages/sessions/{entity}/kick", tag = "darkages",
    params(EntityPath), request_body = Kick,
    responses((status = 204, description = "The session has ended"), NotFound))]
pub(super) async fn kick_player(
    State(app): State<AppState>,
    Path(entity): EntityPath,
    Json(body): Json<Kick>,
) -> Result<StatusCode, ApiError> {
    app.darkages.kick(entity, body.reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How many entities to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExpiredQuery {
    /// At most this many; 100 if absent.
    #[param(minimum = 1, maximum = 1_000, example = 100)]
    limit: Option<u16>,
}

/// Entities whose session has expired.
#[derive(Serialize, ToSchema)]
pub(super) struct ExpiredSessions {
    /// The entities of the sessions.
    #[schema(examples(json!([12_345])))]
    entities: Vec<i64>,
}

/// Lists entities whose session has expired and is not closed into history yet.
#[utoipa::path(get, path = "/v1/darkages/expired-sessions", tag = "darkages",
    params(ExpiredQuery), responses((status = 200, description = "The entities", body = ExpiredSessions)))]
pub(super) async fn list_expired_sessions(
    State(app): State<AppState>,
    Query(query): Query<ExpiredQuery>,
) -> Result<Answer<ExpiredSessions>, ApiError> {
    let limit = query.limit.map_or(SESSIONS_LISTED_DEFAULT, usize::from);
    let limit = bounded(limit, SESSIONS_LISTED_MAX)?;
    let entities = app.darkages.expired(limit).await?.into_iter().map(|entity| entity.0).collect();
    Ok(Answer(ExpiredSessions { entities }))
}

/// A limit from 1 to a maximum.
pub(super) fn bounded(limit: usize, max: usize) -> Result<usize, ApiError> {
    if (1..=max).contains(&limit) {
        return Ok(limit);
    }
    Err(ApiError::invalid(format!("a limit of {limit}, expected 1 to {max}")).with("what", "limit"))
}

/// How many sessions to look at.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"limit": 1_000}))]
pub(super) struct CloseExpired {
    /// At most this many sessions.
    #[schema(minimum = 1, maximum = 10_000)]
    limit: u16,
}

/// What a pass over the sessions that were due did.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionSweep {
    /// Sessions that had ended and are recorded now.
    closed: usize,
    /// Sessions that have had activity since they became due.
    alive: usize,
    /// Play records that cannot be read.
    unreadable: usize,
    /// Older copies of sessions that live elsewhere, which a failover brought back: they are removed, and nothing is recorded.
    copies: usize,
    /// Sessions that failed, such as one whose zone has a key of a wrong type. They are tried again in a minute.
    failed: usize,
}

/// Closes sessions that have expired into history. The server does it by itself, too.
#[utoipa::path(post, path = "/v1/darkages/sweep", tag = "darkages",
    request_body = CloseExpired,
    responses((status = 200, description = "What was done", body = SessionSweep)))]
pub(super) async fn close_expired_sessions(
    State(app): State<AppState>,
    Json(body): Json<CloseExpired>,
) -> Result<Answer<SessionSweep>, ApiError> {
    let limit = bounded(body.limit.into(), SESSIONS_CLOSED_MAX)?;
    let done = app.darkages.close_expired(limit).await?;
    let emberkeep_games::darkages::SessionSweep { closed, alive, unreadable, copies, failed, .. } = done;
    Ok(Answer(SessionSweep { closed, alive, unreadable, copies, failed }))
}
