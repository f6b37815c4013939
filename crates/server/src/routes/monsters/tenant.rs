//! All monsters of one tenant or of all tenants: teardown and sweep.

use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{Json, Path};
use crate::routes::path::TenantPath;
use crate::routes::responses::problems;
use crate::routes::sweep::Turns;
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::monsters;
use serde::Serialize;
use utoipa::ToSchema;

/// The result of a teardown.
#[derive(Serialize, ToSchema)]
pub(super) struct MonstersTornDown {
    /// Removed monsters, including records that could not be read.
    monsters: usize,
    /// Removed cooldowns of skills.
    cooldowns: usize,
    /// Keys of a wrong type, which were deleted.
    discarded: Vec<ProblemDetails>,
    /// Records that could not be read and were left unchanged.
    corrupt: Vec<ProblemDetails>,
}

impl From<monsters::TeardownReport> for MonstersTornDown {
    fn from(torn: monsters::TeardownReport) -> MonstersTornDown {
        let monsters::TeardownReport { monsters, cooldowns, discarded, corrupt } = torn;
        MonstersTornDown { monsters, cooldowns, discarded: problems(discarded), corrupt: problems(corrupt) }
    }
}

/// Removes all monster data of a tenant, also that of external services. The allocation of ids stays.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters", tag = "monsters",
    params(TenantPath),
    responses((status = 200, description = "The number of removed records", body = MonstersTornDown)))]
pub(super) async fn tear_down_monsters(
    State(app): State<AppState>,
    Path(tenant): TenantPath,
) -> Result<Answer<MonstersTornDown>, ApiError> {
    Ok(Answer(app.monsters.teardown(tenant).await?.into()))
}

/// Removes all monster data of all tenants.
#[utoipa::path(delete, path = "/v1/monsters", tag = "monsters",
    responses((status = 200, description = "The number of removed records", body = MonstersTornDown)))]
pub(super) async fn tear_down_all_monsters(
    State(app): State<AppState>,
) -> Result<Answer<MonstersTornDown>, ApiError> {
    Ok(Answer(app.monsters.teardown_all().await?.into()))
}

/// The repairs of a sweep so far.
#[derive(Serialize, ToSchema)]
pub(super) struct MonstersSwept {
    /// Whether the sweep is complete. The next call starts another one.
    over: bool,
    /// Removed index entries without a monster.
    stale: usize,
    /// Monsters that were missing in the index of their field and were added.
    orphans: usize,
    /// Removed drop timers of dead or missing monsters.
    timers: usize,
    /// Removed cooldowns of missing monsters.
    cooldowns: usize,
    /// Effects, timers and cooldowns of external services that were added to auxiliary indexes.
    hints: usize,
    /// Records that were rewritten in the current format.
    rewritten: usize,
    /// Records that could not be read.
    corrupt: Vec<ProblemDetails>,
}

impl MonstersSwept {
    fn of(swept: monsters::SweepReport, over: bool) -> MonstersSwept {
        MonstersSwept {
            over,
            stale: swept.stale,
            orphans: swept.orphans,
            timers: swept.timers,
            cooldowns: swept.cooldowns,
            hints: swept.hints,
            rewritten: swept.rewritten,
            corrupt: problems(swept.corrupt),
        }
    }
}

/// Continues or starts this server's sweep over all monsters: repairs indexes, removes orphaned records.
#[utoipa::path(post, path = "/v1/monsters/sweep", tag = "monsters",
    request_body = Turns,
    responses((status = 200, description = "The repairs so far", body = MonstersSwept)))]
pub(super) async fn sweep_monsters(
    State(app): State<AppState>,
    Json(body): Json<Turns>,
) -> Result<Answer<MonstersSwept>, ApiError> {
    let turns = body.turns()?;
    let mut place = app.sweeps.monsters.lock().await;
    let sweep = place.get_or_insert_with(|| app.monsters.sweep());
    let mut over = false;
    for _ in 0..turns {
        over = !sweep.turn().await?;
        if over {
            break;
        }
    }
    let found = MonstersSwept::of(sweep.report(), over);
    if over {
        *place = None;
    }
    Ok(Answer(found))
}
