//! Status effects of monsters.

use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{Json, Path, Query};
use crate::limits::DUE_LIMIT_MAX;
use crate::routes::path::{EffectPath, MonsterPath, TenantPath};
use crate::routes::responses::{Conflict, Created, NotFound, from_ms, problems};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::monsters::limits::{STATUS_NAME_BYTES_MAX, STATUSES_MAX};
use emberkeep_games::monsters::{self, SourceType, StatusEffect};
use emberkeep_games::world::{CharacterId, FieldFields};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema as _, ToSchema};

/// A status effect to apply.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"sourceType": "PLAYER_SKILL", "sourceCharacterId": 7, "sourceSkillId": 2_101_005,
    "statuses": {"POISON": 10}, "durationMs": 60_000, "tickIntervalMs": 1_000}))]
pub(super) struct Effect {
    /// The source, such as PLAYER_SKILL, MONSTER_SKILL or GM_COMMAND: 1 to 64 bytes.
    #[schema(example = "PLAYER_SKILL", min_length = 1, max_length = 64)]
    source_type: String,
    /// The casting character; 0 is none.
    #[serde(default)]
    source_character_id: u32,
    /// The skill; at most 65535 for a MONSTER_SKILL.
    #[serde(default)]
    source_skill_id: u32,
    /// The level of the skill.
    #[serde(default)]
    source_skill_level: u32,
    /// Statuses and their values: 1 to 16 names of 1 to 64 bytes.
    #[schema(schema_with = statuses)]
    statuses: BTreeMap<String, i32>,
    /// Duration in milliseconds: 1 to 7 days.
    #[schema(minimum = 1, maximum = 604_800_000)]
    duration_ms: u64,
    /// Milliseconds between two ticks; 0 is none.
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
        .description(Some("Statuses and their values"))
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
            duration: from_ms(effect.duration_ms),
            tick_interval: from_ms(effect.tick_interval_ms),
        }
    }
}

/// An effect that was applied.
#[derive(Serialize, ToSchema)]
pub(super) struct AppliedEffect {
    /// The effect as it is stored, with its id.
    effect: StatusEffect,
    /// The effects that it replaced.
    replaced: Vec<StatusEffect>,
}

/// Applies an effect to a living monster. Replaces those of the same status, and the oldest of four venoms.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/effects", tag = "monsters",
    params(MonsterPath), request_body = Effect,
    responses((status = 201, description = "The effect", body = AppliedEffect,
        headers(("Location" = String, description = "Where it is cancelled"))), NotFound, Conflict))]
pub(super) async fn apply_effect(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Effect>,
) -> Result<Created<AppliedEffect>, ApiError> {
    let applied = app.monsters.apply_effect(tenant, id, body.into()).await?;
    let location = format!("/v1/tenants/{}/monsters/{id}/effects/{}", tenant.0, applied.effect.id);
    Ok(Created { location, body: AppliedEffect { effect: applied.effect, replaced: applied.replaced } })
}

/// Which effects to cancel.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EffectQuery {
    /// Only effects with this status; all if absent.
    #[param(example = "POISON")]
    status: Option<String>,
}

/// Effects that were cancelled.
#[derive(Serialize, ToSchema)]
pub(super) struct CancelledEffects {
    /// The effects at their end.
    cancelled: Vec<StatusEffect>,
}

/// Cancels all effects of a monster, or those with one status.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/effects", tag = "monsters",
    params(MonsterPath, EffectQuery),
    responses((status = 200, description = "The cancelled effects", body = CancelledEffects), NotFound))]
pub(super) async fn cancel_effects(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Query(which): Query<EffectQuery>,
) -> Result<Answer<CancelledEffects>, ApiError> {
    let cancelled = match which.status {
        Some(status) => app.monsters.cancel_status(tenant, id, &status).await?,
        None => app.monsters.cancel_effects(tenant, id).await?,
    };
    Ok(Answer(CancelledEffects { cancelled }))
}

/// Cancels one effect of a monster.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/effects/{effect}", tag = "monsters",
    params(EffectPath),
    responses((status = 200, description = "The cancelled effect", body = StatusEffect), NotFound))]
pub(super) async fn cancel_effect(
    State(app): State<AppState>,
    Path((tenant, id, effect)): EffectPath,
) -> Result<Answer<StatusEffect>, ApiError> {
    let cancelled = app.monsters.cancel_effect(tenant, id, effect.0).await?;
    let absent = || {
        let message = format!("monster {id} has no effect {}; it ended or never existed", effect.0);
        ApiError::new(StatusCode::NOT_FOUND, "no_effect", message).with("monster", id.0)
    };
    Ok(Answer(cancelled.ok_or_else(absent)?))
}

/// Due ticks and expired effects of one monster.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EffectsRun {
    /// The id of the monster.
    #[schema(example = 1_000_000_000)]
    unique_id: u32,
    /// The field of the monster.
    field: FieldFields,
    /// Health afterwards; ticks never kill.
    #[schema(example = 5)]
    hp: u32,
    /// Due ticks. No other caller gets them.
    ticks: Vec<Tick>,
    /// Effects that expired, which were removed.
    expired: Vec<StatusEffect>,
}

/// Due ticks of one effect.
#[derive(Serialize, ToSchema)]
struct Tick {
    /// The effect after the ticks.
    effect: StatusEffect,
    /// Number of ticks; more than one if no caller came in time.
    #[schema(example = 3)]
    count: u64,
    /// Health that the ticks took.
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

/// Runs the due ticks of a monster's effects. Each tick is returned to one caller.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/effects/tick", tag = "monsters",
    params(MonsterPath),
    responses((status = 200, description = "Due ticks and expired effects", body = EffectsRun), NotFound))]
pub(super) async fn tick_effects(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<Answer<EffectsRun>, ApiError> {
    Ok(Answer(app.monsters.tick_effects(tenant, id).await?.into()))
}

/// The size of a batch.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"limit": 100}))]
pub(super) struct DueRequest {
    /// The maximum number of monsters.
    #[schema(minimum = 1, maximum = 1_000)]
    limit: u16,
}

impl DueRequest {
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        let limit = usize::from(self.limit);
        if (1..=DUE_LIMIT_MAX).contains(&limit) {
            return Ok(limit);
        }
        let message = format!("a limit of {limit}, expected 1 to {DUE_LIMIT_MAX}");
        Err(ApiError::invalid(message).with("what", "limit"))
    }
}

/// The ticks and ends of effects that this call was handed.
#[derive(Serialize, ToSchema)]
pub(super) struct DueEffects {
    /// The monsters, the longest overdue first. No other caller gets them.
    done: Vec<EffectsRun>,
    /// Records that could not be read.
    corrupt: Vec<ProblemDetails>,
    /// The error that stopped the call: call again for the rest.
    stopped: Option<ProblemDetails>,
}

/// Runs the due effects of a tenant. Several processes may call it; each effect is returned to one caller.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/due-effects", tag = "monsters",
    params(TenantPath), request_body = DueRequest,
    responses((status = 200, description = "The due effects", body = DueEffects)))]
pub(super) async fn run_due_effects(
    State(app): State<AppState>,
    Path(tenant): TenantPath,
    Json(body): Json<DueRequest>,
) -> Result<Answer<DueEffects>, ApiError> {
    let due = app.monsters.run_due_effects(tenant, body.limit()?).await?;
    Ok(Answer(DueEffects {
        done: due.done.into_iter().map(EffectsRun::from).collect(),
        corrupt: problems(due.corrupt),
        stopped: due.stopped.map(|error| ApiError::from(error).into_details()),
    }))
}
