//! Monsters of a field: spawning, listing, moving, ending all.

use super::shape;
use crate::app::App;
use crate::extract::{Json, Path, Query};
use crate::problem::{Body, Problem};
use crate::routes::answers::{Absent, Conflict, Created, told};
use crate::routes::paging::{self, PageQuery};
use crate::routes::place::{FieldPath, MonsterPath};
use axum::Json as Answer;
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
    /// What kind of monster.
    monster_id: u32,
    /// Full health, at least 1.
    #[schema(minimum = 1)]
    max_hp: u32,
    /// Full mana.
    #[serde(default)]
    max_mp: u32,
    /// Where in the field.
    #[serde(default)]
    x: i16,
    /// Where in the field.
    #[serde(default)]
    y: i16,
    /// On which foothold.
    #[serde(default)]
    fh: i16,
    /// How it stands.
    #[serde(default)]
    stance: u8,
    /// Its team; -1 is none.
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

/// Brings a monster into a field.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/monsters", tag = "monsters",
    params(FieldPath), responses((status = 201, description = "The monster", body = shape::Monster,
        headers(("Location" = String, description = "Where it is read"))), Conflict))]
pub(super) async fn spawn_monster(
    State(app): State<App>,
    Path(path): Path<FieldPath>,
    Json(body): Json<Spawn>,
) -> Result<Created<Monster>, Problem> {
    let tenant = path.tenant();
    let monster = app.monsters.spawn(tenant, body.at(path.field())).await?;
    let location = format!("/v1/tenants/{}/monsters/{}", tenant.0, monster.id);
    Ok(Created { location, body: monster })
}

/// Some monsters of a field.
#[derive(Serialize, ToSchema)]
pub(super) struct MonsterPage {
    /// Those that are there, dead ones that were not removed included. One may stand on two pages.
    #[schema(value_type = Vec<shape::Monster>)]
    monsters: Vec<Monster>,
    /// Records that could not be read. They do not hide the others.
    corrupt: Vec<Body>,
    /// The `cursor` of the next page; `null` at the end.
    next: Option<String>,
}

/// Lists the monsters of a field, page by page.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/monsters", tag = "monsters",
    params(FieldPath, PageQuery), responses((status = 200, description = "A page", body = MonsterPage)))]
pub(super) async fn list_monsters(
    State(app): State<App>,
    Path(path): Path<FieldPath>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<MonsterPage>, Problem> {
    let (from, limit) = query.read()?;
    let page = app.monsters.field_page(path.tenant(), path.field(), from, limit).await?;
    let (monsters, corrupt) = (page.listing.living, told(page.listing.corrupt));
    Ok(Answer(MonsterPage { monsters, corrupt, next: paging::next(page.next) }))
}

/// What became of a field's monsters.
#[derive(Serialize, ToSchema)]
pub(super) struct MonstersDestroyed {
    /// Those that this call removed, as they were at their end.
    #[schema(value_type = Vec<shape::Monster>)]
    removed: Vec<Monster>,
    /// Cooldowns that went with them.
    cooldowns: usize,
    /// Records that could not be read, and were left as they are.
    corrupt: Vec<Body>,
    /// What kept the call from going on: call again for the rest.
    stopped: Option<Body>,
}

impl From<FieldDestruction> for MonstersDestroyed {
    fn from(destroyed: FieldDestruction) -> MonstersDestroyed {
        MonstersDestroyed {
            removed: destroyed.monsters,
            cooldowns: destroyed.cooldowns,
            corrupt: told(destroyed.corrupt),
            stopped: destroyed.stopped.map(|error| Problem::from(error).into_body()),
        }
    }
}

/// Removes all monsters of a field, each one whole.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/monsters", tag = "monsters",
    params(FieldPath), responses((status = 200, description = "Those that this call removed", body = MonstersDestroyed)))]
pub(super) async fn destroy_monsters(
    State(app): State<App>,
    Path(path): Path<FieldPath>,
) -> Result<Answer<MonstersDestroyed>, Problem> {
    Ok(Answer(app.monsters.destroy_in_field(path.tenant(), path.field()).await?.into()))
}

/// Where a monster moves in its field, and how it stands there.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"x": -120, "y": 45, "fh": 3, "stance": 2}))]
pub(super) struct Place {
    /// Where.
    x: i16,
    /// Where.
    y: i16,
    /// On which foothold; without it that stays as it is.
    fh: Option<i16>,
    /// How it stands; without it that stays as it is.
    stance: Option<u8>,
}

/// Moves a living monster within its field.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/position", tag = "monsters",
    params(MonsterPath), responses((status = 204, description = "It stands there"), Absent, Conflict))]
pub(super) async fn move_monster(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Place>,
) -> Result<StatusCode, Problem> {
    let (tenant, id) = path.parts();
    let to = Position { x: body.x, y: body.y, fh: body.fh, stance: body.stance };
    app.monsters.move_to(tenant, id, to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Another field, and where in it.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"worldId": 0, "channelId": 1, "mapId": 100_000_001, "x": 10, "y": 20}))]
pub(super) struct Destination {
    /// The world.
    world_id: u8,
    /// The channel of the world.
    channel_id: u8,
    /// The map.
    map_id: u32,
    /// The instance of the map; all zeros if not given.
    #[serde(default)]
    instance: Uuid,
    /// Where in the field.
    #[serde(default)]
    x: i16,
    /// Where in the field.
    #[serde(default)]
    y: i16,
    /// On which foothold; without it that stays as it is.
    fh: Option<i16>,
    /// How it stands; without it that stays as it is.
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

/// Moves a living monster to another field, with its drop timer. Nobody controls it afterwards.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/monsters/{monster}/field", tag = "monsters",
    params(MonsterPath), responses((status = 200, description = "The monster", body = shape::Monster), Absent, Conflict))]
pub(super) async fn move_monster_to_field(
    State(app): State<App>,
    Path(path): Path<MonsterPath>,
    Json(body): Json<Destination>,
) -> Result<Answer<Monster>, Problem> {
    let ((tenant, id), (field, to)) = (path.parts(), body.parts());
    Ok(Answer(app.monsters.move_to_field(tenant, id, field, to).await?))
}
