//! Drop timers of friendly monsters.

use super::effects::DueRequest;
use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{Json, Path};
use crate::routes::path::{MonsterPath, TenantPath};
use crate::routes::responses::{Conflict, NotFound, from_ms, problems};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::monsters::{self, DropTimer, DropTimerRequest, Error};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When a friendly monster drops, and with which attack.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"dropPeriodMs": 15_000, "weaponAttack": 30}))]
pub(super) struct TimerRequest {
    /// Milliseconds between two drops: 1 to 7 days.
    #[schema(minimum = 1, maximum = 604_800_000)]
    drop_period_ms: u64,
    /// The monster's attack, from which the game derives the drop.
    #[serde(default)]
    weapon_attack: u32,
}

/// Starts the drop timer of a living monster. An earlier timer is replaced.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer", tag = "monsters",
    params(MonsterPath),
    request_body = TimerRequest,
    responses((status = 200, description = "The timer", body = DropTimer), NotFound, Conflict))]
pub(super) async fn register_drop_timer(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<TimerRequest>,
) -> Result<Answer<DropTimer>, ApiError> {
    let request =
        DropTimerRequest { period: from_ms(body.drop_period_ms), weapon_attack: body.weapon_attack };
    Ok(Answer(app.monsters.register_drop_timer(tenant, id, request).await?))
}

/// Returns the drop timer of a monster.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The timer", body = DropTimer), NotFound))]
pub(super) async fn get_drop_timer(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<Answer<DropTimer>, ApiError> {
    Ok(Answer(app.monsters.drop_timer(tenant, id).await?.ok_or(Error::NoDropTimer { id })?))
}

/// Removes the drop timer of a monster, also if the monster no longer exists.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer", tag = "monsters",
    params(MonsterPath), responses((status = 204, description = "The timer was removed"), NotFound))]
pub(super) async fn unregister_drop_timer(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<StatusCode, ApiError> {
    if app.monsters.unregister_drop_timer(tenant, id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Error::NoDropTimer { id }.into())
}

/// Records a hit on a monster: the next drop is one period from now.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer/hit", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The timer", body = DropTimer), NotFound))]
pub(super) async fn record_drop_hit(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<Answer<DropTimer>, ApiError> {
    Ok(Answer(app.monsters.record_drop_hit(tenant, id).await?))
}

/// A drop that is due, of one monster.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Drop {
    /// The id of the monster.
    #[schema(example = 1_000_000_000)]
    unique_id: u32,
    /// Its timer, already set to the next drop.
    timer: DropTimer,
}

impl From<monsters::DropDue> for Drop {
    fn from(due: monsters::DropDue) -> Drop {
        Drop { unique_id: due.id.0, timer: due.timer }
    }
}

/// The drops that this call was handed.
#[derive(Serialize, ToSchema)]
pub(super) struct DueDrops {
    /// The drops, the longest overdue first. No other caller gets them.
    done: Vec<Drop>,
    /// Records that could not be read.
    corrupt: Vec<ProblemDetails>,
    /// The error that stopped the call: call again for the rest.
    stopped: Option<ProblemDetails>,
}

/// Returns the due drops of a tenant. Each drop is returned to one caller.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/due-drops", tag = "monsters",
    params(TenantPath), request_body = DueRequest,
    responses((status = 200, description = "The drops", body = DueDrops)))]
pub(super) async fn run_due_drops(
    State(app): State<AppState>,
    Path(tenant): TenantPath,
    Json(body): Json<DueRequest>,
) -> Result<Answer<DueDrops>, ApiError> {
    let due = app.monsters.due_drops(tenant, body.limit()?).await?;
    Ok(Answer(DueDrops {
        done: due.done.into_iter().map(Drop::from).collect(),
        corrupt: problems(due.corrupt),
        stopped: due.stopped.map(|error| ApiError::from(error).into_details()),
    }))
}
