//! Cooldowns of monster skills.

use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{MonsterPath, SkillPath};
use crate::routes::responses::{ClearedCount, Conflict, Cooldown, NotFound, from_ms};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

/// A cooldown of a skill.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"durationMs": 5_000}))]
pub(super) struct SkillCooldown {
    /// Milliseconds: 1 to 7 days.
    #[schema(minimum = 1, maximum = 604_800_000)]
    duration_ms: u64,
}

/// Starts the cooldown of a living monster's skill. An earlier cooldown is replaced.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns/{skill}", tag = "monsters",
    params(SkillPath),
    request_body = SkillCooldown,
    responses((status = 204, description = "The cooldown has started"), NotFound, Conflict))]
pub(super) async fn start_monster_cooldown(
    State(app): State<AppState>,
    Path((tenant, id, skill)): SkillPath,
    Json(body): Json<SkillCooldown>,
) -> Result<StatusCode, ApiError> {
    app.monsters.start_cooldown(tenant, id, skill, from_ms(body.duration_ms)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the cooldown of a skill.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns/{skill}", tag = "monsters",
    params(SkillPath), responses((status = 200, description = "The cooldown", body = Cooldown), NotFound))]
pub(super) async fn get_monster_cooldown(
    State(app): State<AppState>,
    Path((tenant, id, skill)): SkillPath,
) -> Result<Answer<Cooldown>, ApiError> {
    Ok(Answer(app.monsters.cooldown_remaining(tenant, id, skill).await?.into()))
}

/// Clears the cooldown of a skill.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns/{skill}", tag = "monsters",
    params(SkillPath),
    responses((status = 200, description = "1 if the cooldown was active, otherwise 0",
        body = ClearedCount), NotFound))]
pub(super) async fn clear_monster_cooldown(
    State(app): State<AppState>,
    Path((tenant, id, skill)): SkillPath,
) -> Result<Answer<ClearedCount>, ApiError> {
    let cleared = usize::from(app.monsters.clear_cooldown(tenant, id, skill).await?);
    Ok(Answer(ClearedCount { cleared }))
}

/// Clears all known cooldowns of a monster.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns", tag = "monsters",
    params(MonsterPath),
    responses((status = 200, description = "The number of cleared cooldowns", body = ClearedCount), NotFound))]
pub(super) async fn clear_monster_cooldowns(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<Answer<ClearedCount>, ApiError> {
    Ok(Answer(ClearedCount { cleared: app.monsters.clear_cooldowns(tenant, id).await? }))
}
