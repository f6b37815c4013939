//! Who is near, where clients are connected, and how often an entity may do something.

use crate::answer::Answer;
use crate::duration::ceil_ms;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{ConnectionPath, EntityPath, RatePath, ZonePath};
use crate::routes::responses::{Conflict, NotFound};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::{self, ConnectionRequest, EntityId, NearbyRequest, RateCheck};
use emberkeep_schema::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use utoipa::ToSchema;

/// A word without colons and braces.
fn name(what: &'static str, text: &str) -> Result<Name, ApiError> {
    Name::new(text).map_err(|error| ApiError::invalid(format!("invalid {what}: {error}")).with("what", what))
}

/// A circle in a zone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"query_id": "guard-7", "x": 1234.5, "y": 0.0, "z": 6789.0, "radius": 50.0, "max_age_ms": 1_000}))]
pub(super) struct NearbyQuery {
    /// Names the query in the cache; other parameters under the same name are another query, and replace it.
    query_id: String,
    /// The centre: the coordinate to the east.
    x: f64,
    /// The centre: the coordinate upwards.
    y: f64,
    /// The centre: the coordinate to the north.
    z: f64,
    /// How far a player may be from the centre.
    #[schema(minimum = 0)]
    radius: f64,
    /// How old a cached result may be, in milliseconds; 0 uses none.
    #[serde(default)]
    max_age_ms: u32,
}

/// The players near a point.
#[derive(Serialize, ToSchema)]
pub(super) struct NearbyPlayers {
    /// The players, the lowest id first.
    #[schema(examples(json!([12_345])))]
    ids: Vec<i64>,
    /// When they were there, in milliseconds since 1970.
    at_ms: i64,
    /// Whether the result comes from the cache.
    is_cached: bool,
    /// Players of the zone whose position cannot be read.
    unreadable: usize,
}

/// Returns the players of a zone within a distance of a point, by their positions of the last two minutes.
#[utoipa::path(post, path = "/v1/darkages/zones/{zone}/nearby", tag = "darkages",
    params(ZonePath), request_body = NearbyQuery,
    responses((status = 200, description = "The players", body = NearbyPlayers)))]
pub(super) async fn find_nearby_players(
    State(app): State<AppState>,
    Path(zone): ZonePath,
    Json(body): Json<NearbyQuery>,
) -> Result<Answer<NearbyPlayers>, ApiError> {
    let request = NearbyRequest {
        query: name("query_id", &body.query_id)?,
        zone,
        centre: darkages::Point::new(body.x, body.y, body.z),
        radius: body.radius,
        max_age: Duration::from_millis(body.max_age_ms.into()),
    };
    let found = app.darkages.nearby(request).await?;
    let ids = found.ids.into_iter().map(|entity| entity.0).collect();
    Ok(Answer(NearbyPlayers {
        ids,
        at_ms: found.at,
        is_cached: found.is_cached,
        unreadable: found.unreadable,
    }))
}

/// A connection of a client.
#[derive(Serialize, ToSchema)]
pub(super) struct ClientConnection {
    /// The id under which it was opened.
    connection_id: String,
    /// The entity whose client it is.
    entity_id: i64,
    /// When it was opened, in milliseconds since 1970.
    connect_time: i64,
    /// The client's address; `null` if it is not known.
    #[schema(value_type = Option<String>)]
    ip_address: Option<IpAddr>,
    /// The version of the client's protocol.
    client_version: String,
    /// Fields that other programs wrote.
    other: BTreeMap<String, String>,
}

impl From<darkages::Connection> for ClientConnection {
    fn from(connection: darkages::Connection) -> ClientConnection {
        ClientConnection {
            connection_id: connection.id.to_string(),
            entity_id: connection.entity.0,
            connect_time: connection.connect_time,
            ip_address: connection.ip_address,
            client_version: connection.client_version,
            other: connection.other,
        }
    }
}

/// A connection to note.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"entity_id": 12_345, "ip_address": "192.0.2.7", "client_version": "1.4.2"}))]
pub(super) struct NewConnection {
    /// The entity, which is logged in.
    entity_id: i64,
    /// The client's address; absent if it is not known.
    #[schema(value_type = Option<String>)]
    ip_address: Option<IpAddr>,
    /// The version of the client's protocol, at most 128 bytes.
    #[serde(default)]
    client_version: String,
}

/// Notes that a client is connected, for an hour.
#[utoipa::path(put, path = "/v1/darkages/connections/{connection}", tag = "darkages",
    params(ConnectionPath), request_body = NewConnection,
    responses((status = 200, description = "The connection", body = ClientConnection), NotFound, Conflict))]
