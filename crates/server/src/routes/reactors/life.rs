//! One reactor: allocate an id, read, update, hit, destroy.

use crate::answer::Answer;
use crate::duration::ceil_ms;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{ReactorPath, TenantPath};
use crate::routes::responses::{Conflict, Created, NotFound};
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::reactors::{Outcome, Reactor};
use emberkeep_games::world::CharacterId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// An id that no reactor has, reserved for the caller.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorNumber {
    /// The id for a later creation.
    #[schema(example = 1_000_000_001)]
    id: u32,
}

/// Allocates the next free id, for a reactor that is created later.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/reactor-ids", tag = "reactors",
    params(TenantPath), responses((status = 201, description = "The id", body = ReactorNumber,
        headers(("Location" = String, description = "The URL of the future reactor"))), Conflict))]
pub(super) async fn allocate_reactor_id(
    State(app): State<AppState>,
    Path(tenant): TenantPath,
) -> Result<Created<ReactorNumber>, ApiError> {
    let id = app.reactors.allocate_id(tenant).await?;
    let location = format!("/v1/tenants/{}/reactors/{id}", tenant.0);
    Ok(Created { location, body: ReactorNumber { id: id.0 } })
}

/// Returns a reactor by its id.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/reactors/{reactor}", tag = "reactors",
    params(ReactorPath), responses((status = 200, description = "The reactor", body = Reactor), NotFound))]
pub(super) async fn get_reactor(
    State(app): State<AppState>,
    Path((tenant, id)): ReactorPath,
) -> Result<Answer<Reactor>, ApiError> {
    Ok(Answer(app.reactors.get(tenant, id).await?))
}

/// A conditional update of a reactor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"seen": example("box"), "next": example("crate")}))]
pub(super) struct Change {
    /// The reactor as it was read, with all fields.
    seen: Reactor,
    /// The new version. Id, tenant, field and spot must not change.
    next: Reactor,
}

/// The example of a reactor.
fn example(name: &str) -> Value {
    json!({"tenant": {"id": "550e8400-e29b-41d4-a716-446655440000", "region": "GMS", "majorVersion": 83,
        "minorVersion": 1}, "id": 1_000_000_001, "worldId": 0, "channelId": 1, "mapId": 100_000_000,
        "instance": "00000000-0000-0000-0000-000000000000", "classification": 2001, "name": name, "data": {},
        "state": 0, "eventState": 0, "delay": 60_000, "direction": 0, "x": -315, "y": 88, "updateTime": null})
}

/// Replaces a reactor if it still equals `seen`. Otherwise the error `changed` has it in `details.current`.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/reactors/{reactor}", tag = "reactors",
    params(ReactorPath),
    request_body = Change,
    responses((status = 200, description = "The reactor", body = Reactor), NotFound, Conflict))]
pub(super) async fn update_reactor(
    State(app): State<AppState>,
    Path((tenant, id)): ReactorPath,
    Json(body): Json<Change>,
) -> Result<Answer<Reactor>, ApiError> {
    if body.seen.id != id {
        let message = format!("`seen` is reactor {}, expected {id} as in the path", body.seen.id);
        return Err(ApiError::invalid(message).with("what", "seen"));
    }
    Ok(Answer(app.reactors.update(tenant, &body.seen, body.next).await?))
}

/// A hit of a character on a reactor.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"characterId": 7, "skillId": 0}))]
pub(super) struct Strike {
    /// The character that hits.
    character_id: u32,
    /// The skill; 0 is none.
    #[serde(default)]
    skill_id: u32,
}

/// The effect of a hit.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReactorHit {
    /// The character that hit.
    #[schema(example = 7)]
    character_id: u32,
    /// The skill; 0 is none.
    skill_id: u32,
    /// The reactor after the hit, or its last state if it was destroyed.
    reactor: Reactor,
    /// Whether the reactor triggered.
    triggered: bool,
    /// Whether the hit destroyed the reactor. True for exactly one hit.
    destroyed: bool,
    /// The previous state, if it changed.
    from: Option<i8>,
    /// The cooldown of its spot, if one started.
    cooldown_ms: Option<u64>,
}

/// Hits a reactor: it changes to its next state, or triggers and is destroyed.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/reactors/{reactor}/hit", tag = "reactors",
    params(ReactorPath),
    request_body = Strike,
    responses((status = 200, description = "The effect of the hit", body = ReactorHit), NotFound))]
pub(super) async fn hit_reactor(
    State(app): State<AppState>,
    Path((tenant, id)): ReactorPath,
    Json(body): Json<Strike>,
) -> Result<Answer<ReactorHit>, ApiError> {
    let hit = app.reactors.hit(tenant, id, CharacterId(body.character_id), body.skill_id).await?;
    let (triggered, destroyed, from, cooldown) = match hit.outcome {
        Outcome::Advanced { from } => (false, false, Some(from), None),
        Outcome::Triggered { cooldown } => (true, true, None, cooldown),
        Outcome::Stayed { from } => (true, false, Some(from), None),
    };
    Ok(Answer(ReactorHit {
        character_id: hit.character.0,
        skill_id: hit.skill,
        reactor: hit.reactor,
        triggered,
        destroyed,
        from,
        cooldown_ms: cooldown.and_then(ceil_ms),
    }))
}

/// A reactor that was destroyed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReactorDestroyed {
    /// The reactor as it was last.
    reactor: Reactor,
    /// The cooldown of its spot; `null` if none started.
    cooldown_ms: Option<u64>,
}

/// Destroys a reactor and starts the cooldown of its spot. One caller gets the reactor, all others 404.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/reactors/{reactor}", tag = "reactors",
    params(ReactorPath),
    responses((status = 200, description = "The destroyed reactor", body = ReactorDestroyed), NotFound))]
pub(super) async fn destroy_reactor(
    State(app): State<AppState>,
    Path((tenant, id)): ReactorPath,
) -> Result<Answer<ReactorDestroyed>, ApiError> {
    let destroyed = app.reactors.destroy(tenant, id).await?;
    let cooldown_ms = destroyed.cooldown.and_then(ceil_ms);
    Ok(Answer(ReactorDestroyed { reactor: destroyed.reactor, cooldown_ms }))
}
