//! Status effects of monsters.

use super::shape;
use crate::app::App;
use crate::extract::{Json, Path, Query};
use crate::limits::DUE_LIMIT_MAX;
use crate::problem::{Body, Problem};
use crate::routes::answers::{Absent, Conflict, Created, ms, told};
use crate::routes::place::{EffectPath, MonsterPath, TenantPath};
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::monsters::limits::{STATUS_NAME_BYTES_MAX, STATUSES_MAX};
use emberkeep_games::monsters::{self, SourceType, StatusEffect};
use emberkeep_games::world::{CharacterId, FieldFields};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema as _, ToSchema};

/// What is to weigh on a monster.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"sourceType": "PLAYER_SKILL", "sourceCharacterId": 7, "sourceSkillId": 2_101_005,
    "statuses": {"POISON": 10}, "durationMs": 60_000, "tickIntervalMs": 1_000}))]
pub(super) struct Effect {
    /// Where it comes from, in a word of the game such as PLAYER_SKILL, MONSTER_SKILL or GM_COMMAND: 1 to 64 bytes.
    #[schema(example = "PLAYER_SKILL", min_length = 1, max_length = 64)]
    source_type: String,
    /// Who casts it; 0 is nobody.
    #[serde(default)]
    source_character_id: u32,
    /// The skill; at most 65535 if it is a MONSTER_SKILL.
    #[serde(default)]
    source_skill_id: u32,
    /// The skill's level.
    #[serde(default)]
    source_skill_level: u32,
    /// What it does, by name: 1 to 16 names of 1 to 64 bytes.
    #[schema(schema_with = statuses)]
    statuses: BTreeMap<String, i32>,
    /// How long it lasts: 1 ms to 7 days.
    #[schema(minimum = 1, maximum = 604_800_000)]
    duration_ms: u64,
    /// Time between two ticks; 0 is none.
    #[serde(default)]
    #[schema(maximum = 604_800_000)]
    tick_interval_ms: u64,
}

fn statuses() -> Schema {
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(STATUS_NAME_BYTES_MAX));
    ObjectBuilder::new()
        .property_names(Some(name))
        .additional_properties(Some(i32::schema()))
        .min_properties(Some(1))
        .max_properties(Some(STATUSES_MAX))
        .description(Some("What it does, by name"))
        .build()
        .into()
}

impl From<Effect> for monsters::EffectRequest {
    fn from(effect: Effect) -> monsters::EffectRequest {
        monsters::EffectRequest {
            source: SourceType::new(effect.source_type),
            source_character: CharacterId(effect.source_character_id),
            source_skill: effect.source_skill_id,
            source_skill_level: effect.source_skill_level,
            statuses: effect.statuses,
            duration: ms(effect.duration_ms),
            tick_interval: ms(effect.tick_interval_ms),
        }
    }
}

/// An effect that weighs on a monster from now on.
#[derive(Serialize, ToSchema)]
pub(super) struct Applied {
    /// The effect.
    #[schema(value_type = shape::StatusEffect)]
    effect: StatusEffect,
    /// Those that it drove out.
    #[schema(value_type = Vec<shape::StatusEffect>)]
    replaced: Vec<StatusEffect>,
}

/// Puts an effect on a living monster. It drives out effects of the same status, and the oldest of four venoms.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/effects", tag = "monsters",
    params(MonsterPath), responses((status = 201, description = "The effect", body = Applied,
        headers(("Location" = String, description = "Where it is cancelled"))), Absent, Conflict))]
pub(super) async fn apply_effect(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Effect>,
) -> Result<Created<Applied>, Problem> {
    let (tenant, id) = path.parts();
    let applied = app.monsters.apply_effect(tenant, id, body.into()).await?;
    let location = format!("/v1/tenants/{}/monsters/{id}/effects/{}", tenant.0, applied.effect.id);
    Ok(Created { location, body: Applied { effect: applied.effect, replaced: applied.replaced } })
}

/// Which effects to take off.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only those with a status of this name; without it all.
    #[param(example = "POISON")]
    status: Option<String>,
}

/// Effects that ended.
#[derive(Serialize, ToSchema)]
pub(super) struct Cancelled {
    /// As they were.
    #[schema(value_type = Vec<shape::StatusEffect>)]
    cancelled: Vec<StatusEffect>,
}

/// Takes all effects off a monster, or all of one status.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/effects", tag = "monsters",
    params(MonsterPath, Which), responses((status = 200, description = "Those that ended", body = Cancelled), Absent))]
