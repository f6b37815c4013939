//! Monsters over HTTP.

use super::{PLAY, READ};
use crate::access::fenced;
use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use axum::extract::State;
use emberkeep_games::monsters::MonsterId;
use emberkeep_games::world::{CharacterId, Tenant};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

pub(super) fn routes(app: &App) -> OpenApiRouter<App> {
    let play = OpenApiRouter::new().routes(routes!(damage));
    let _ = READ;
    fenced(app, PLAY, play)
}

/// A hit.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Damage {
    /// Who hits.
    character_id: u32,
    /// How much, at least 1.
    #[schema(minimum = 1)]
    amount: i64,
}

/// What a hit did.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Hit {
    /// Health that it took.
    actual: u32,
    /// Health that is left.
    hp: u32,
    /// Whether this hit killed the monster. True for exactly one hit.
    killed: bool,
}

/// Hits a monster.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/monsters/{monster}/damage", tag = "monsters",
    params(("tenant" = Uuid, Path), ("monster" = u32, Path)),
    request_body = Damage,
    responses((status = 200, body = Hit), (status = 404, body = inline(crate::problem::Body)), (status = 409, body = inline(crate::problem::Body))))]
async fn damage(
    State(app): State<App>,
    Path((tenant, monster)): Path<(Uuid, u32)>,
    Json(body): Json<Damage>,
) -> Result<axum::Json<Hit>, Problem> {
    let character = CharacterId(body.character_id);
    let hit = app.monsters.damage(Tenant(tenant), MonsterId(monster), character, body.amount).await?;
    Ok(axum::Json(Hit { actual: hit.actual, hp: hit.hp, killed: hit.killed }))
}
