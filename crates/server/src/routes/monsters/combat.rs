//! Damage and control of a monster.

use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{ControllerPath, MonsterPath};
use crate::routes::responses::{Conflict, NotFound};
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::monsters;
use emberkeep_games::world::CharacterId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A hit of a character on a monster.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"characterId": 7, "amount": 15}))]
pub(super) struct Damage {
    /// The attacking character; 0 is none.
    character_id: u32,
    /// Damage, at least 1.
    #[schema(minimum = 1)]
    amount: i64,
}

/// The effect of a hit.
#[derive(Serialize, ToSchema)]
pub(super) struct Hit {
    /// Health that the hit took.
    #[schema(example = 15)]
    actual: u32,
    /// Health after the hit.
    #[schema(example = 35)]
    hp: u32,
    /// Whether this hit killed the monster. True for exactly one hit.
    killed: bool,
}

impl From<monsters::Hit> for Hit {
    fn from(hit: monsters::Hit) -> Hit {
        Hit { actual: hit.actual, hp: hit.hp, killed: hit.killed }
    }
}

/// Damages a monster. Damage of at least its health kills it; later hits get `already_dead`.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/damage", tag = "monsters",
    params(MonsterPath),
    request_body = Damage,
    responses((status = 200, description = "The effect of the hit", body = Hit), NotFound, Conflict))]
pub(super) async fn damage_monster(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Damage>,
) -> Result<Answer<Hit>, ApiError> {
    let hit = app.monsters.damage(tenant, id, CharacterId(body.character_id), body.amount).await?;
    Ok(Answer(hit.into()))
}

/// Damages a monster like poison, which never takes the last point of health.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/damage-over-time", tag = "monsters",
    params(MonsterPath),
    request_body = Damage,
    responses((status = 200, description = "The effect of the damage", body = Hit), NotFound, Conflict))]
pub(super) async fn damage_monster_over_time(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Damage>,
) -> Result<Answer<Hit>, ApiError> {
    let character = CharacterId(body.character_id);
    Ok(Answer(app.monsters.damage_over_time(tenant, id, character, body.amount).await?.into()))
}

/// The character that did most damage.
#[derive(Serialize, ToSchema)]
pub(super) struct DamageLeader {
    /// `null` if the monster was not hit.
    leader: Option<Leader>,
}

/// A character and its damage.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Leader {
    /// The character that did the damage.
    #[schema(example = 7)]
    character_id: u32,
    /// The sum of all its hits.
    #[schema(example = 120)]
    damage: u64,
}

/// Returns the character that did most damage to a monster. Of equals, the one that hit first.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}/damage-leader", tag = "monsters",
    params(MonsterPath),
    responses((status = 200, description = "The leader", body = DamageLeader), NotFound))]
pub(super) async fn get_damage_leader(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
) -> Result<Answer<DamageLeader>, ApiError> {
    let leader = app.monsters.damage_leader(tenant, id).await?;
    let leader = leader.map(|(character, damage)| Leader { character_id: character.0, damage });
    Ok(Answer(DamageLeader { leader }))
}

/// The character whose client controls a monster.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"characterId": 7}))]
pub(super) struct Controller {
    /// The character, at least 1.
    #[schema(minimum = 1)]
    character_id: u32,
}

/// The character that controlled the monster before.
#[derive(Serialize, ToSchema)]
pub(super) struct FormerController {
    /// The character; 0 is none.
    former: u32,
}

/// Gives control of a living monster to a character.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/control", tag = "monsters",
    params(MonsterPath),
    request_body = Controller,
    responses((status = 200, description = "The previous controller",
        body = FormerController), NotFound, Conflict))]
pub(super) async fn control_monster(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Controller>,
) -> Result<Answer<FormerController>, ApiError> {
    let former = app.monsters.control(tenant, id, CharacterId(body.character_id)).await?;
    Ok(Answer(FormerController { former: former.0 }))
}

/// The effect of a release.
#[derive(Serialize, ToSchema)]
pub(super) struct ControlRelease {
    /// `false` if another character controls the monster.
    released: bool,
}

/// Ends a character's control of a monster. It has no effect if another character controls the monster.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/control/{character}", tag = "monsters",
    params(ControllerPath),
    responses((status = 200, description = "Whether the control ended", body = ControlRelease), NotFound))]
pub(super) async fn release_monster(
    State(app): State<AppState>,
    Path((tenant, id, character)): ControllerPath,
) -> Result<Answer<ControlRelease>, ApiError> {
    Ok(Answer(ControlRelease { released: app.monsters.release_control(tenant, id, character).await? }))
}
