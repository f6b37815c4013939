//! Cooldowns of monsters' skills.

use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::{Absent, Cleared, Conflict, Cooldown, ms};
use crate::routes::place::{MonsterPath, SkillPath};
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

/// How long a skill cools down.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"durationMs": 5_000}))]
pub(super) struct SkillCooldown {
    /// 1 ms to 7 days.
    #[schema(minimum = 1, maximum = 604_800_000)]
    duration_ms: u64,
}

/// Lets a skill of a living monster cool down from now on, whether or not it did before.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns/{skill}", tag = "monsters",
    params(SkillPath), responses((status = 204, description = "It cools down"), Absent, Conflict))]
pub(super) async fn start_monster_cooldown(
    State(app): State<App>,
    Path(path): Path<SkillPath>,
    Json(body): Json<SkillCooldown>,
) -> Result<StatusCode, Problem> {
    let (tenant, id, skill) = path.parts();
    app.monsters.start_cooldown(tenant, id, skill, ms(body.duration_ms)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tells whether a skill cools down, and for how long.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns/{skill}", tag = "monsters",
    params(SkillPath), responses((status = 200, description = "Whether it does", body = Cooldown), Absent))]
pub(super) async fn get_monster_cooldown(
    State(app): State<App>,
    Path(path): Path<SkillPath>,
) -> Result<Answer<Cooldown>, Problem> {
    let (tenant, id, skill) = path.parts();
    Ok(Answer(app.monsters.cooldown_remaining(tenant, id, skill).await?.into()))
}

/// Ends a skill's cooldown.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns/{skill}", tag = "monsters",
    params(SkillPath), responses((status = 200, description = "Whether there was one", body = Cleared), Absent))]
pub(super) async fn clear_monster_cooldown(
    State(app): State<App>,
    Path(path): Path<SkillPath>,
) -> Result<Answer<Cleared>, Problem> {
    let (tenant, id, skill) = path.parts();
    let cleared = usize::from(app.monsters.clear_cooldown(tenant, id, skill).await?);
    Ok(Answer(Cleared { cleared }))
}

/// Ends all known cooldowns of a monster.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/cooldowns", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "How many there were", body = Cleared), Absent))]
pub(super) async fn clear_monster_cooldowns(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<Answer<Cleared>, Problem> {
    let (tenant, id) = path.parts();
    Ok(Answer(Cleared { cleared: app.monsters.clear_cooldowns(tenant, id).await? }))
}
