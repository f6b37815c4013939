//! Drop timers of friendly monsters.

use super::effects::DueRequest;
use super::shape;
use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::{Body, Problem};
use crate::routes::answers::{Absent, Conflict, ms, told};
use crate::routes::place::{MonsterPath, TenantPath};
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::monsters::{self, DropTimer, DropTimerRequest, Error};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a monster drops by.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"dropPeriodMs": 15_000, "weaponAttack": 30}))]
pub(super) struct TimerRequest {
    /// Time between two drops: 1 ms to 7 days.
    #[schema(minimum = 1, maximum = 604_800_000)]
    drop_period_ms: u64,
    /// Its attack, which decides about what it drops.
    #[serde(default)]
    weapon_attack: u32,
}

/// Lets a living monster drop something every now and then, from now on. An earlier timer is replaced.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The timer", body = shape::DropTimer), Absent, Conflict))]
pub(super) async fn register_drop_timer(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<TimerRequest>,
) -> Result<Answer<DropTimer>, Problem> {
    let (tenant, id) = path.parts();
    let request = DropTimerRequest { period: ms(body.drop_period_ms), weapon_attack: body.weapon_attack };
    Ok(Answer(app.monsters.register_drop_timer(tenant, id, request).await?))
}

/// Reads a monster's drop timer.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The timer", body = shape::DropTimer), Absent))]
pub(super) async fn get_drop_timer(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<Answer<DropTimer>, Problem> {
    let (tenant, id) = path.parts();
    Ok(Answer(app.monsters.drop_timer(tenant, id).await?.ok_or(Error::NoDropTimer { id })?))
}

/// Ends a monster's drop timer, also one whose monster is gone.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer", tag = "monsters",
    params(MonsterPath), responses((status = 204, description = "It ended"), Absent))]
pub(super) async fn unregister_drop_timer(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<StatusCode, Problem> {
    let (tenant, id) = path.parts();
    if app.monsters.unregister_drop_timer(tenant, id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Error::NoDropTimer { id }.into())
}

/// Notes that a monster was hit, which puts its next drop off to a period from now.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/drop-timer/hit", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The timer", body = shape::DropTimer), Absent))]
pub(super) async fn record_drop_hit(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<Answer<DropTimer>, Problem> {
    let (tenant, id) = path.parts();
    Ok(Answer(app.monsters.record_drop_hit(tenant, id).await?))
}

/// A drop, handed to one caller.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Drop {
    /// The monster.
    #[schema(example = 1_000_000_000)]
    unique_id: u32,
    /// Its timer, which runs for the next drop already.
    #[schema(value_type = shape::DropTimer)]
    timer: DropTimer,
}

impl From<monsters::DropDue> for Drop {
    fn from(due: monsters::DropDue) -> Drop {
        Drop { unique_id: due.id.0, timer: due.timer }
    }
}

/// Drops that came due.
#[derive(Serialize, ToSchema)]
pub(super) struct DueDrops {
    /// The drops, the longest overdue first. Nobody else gets them.
    done: Vec<Drop>,
    /// Records that could not be read.
    corrupt: Vec<Body>,
    /// What kept the call from going on: call again for the rest.
    stopped: Option<Body>,
}

/// Hands out the drops of a tenant whose time has come, each to one caller.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/due-drops", tag = "monsters",
    params(TenantPath), responses((status = 200, description = "The drops", body = DueDrops)))]
pub(super) async fn run_due_drops(
    State(app): State<App>,
    Path(path): Path<TenantPath>,
    Json(body): Json<DueRequest>,
) -> Result<Answer<DueDrops>, Problem> {
    let due = app.monsters.due_drops(path.tenant(), body.limit()?).await?;
    Ok(Answer(DueDrops {
        done: due.done.into_iter().map(Drop::from).collect(),
        corrupt: told(due.corrupt),
        stopped: due.stopped.map(|error| Problem::from(error).into_body()),
    }))
}