pub(super) async fn cancel_effects(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Query(which): Query<Which>,
) -> Result<Answer<Cancelled>, Problem> {
    let (tenant, id) = path.parts();
    let cancelled = match which.status {
        Some(status) => app.monsters.cancel_status(tenant, id, &status).await?,
        None => app.monsters.cancel_effects(tenant, id).await?,
    };
    Ok(Answer(Cancelled { cancelled }))
}

/// Takes one effect off a monster.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/effects/{effect}", tag = "monsters",
    params(EffectPath), responses((status = 200, description = "The effect as it was", body = shape::StatusEffect), Absent))]
pub(super) async fn cancel_effect(
    State(app): State<App>,
    Path(path): Path<EffectPath>,
) -> Result<Answer<StatusEffect>, Problem> {
    let (tenant, id, effect) = path.parts();
    let cancelled = app.monsters.cancel_effect(tenant, id, effect).await?;
    let absent = || {
        let message = format!("monster {id} bears no effect {effect}; it ended, or never was");
        Problem::new(StatusCode::NOT_FOUND, "no_effect", message).with("monster", id.0)
    };
    Ok(Answer(cancelled.ok_or_else(absent)?))
}

/// What time did to one monster.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EffectsRun {
    /// The monster.
    #[schema(example = 1_000_000_000)]
    unique_id: u32,
    /// Where it is.
    #[schema(value_type = crate::routes::shape::FieldFields)]
    field: FieldFields,
    /// Health left: never 0 by this.
    #[schema(example = 5)]
    hp: u32,
    /// Ticks that came due, handed to this caller only.
    ticks: Vec<Tick>,
    /// Effects that ended.
    #[schema(value_type = Vec<shape::StatusEffect>)]
    expired: Vec<StatusEffect>,
}

/// Ticks of one effect that came due together.
#[derive(Serialize, ToSchema)]
struct Tick {
    /// The effect, as it stood after them.
    #[schema(value_type = shape::StatusEffect)]
    effect: StatusEffect,
    /// How many: more than one if nobody came for a while.
    #[schema(example = 3)]
    count: u64,
    /// Health that they took.
    #[schema(example = 30)]
    damage: u32,
}

impl From<monsters::EffectsRun> for EffectsRun {
    fn from(run: monsters::EffectsRun) -> EffectsRun {
        let tick =
            |tick: monsters::Tick| Tick { effect: tick.effect, count: tick.count, damage: tick.damage };
        EffectsRun {
            unique_id: run.id.0,
            field: run.field.into(),
            hp: run.hp,
            ticks: run.ticks.into_iter().map(tick).collect(),
            expired: run.expired,
        }
    }
}

/// Runs what is due of one monster's effects. Each tick is handed to one caller.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/effects/tick", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "What time did", body = EffectsRun), Absent))]
pub(super) async fn tick_effects(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<Answer<EffectsRun>, Problem> {
    let (tenant, id) = path.parts();
    Ok(Answer(app.monsters.tick_effects(tenant, id).await?.into()))
}

/// How much of what is due.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"limit": 100}))]
pub(super) struct DueRequest {
    /// At most so many monsters.
    #[schema(minimum = 1, maximum = 1_000)]
    limit: u16,
}

impl DueRequest {
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        let limit = usize::from(self.limit);
        if (1..=DUE_LIMIT_MAX).contains(&limit) {
            return Ok(limit);
        }
        let message = format!("a limit of {limit}, expected 1 to {DUE_LIMIT_MAX}");
        Err(Problem::invalid(message).with("what", "limit"))
    }
}

/// Effects that came due.
#[derive(Serialize, ToSchema)]
pub(super) struct DueEffects {
    /// What happened, the longest overdue first. Nobody else gets it.
    done: Vec<EffectsRun>,
    /// Records that could not be read.
    corrupt: Vec<Body>,
    /// What kept the call from going on: call again for the rest.
    stopped: Option<Body>,
}

/// Runs the effects of a tenant whose time has come. Several processes may call it; none gets what another one got.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/due-effects", tag = "monsters",
    params(TenantPath), responses((status = 200, description = "What happened", body = DueEffects)))]
pub(super) async fn run_due_effects(
    State(app): State<App>,
    Path(path): Path<TenantPath>,
    Json(body): Json<DueRequest>,
) -> Result<Answer<DueEffects>, Problem> {
    let due = app.monsters.run_due_effects(path.tenant(), body.limit()?).await?;
    Ok(Answer(DueEffects {
        done: due.done.into_iter().map(EffectsRun::from).collect(),
        corrupt: told(due.corrupt),
        stopped: due.stopped.map(|error| Problem::from(error).into_body()),
    }))
}
