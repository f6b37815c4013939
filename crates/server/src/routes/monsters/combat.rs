//! Hits, and who moves a monster.

use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::{Absent, Conflict};
use crate::routes::place::{ControllerPath, MonsterPath};
use axum::Json as Answer;
use axum::extract::State;
use emberkeep_games::monsters;
use emberkeep_games::world::CharacterId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A hit.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"characterId": 7, "amount": 15}))]
pub(super) struct Damage {
    /// Who hits; 0 is nobody.
    character_id: u32,
    /// How much, at least 1.
    #[schema(minimum = 1)]
    amount: i64,
}

/// What a hit did.
#[derive(Serialize, ToSchema)]
pub(super) struct Hit {
    /// Health that it took.
    #[schema(example = 15)]
    actual: u32,
    /// Health that is left.
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

/// Hits a monster. More than the health that is left kills; `already_dead` for those who come later.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/damage", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "What the hit did", body = Hit), Absent, Conflict))]
pub(super) async fn damage_monster(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Damage>,
) -> Result<Answer<Hit>, Problem> {
    let (tenant, id) = path.parts();
    let hit = app.monsters.damage(tenant, id, CharacterId(body.character_id), body.amount).await?;
    Ok(Answer(hit.into()))
}

/// Hurts a monster as poison does: never takes the last point of health.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/damage-over-time", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "What it did", body = Hit), Absent, Conflict))]
pub(super) async fn damage_monster_over_time(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Damage>,
) -> Result<Answer<Hit>, Problem> {
    let (tenant, id) = path.parts();
    let character = CharacterId(body.character_id);
    Ok(Answer(app.monsters.damage_over_time(tenant, id, character, body.amount).await?.into()))
}

/// Who did most damage.
#[derive(Serialize, ToSchema)]
pub(super) struct DamageLeader {
    /// `null` if nobody hit it.
    leader: Option<Leader>,
}

/// Who, and how much.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Leader {
    /// Who.
    #[schema(example = 7)]
    character_id: u32,
    /// The sum of all hits.
    #[schema(example = 120)]
    damage: u64,
}

/// Tells who did most damage to a monster, in sum. Of equals, who hit first.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}/damage-leader", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "Who it was", body = DamageLeader), Absent))]
pub(super) async fn get_damage_leader(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<Answer<DamageLeader>, Problem> {
    let (tenant, id) = path.parts();
    let leader = app.monsters.damage_leader(tenant, id).await?;
    let leader = leader.map(|(character, damage)| Leader { character_id: character.0, damage });
    Ok(Answer(DamageLeader { leader }))
}

/// Whose client moves a monster.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"characterId": 7}))]
pub(super) struct Controller {
    /// Who; never 0, which is nobody.
    #[schema(minimum = 1)]
    character_id: u32,
}

/// Who had control before.
#[derive(Serialize, ToSchema)]
pub(super) struct FormerController {
    /// Who; 0 is nobody.
    former: u32,
}

/// Gives control of a living monster to a character.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/control", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "Who had it before", body = FormerController), Absent, Conflict))]
pub(super) async fn control_monster(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Controller>,
) -> Result<Answer<FormerController>, Problem> {
    let (tenant, id) = path.parts();
    let former = app.monsters.control(tenant, id, CharacterId(body.character_id)).await?;
    Ok(Answer(FormerController { former: former.0 }))
}

/// Whether control ended.
#[derive(Serialize, ToSchema)]
pub(super) struct Released {
    /// `false` if somebody else has control by now, and keeps it.
    released: bool,
}

/// Ends a character's control of a monster. Only the controller's own release counts.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}/control/{character}", tag = "monsters",
    params(ControllerPath), responses((status = 200, description = "Whether it ended", body = Released), Absent))]
pub(super) async fn release_monster(
    State(app): State<App>,
    Path(path): Path<ControllerPath>,
) -> Result<Answer<Released>, Problem> {
    let (tenant, id, character) = path.parts();
    Ok(Answer(Released { released: app.monsters.release_control(tenant, id, character).await? }))
}
