//! All monsters of a tenant, and of all.

use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::{Body, Problem};
use crate::routes::answers::told;
use crate::routes::place::TenantPath;
use crate::routes::sweeping::Turns;
use axum::Json as Answer;
use axum::extract::State;
use emberkeep_games::monsters;
use serde::Serialize;
use utoipa::ToSchema;

/// What a teardown removed.
#[derive(Serialize, ToSchema)]
pub(super) struct MonstersTornDown {
    /// Monsters, and records that could not be read.
    monsters: usize,
    /// Cooldowns.
    cooldowns: usize,
    /// Keys that held something else than an index, a counter or a list of ids, and were deleted with it.
    discarded: Vec<Body>,
    /// What could not be read and was left as it is.
    corrupt: Vec<Body>,
}

impl From<monsters::TeardownReport> for MonstersTornDown {
    fn from(torn: monsters::TeardownReport) -> MonstersTornDown {
        let monsters::TeardownReport { monsters, cooldowns, discarded, corrupt } = torn;
        MonstersTornDown { monsters, cooldowns, discarded: told(discarded), corrupt: told(corrupt) }
    }
}

/// Removes everything of a tenant's monsters, also what other services left. What says which ids are in use stays.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters", tag = "monsters",
    params(TenantPath), responses((status = 200, description = "What was removed", body = MonstersTornDown)))]
pub(super) async fn tear_down_monsters(
    State(app): State<App>,
    Path(path): Path<TenantPath>,
) -> Result<Answer<MonstersTornDown>, Problem> {
    Ok(Answer(app.monsters.teardown(path.tenant()).await?.into()))
}

/// Removes everything of all tenants' monsters.
#[utoipa::path(delete, path = "/v1/monsters", tag = "monsters",
    responses((status = 200, description = "What was removed", body = MonstersTornDown)))]
pub(super) async fn tear_down_all_monsters(
    State(app): State<App>,
) -> Result<Answer<MonstersTornDown>, Problem> {
    Ok(Answer(app.monsters.teardown_all().await?.into()))
}

/// What a sweep found and set right so far.
#[derive(Serialize, ToSchema)]
pub(super) struct MonstersSwept {
    /// Whether the sweep is at its end. The next call begins another one.
    over: bool,
    /// Entries of fields' indexes without a monster, removed.
    ghosts: usize,
    /// Monsters that their field's index did not know, entered.
    orphans: usize,
    /// Drop timers whose monster died or is gone, removed.
    timers: usize,
    /// Cooldowns whose monster is gone, removed.
    cooldowns: usize,
    /// Effects, timers and cooldowns of other services that were not known yet.
    hints: usize,
    /// Records that other services could not read, written anew in the present shape.
    rewritten: usize,
    /// Records that could not be read.
    corrupt: Vec<Body>,
}

impl MonstersSwept {
    fn of(swept: monsters::SweepReport, over: bool) -> MonstersSwept {
        MonstersSwept {
            over,
            ghosts: swept.ghosts,
            orphans: swept.orphans,
            timers: swept.timers,
            cooldowns: swept.cooldowns,
            hints: swept.hints,
            rewritten: swept.rewritten,
            corrupt: told(swept.corrupt),
        }
    }
}

/// Goes on with this server's sweep over all monsters, or begins one: sets right what nobody meets by himself.
#[utoipa::path(post, path = "/v1/monsters/sweep", tag = "monsters",
    responses((status = 200, description = "What was found so far", body = MonstersSwept)))]
pub(super) async fn sweep_monsters(
    State(app): State<App>,
    Json(body): Json<Turns>,
) -> Result<Answer<MonstersSwept>, Problem> {
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
