//! Monsters of a field: spawn, list, move, remove all.

use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{Json, Path, Query};
use crate::routes::paging::{self, PageQuery};
use crate::routes::path::{FieldPath, MonsterPath};
use crate::routes::responses::{Conflict, Created, NotFound, problems};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::monsters::{FieldDestruction, Monster, Position, SpawnRequest};
use emberkeep_games::world::Field;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A new monster. It starts with full health and mana.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"monsterId": 100_100, "maxHp": 50, "maxMp": 100, "x": -120, "y": 45}))]
pub(super) struct Spawn {
    /// The template of the monster.
    monster_id: u32,
    /// Maximum health, at least 1.
    #[schema(minimum = 1)]
    max_hp: u32,
    /// Maximum mana, with which it spawns; 0 if absent.
    #[serde(default)]
    max_mp: u32,
    /// The horizontal position in the field.
    #[serde(default)]
    x: i16,
    /// The vertical position in the field.
    #[serde(default)]
    y: i16,
    /// The foothold on which it stands.
    #[serde(default)]
    fh: i16,
    /// The posture, as the game numbers it.
    #[serde(default)]
    stance: u8,
    /// The team; -1 is none.
    #[serde(default = "no_team")]
    team: i8,
    /// Region of the tenant's client.
    #[serde(default)]
    region: String,
    /// Major version of the tenant's client.
    #[serde(default)]
    major_version: u16,
    /// Minor version of the tenant's client.
    #[serde(default)]
    minor_version: u16,
}

fn no_team() -> i8 {
    -1
}

impl Spawn {
    fn at(self, field: Field) -> SpawnRequest {
        SpawnRequest {
            field,
            template: self.monster_id,
            max_hp: self.max_hp,
            max_mp: self.max_mp,
            x: self.x,
            y: self.y,
            fh: self.fh,
            stance: self.stance,
            team: self.team,
            region: self.region,
            major_version: self.major_version,
            minor_version: self.minor_version,
        }
    }
}

/// Spawns a monster in a field.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/monsters",
    tag = "monsters",
    params(FieldPath), request_body = Spawn,
    responses((status = 201, description = "The monster", body = Monster,
        headers(("Location" = String, description = "The URL of the monster"))), Conflict))]
pub(super) async fn spawn_monster(
    State(app): State<AppState>,
    Path((tenant, field)): FieldPath,
    Json(body): Json<Spawn>,
) -> Result<Created<Monster>, ApiError> {
    let monster = app.monsters.spawn(tenant, body.at(field)).await?;
    let location = format!("/v1/tenants/{}/monsters/{}", tenant.0, monster.id);
    Ok(Created { location, body: monster })
}

/// A page of the monsters of a field.
#[derive(Serialize, ToSchema)]
pub(super) struct MonsterPage {
    /// The monsters, including dead ones that are not removed. A monster may be on two pages.
    monsters: Vec<Monster>,
    /// Records that could not be read; the others are listed.
    corrupt: Vec<ProblemDetails>,
    /// The `cursor` of the next page; `null` on the last page.
    next: Option<String>,
}

/// Lists the monsters of a field, page by page.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/monsters",
    tag = "monsters",
    params(FieldPath, PageQuery), responses((status = 200, description = "A page", body = MonsterPage)))]
pub(super) async fn list_monsters(
    State(app): State<AppState>,
    Path((tenant, field)): FieldPath,
    Query(query): Query<PageQuery>,
) -> Result<Answer<MonsterPage>, ApiError> {
    let (cursor, limit) = query.parse()?;
    let page = app.monsters.field_page(tenant, field, cursor, limit).await?;
    let (monsters, corrupt) = (page.listing.living, problems(page.listing.corrupt));
    Ok(Answer(MonsterPage { monsters, corrupt, next: paging::next(page.next) }))
}

/// The monsters that were removed from a field.
#[derive(Serialize, ToSchema)]
pub(super) struct MonstersDestroyed {
    /// The monsters that this call removed.
    removed: Vec<Monster>,
    /// Cooldowns that were removed with them.
    cooldowns: usize,
    /// Records that could not be read and were left unchanged.
    corrupt: Vec<ProblemDetails>,
    /// The error that stopped the call: call again for the rest.
    stopped: Option<ProblemDetails>,
}

impl From<FieldDestruction> for MonstersDestroyed {
    fn from(destroyed: FieldDestruction) -> MonstersDestroyed {
        MonstersDestroyed {
            removed: destroyed.monsters,
            cooldowns: destroyed.cooldowns,
            corrupt: problems(destroyed.corrupt),
            stopped: destroyed.stopped.map(|error| ApiError::from(error).into_details()),
        }
    }
}

/// Removes all monsters of a field. Each one is removed atomically.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/monsters",
    tag = "monsters",
    params(FieldPath),
    responses((status = 200, description = "The removed monsters", body = MonstersDestroyed)))]
pub(super) async fn destroy_monsters(
    State(app): State<AppState>,
    Path((tenant, field)): FieldPath,
) -> Result<Answer<MonstersDestroyed>, ApiError> {
    Ok(Answer(app.monsters.destroy_in_field(tenant, field).await?.into()))
}

/// A position in a field.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"x": -120, "y": 45, "fh": 3, "stance": 2}))]
pub(super) struct Place {
    /// The horizontal position in the field.
    x: i16,
    /// The vertical position in the field.
    y: i16,
    /// The foothold; unchanged if absent.
    fh: Option<i16>,
    /// The stance; unchanged if absent.
    stance: Option<u8>,
}

/// Moves a living monster within its field.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/position", tag = "monsters",
    params(MonsterPath),
    request_body = Place,
    responses((status = 204, description = "The monster was moved"), NotFound, Conflict))]
pub(super) async fn move_monster(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Place>,
) -> Result<StatusCode, ApiError> {
    let to = Position { x: body.x, y: body.y, fh: body.fh, stance: body.stance };
    app.monsters.move_to(tenant, id, to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A field, and a position in it.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"worldId": 0, "channelId": 1, "mapId": 100_000_001, "x": 10, "y": 20}))]
pub(super) struct Destination {
    /// The number of the world.
    world_id: u8,
    /// The channel of the world.
    channel_id: u8,
    /// The number of the map.
    map_id: u32,
    /// The instance of the map; all zeros if absent.
    #[serde(default)]
    instance: Uuid,
    /// The horizontal position in the field.
    #[serde(default)]
    x: i16,
    /// The vertical position in the field.
    #[serde(default)]
    y: i16,
    /// The foothold; unchanged if absent.
    fh: Option<i16>,
    /// The stance; unchanged if absent.
    stance: Option<u8>,
}

impl Destination {
    fn parts(&self) -> (Field, Position) {
        let field = Field {
            world: self.world_id,
            channel: self.channel_id,
            map: self.map_id,
            instance: self.instance,
        };
        (field, Position { x: self.x, y: self.y, fh: self.fh, stance: self.stance })
    }
}

/// Moves a living monster to another field, with its drop timer. It has no controller afterwards.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/field", tag = "monsters",
    params(MonsterPath),
    request_body = Destination,
    responses((status = 200, description = "The monster", body = Monster), NotFound, Conflict))]
pub(super) async fn move_monster_to_field(
    State(app): State<AppState>,
    Path((tenant, id)): MonsterPath,
    Json(body): Json<Destination>,
) -> Result<Answer<Monster>, ApiError> {
    let (field, to) = body.parts();
    Ok(Answer(app.monsters.move_to_field(tenant, id, field, to).await?))
}
