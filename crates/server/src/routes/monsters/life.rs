//! A monster itself: reading it, its end, its health and mana.

use super::shape;
use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::{Absent, Conflict};
use crate::routes::place::MonsterPath;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::monsters::{Error, Monster};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Reads a monster; dead ones that were not removed are there too.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/monsters/{monster}", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The monster", body = shape::Monster), Absent))]
pub(super) async fn get_monster(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<Answer<Monster>, Problem> {
    let (tenant, id) = path.parts();
    Ok(Answer(app.monsters.get(tenant, id).await?))
}

/// Removes a monster, dead or alive, with all that belongs to it. One caller gets 204, all others 404.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/monsters/{monster}", tag = "monsters",
    params(MonsterPath), responses((status = 204, description = "It is gone"), Absent))]
pub(super) async fn remove_monster(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<StatusCode, Problem> {
    let (tenant, id) = path.parts();
    if app.monsters.remove(tenant, id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Error::NotFound { id }.into())
}

/// Removes a monster, and gives it as it was at its end: who hurt it, what weighed on it.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/take", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The monster at its end", body = shape::Monster), Absent))]
pub(super) async fn take_monster(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
) -> Result<Answer<Monster>, Problem> {
    let (tenant, id) = path.parts();
    Ok(Answer(app.monsters.take(tenant, id).await?.ok_or(Error::NotFound { id })?))
}

/// How much.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"amount": 10}))]
pub(super) struct Amount {
    /// At least 1.
    #[schema(minimum = 1)]
    amount: i64,
}

/// What healing did.
#[derive(Serialize, ToSchema)]
pub(super) struct Healed {
    /// Health that it gave.
    #[schema(example = 10)]
    actual: u32,
    /// Health now.
    #[schema(example = 45)]
    hp: u32,
}

/// Heals a living monster, up to its full health.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/heal", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "What it did", body = Healed), Absent, Conflict))]
pub(super) async fn heal_monster(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Amount>,
) -> Result<Answer<Healed>, Problem> {
    let (tenant, id) = path.parts();
    let healed = app.monsters.heal(tenant, id, body.amount).await?;
    Ok(Answer(Healed { actual: healed.actual, hp: healed.hp }))
}

/// What a spell cost.
#[derive(Serialize, ToSchema)]
pub(super) struct MpUsed {
    /// Mana that it took.
    #[schema(example = 10)]
    actual: u32,
    /// Mana left.
    #[schema(example = 90)]
    mp: u32,
}

/// Takes mana of a living monster, as much as is left.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/use-mp", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "What it took", body = MpUsed), Absent, Conflict))]
pub(super) async fn use_monster_mp(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Amount>,
) -> Result<Answer<MpUsed>, Problem> {
    let (tenant, id) = path.parts();
    let used = app.monsters.use_mp(tenant, id, body.amount).await?;
    Ok(Answer(MpUsed { actual: used.actual, mp: used.mp }))
}