pub(super) async fn open_connection(
    State(app): State<AppState>,
    Path(connection): ConnectionPath,
    Json(body): Json<NewConnection>,
) -> Result<Answer<ClientConnection>, ApiError> {
    let request = ConnectionRequest {
        id: connection.0,
        entity: EntityId(body.entity_id),
        ip_address: body.ip_address,
        client_version: body.client_version,
    };
    Ok(Answer(app.darkages.open_connection(request).await?.into()))
}

fn not_open(connection: &Name) -> ApiError {
    ApiError::not_found(format!("connection {connection} is not open"))
}

/// Returns an open connection.
#[utoipa::path(get, path = "/v1/darkages/connections/{connection}", tag = "darkages",
    params(ConnectionPath),
    responses((status = 200, description = "The connection", body = ClientConnection), NotFound))]
pub(super) async fn get_connection(
    State(app): State<AppState>,
    Path(connection): ConnectionPath,
) -> Result<Answer<ClientConnection>, ApiError> {
    let found = app.darkages.connection(connection.0.clone()).await?;
    found.map(|found| Answer(found.into())).ok_or_else(|| not_open(&connection.0))
}

/// Keeps a connection for another hour. It does not count as activity of the session.
#[utoipa::path(post, path = "/v1/darkages/connections/{connection}/touch", tag = "darkages",
    params(ConnectionPath), responses((status = 204, description = "It is kept"), NotFound))]
pub(super) async fn touch_connection(
    State(app): State<AppState>,
    Path(connection): ConnectionPath,
) -> Result<StatusCode, ApiError> {
    match app.darkages.touch_connection(connection.0.clone()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_open(&connection.0)),
    }
}

/// Notes that a client is no longer connected. The session goes on.
#[utoipa::path(delete, path = "/v1/darkages/connections/{connection}", tag = "darkages",
    params(ConnectionPath), responses((status = 204, description = "It is closed"), NotFound))]
pub(super) async fn close_connection(
    State(app): State<AppState>,
    Path(connection): ConnectionPath,
) -> Result<StatusCode, ApiError> {
    match app.darkages.close_connection(connection.0.clone()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_open(&connection.0)),
    }
}

/// The connections of an entity.
#[derive(Serialize, ToSchema)]
pub(super) struct ClientConnections {
    /// The open ones, each with its entity, time and client.
    connections: Vec<ClientConnection>,
}

/// Lists the open connections of an entity.
#[utoipa::path(get, path = "/v1/darkages/sessions/{entity}/connections", tag = "darkages",
    params(EntityPath),
    responses((status = 200, description = "The connections", body = ClientConnections)))]
pub(super) async fn list_connections(
    State(app): State<AppState>,
    Path(entity): EntityPath,
) -> Result<Answer<ClientConnections>, ApiError> {
    let found = app.darkages.connections(entity).await?;
    Ok(Answer(ClientConnections { connections: found.into_iter().map(Into::into).collect() }))
}

/// An event to be counted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"event_id": "hit-991", "limit": 10, "window_ms": 1_000}))]
pub(super) struct RateEvent {
    /// The event, 1 to 128 bytes. One that counts already is admitted again and not counted twice.
    event_id: String,
    /// How many events are admitted within the window.
    #[schema(minimum = 1)]
    limit: u32,
    /// The window, in milliseconds.
    #[schema(minimum = 1)]
    window_ms: u32,
}

/// Whether an event is admitted.
#[derive(Serialize, ToSchema)]
pub(super) struct RateAnswer {
    /// Whether it counts, now or since an earlier call.
    allowed: bool,
    /// Further events that would be admitted now.
    #[schema(example = 9)]
    remaining: usize,
    /// Milliseconds until a further event is admitted; 0 if one is now.
    #[schema(example = 0)]
    retry_after_ms: u64,
}

/// Counts an event of an entity if there is room for it in a sliding window.
#[utoipa::path(post, path = "/v1/darkages/rate-limits/{entity}/{action}", tag = "darkages",
    params(RatePath), request_body = RateEvent,
    responses((status = 200, description = "Whether it is admitted", body = RateAnswer)))]
pub(super) async fn check_rate_limit(
    State(app): State<AppState>,
    Path((entity, action)): RatePath,
    Json(body): Json<RateEvent>,
) -> Result<Answer<RateAnswer>, ApiError> {
    let check = RateCheck {
        entity,
        action: action.0,
        event_id: body.event_id,
        limit: body.limit as usize,
        window: Duration::from_millis(body.window_ms.into()),
    };
    let admission = app.darkages.check_rate(check).await?;
    Ok(Answer(RateAnswer {
        allowed: admission.allowed,
        remaining: admission.remaining,
        retry_after_ms: ceil_ms(admission.retry_after).unwrap_or(u64::MAX),
    }))
}
