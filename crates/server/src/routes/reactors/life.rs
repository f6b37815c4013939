//! A reactor itself: its id, reading, changing, hitting and destroying it.

use super::shape;
use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::{Absent, Conflict, Created, whole_ms};
use crate::routes::place::{ReactorPath, TenantPath};
use axum::Json as Answer;
use axum::extract::State;
use emberkeep_games::reactors::{Outcome, Reactor};
use emberkeep_games::world::CharacterId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// An id that was allocated.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorNumber {
    /// The id.
    #[schema(example = 1_000_000_001)]
    id: u32,
}

/// Takes the next free id, for a reactor that is created later.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/reactor-ids", tag = "reactors",
    params(TenantPath), responses((status = 201, description = "The id", body = ReactorNumber,
        headers(("Location" = String, description = "Where its reactor will be read"))), Conflict))]
pub(super) async fn allocate_reactor_id(
    State(app): State<App>,
    Path(path): Path<TenantPath>,
) -> Result<Created<ReactorNumber>, Problem> {
    let tenant = path.tenant();
    let id = app.reactors.allocate_id(tenant).await?;
    let location = format!("/v1/tenants/{}/reactors/{id}", tenant.0);
    Ok(Created { location, body: ReactorNumber { id: id.0 } })
}

/// Reads a reactor.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/reactors/{reactor}", tag = "reactors",
    params(ReactorPath), responses((status = 200, description = "The reactor", body = shape::Reactor), Absent))]
pub(super) async fn get_reactor(
    State(app): State<App>,
    Path(path): Path<ReactorPath>,
) -> Result<Answer<Reactor>, Problem> {
    let (tenant, id) = path.parts();
    Ok(Answer(app.reactors.get(tenant, id).await?))
}

/// A change of a reactor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"seen": example("box"), "next": example("crate")}))]
pub(super) struct Change {
    /// The reactor as it was read, with every field.
    #[schema(value_type = shape::Reactor)]
    seen: Reactor,
    /// The reactor as it shall be. Id, tenant, field and spot do not change.
    #[schema(value_type = shape::Reactor)]
    next: Reactor,
}

/// A reactor of the document.
fn example(name: &str) -> Value {
    json!({"tenant": {"id": "550e8400-e29b-41d4-a716-446655440000", "region": "GMS", "majorVersion": 83,
        "minorVersion": 1}, "id": 1_000_000_001, "worldId": 0, "channelId": 1, "mapId": 100_000_000,
        "instance": "00000000-0000-0000-0000-000000000000", "classification": 2001, "name": name, "data": {},
        "state": 0, "eventState": 0, "delay": 60_000, "direction": 0, "x": -315, "y": 88, "updateTime": null})
}

/// Replaces a reactor if it is still as it was seen. Otherwise `changed`, and `details.current` is how it is.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/reactors/{reactor}", tag = "reactors",
    params(ReactorPath), responses((status = 200, description = "The reactor", body = shape::Reactor), Absent, Conflict))]
pub(super) async fn update_reactor(
    State(app): State<App>,
    Path(path): Path<ReactorPath>,
    Json(body): Json<Change>,
) -> Result<Answer<Reactor>, Problem> {
    let (tenant, id) = path.parts();
    if body.seen.id != id {
        let message = format!("`seen` is reactor {}, expected {id} as in the path", body.seen.id);
        return Err(Problem::invalid(message).with("what", "seen"));
    }
    Ok(Answer(app.reactors.update(tenant, &body.seen, body.next).await?))
}

/// A hit.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"characterId": 7, "skillId": 0}))]
pub(super) struct Strike {
    /// Who hits.
    character_id: u32,
    /// With which skill; 0 is none.
    #[serde(default)]
    skill_id: u32,
}

/// A hit that counted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReactorHit {
    /// Who hit.
    #[schema(example = 7)]
    character_id: u32,
    /// With which skill; 0 is none.
    skill_id: u32,
    /// The reactor after the hit; as it was at its end, if it triggered.
    #[schema(value_type = shape::Reactor)]
    reactor: Reactor,
    /// Whether it triggered.
    triggered: bool,
    /// Whether it is destroyed. Exactly one hit on a reactor does this.
    destroyed: bool,
    /// The state it was in, if it went on to another.
    from: Option<i8>,
    /// How long its spot cools down, if it triggered and the spot does.
    cooldown_ms: Option<u64>,
}

/// Hits a reactor: it goes on to its next state, or triggers and is destroyed.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/reactors/{reactor}/hit", tag = "reactors",
    params(ReactorPath), responses((status = 200, description = "What became of it", body = ReactorHit), Absent))]
pub(super) async fn hit_reactor(
    State(app): State<App>,
    Path(path): Path<ReactorPath>,
    Json(body): Json<Strike>,
) -> Result<Answer<ReactorHit>, Problem> {
    let (tenant, id) = path.parts();
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
        cooldown_ms: cooldown.and_then(whole_ms),
    }))
}

/// A reactor that is no more.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReactorDestroyed {
    /// As it was at its end.
    #[schema(value_type = shape::Reactor)]
    reactor: Reactor,
    /// How long its spot cools down; `null` if it does not.
    cooldown_ms: Option<u64>,
}

/// Destroys a reactor and lets its spot cool down. One caller gets it, all others 404.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/reactors/{reactor}", tag = "reactors",
    params(ReactorPath), responses((status = 200, description = "The reactor at its end", body = ReactorDestroyed), Absent))]
pub(super) async fn destroy_reactor(
    State(app): State<App>,
    Path(path): Path<ReactorPath>,
) -> Result<Answer<ReactorDestroyed>, Problem> {
    let (tenant, id) = path.parts();
    let destroyed = app.reactors.destroy(tenant, id).await?;
    let cooldown_ms = destroyed.cooldown.and_then(whole_ms);
    Ok(Answer(ReactorDestroyed { reactor: destroyed.reactor, cooldown_ms }))
}
