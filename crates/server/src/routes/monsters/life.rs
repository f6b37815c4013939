//! One monster: read, remove, health and mana.

use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::MonsterPath;
use crate::routes::responses::{Conflict, NotFound};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::monsters::{Error, Monster};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Returns a monster, also a dead one that is not removed.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The monster", body = Monster), NotFound))]
pub(super) async fn get_monster(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<Answer<Monster>, ApiError> {
    Ok(Answer(app.monsters.get(tenant, id).await?))
}

/// Removes a monster, dead or alive, and everything that belongs to it. One caller gets 204, all others 404.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}", tag = "monsters",
    params(MonsterPath), responses((status = 204, description = "The monster was removed"), NotFound))]
pub(super) async fn remove_monster(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<StatusCode, ApiError> {
    if app.monsters.remove(tenant, id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Error::NotFound { id }.into())
}

/// Removes a monster and returns its last state, with its damage entries and effects.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/take", tag = "monsters",
    params(MonsterPath),
    responses((status = 200, description = "The removed monster", body = Monster), NotFound))]
pub(super) async fn take_monster(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<Answer<Monster>, ApiError> {
    Ok(Answer(app.monsters.take(tenant, id).await?.ok_or(Error::NotFound { id })?))
}

/// How much health is given, or mana is used.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"amount": 10}))]
pub(super) struct Amount {
    /// Points, at least 1.
    #[schema(minimum = 1)]
    amount: i64,
}

/// The effect of healing.
#[derive(Serialize, ToSchema)]
pub(super) struct HealResult {
    /// Health that was restored.
    #[schema(example = 10)]
    actual: u32,
    /// Health after the healing, at most the maximum.
    #[schema(example = 45)]
    hp: u32,
}

/// Heals a living monster, up to its maximum health.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/heal", tag = "monsters",
    params(MonsterPath),
    request_body = Amount,
    responses((status = 200, description = "The effect", body = HealResult), NotFound, Conflict))]
pub(super) async fn heal_monster(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Amount>,
) -> Result<Answer<HealResult>, ApiError> {
    let healed = app.monsters.heal(tenant, id, body.amount).await?;
    Ok(Answer(HealResult { actual: healed.actual, hp: healed.hp }))
}

/// The effect of using mana.
#[derive(Serialize, ToSchema)]
pub(super) struct ManaUse {
    /// Mana that was used.
    #[schema(example = 10)]
    actual: u32,
    /// Mana that is left.
    #[schema(example = 90)]
    mp: u32,
}

/// Uses mana of a living monster, at most what it has.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/use-mp", tag = "monsters",
    params(MonsterPath),
    request_body = Amount,
    responses((status = 200, description = "The effect", body = ManaUse), NotFound, Conflict))]
pub(super) async fn use_monster_mp(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Amount>,
) -> Result<Answer<ManaUse>, ApiError> {
    let used = app.monsters.use_mp(tenant, id, body.amount).await?;
    Ok(Answer(ManaUse { actual: used.actual, mp: used.mp }))
}
