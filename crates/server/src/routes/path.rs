//! Path parameters that routes share: how they are read, and how the OpenAPI document describes them.

use crate::error::ApiError;
use crate::extract::{FromPath, Path, PathParameters};
use emberkeep_games::darkages::boards::CATEGORIES;
use emberkeep_games::darkages::history::BoardCategory;
use emberkeep_games::darkages::{EntityId, ZoneId};
use emberkeep_games::galaxy::{BodyName, JumpgateId, PlayerId, ShipId, StationId, SystemId};
use emberkeep_games::monsters::{MonsterId, SkillId};
use emberkeep_games::reactors::rules::check_classification;
use emberkeep_games::reactors::{ReactorId, Spot};
use emberkeep_games::world::{CharacterId, Field, Tenant};
use emberkeep_schema::openapi::FieldSchema;
use emberkeep_schema::{Day, Name};
use serde_json::Value;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};
use uuid::Uuid;

pub(super) type TenantPath = Path<Tenant>;
pub(super) type FieldPath = Path<(Tenant, Field)>;
pub(super) type MonsterPath = Path<(Tenant, MonsterId)>;
pub(super) type EffectPath = Path<(Tenant, MonsterId, EffectId)>;
pub(super) type SkillPath = Path<(Tenant, MonsterId, SkillId)>;
pub(super) type ControllerPath = Path<(Tenant, MonsterId, CharacterId)>;
pub(super) type ReactorPath = Path<(Tenant, ReactorId)>;
pub(super) type EntityPath = Path<EntityId>;
pub(super) type ZonePath = Path<ZoneId>;
pub(super) type ZoneMemberPath = Path<(ZoneId, EntityId)>;
pub(super) type BoardPath = Path<BoardCategory>;
pub(super) type BoardDayPath = Path<(BoardCategory, BoardDay)>;
pub(super) type BoardPlayerPath = Path<(BoardCategory, Player)>;
pub(super) type ConnectionPath = Path<Connection>;
pub(super) type RatePath = Path<(EntityId, Action)>;
pub(super) type PlayerPath = Path<Player>;
pub(super) type UsernamePath = Path<Username>;
pub(super) type EmailPath = Path<Email>;
pub(super) type AttackerPath = Path<Attacker>;
pub(super) type TargetPath = Path<Target>;
pub(super) type ShipPath = Path<ShipId>;
pub(super) type StationPath = Path<StationId>;
pub(super) type JumpgatePath = Path<JumpgateId>;
pub(super) type BodyPath = Path<BodyName>;
pub(super) type SystemPath = Path<SystemId>;
pub(super) type PilotPath = Path<PlayerId>;
pub(super) type RulePath = Path<(ShipId, RuleName)>;
pub(super) type SpotPath = Path<(Tenant, Field, Spot)>;

/// A value of a path in the OpenAPI document.
pub(super) trait DescribePath {
    fn describe(parameters: &mut Vec<Parameter>);
}

impl<T: DescribePath> IntoParams for Path<T> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        T::describe(&mut parameters);
        parameters
    }
}

fn parameter<T: FieldSchema>(name: &str, description: &str, example: impl Into<Value>) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(T::field_schema()))
        .example(Some(example.into()))
        .build()
}

fn at_least_one(mut parameter: Parameter) -> Parameter {
    if let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema {
        object.minimum = Some(utoipa::Number::Int(1));
    }
    parameter
}

macro_rules! tuples {
    ($(($($name:ident),+))+) => { $(
        impl<$($name: FromPath),+> FromPath for ($($name,)+) {
            fn from_path(parameters: &PathParameters) -> Result<Self, ApiError> {
                Ok(($($name::from_path(parameters)?,)+))
            }
        }

        impl<$($name: DescribePath),+> DescribePath for ($($name,)+) {
            fn describe(parameters: &mut Vec<Parameter>) {
                $($name::describe(parameters);)+
            }
        }
    )+ };
}

tuples! { (A, B) (A, B, C) }

/// Ids that are one parameter.
macro_rules! ids {
    ($($id:ident($inner:ty), $name:literal, $description:literal, $example:expr;)+) => { $(
        impl FromPath for $id {
            fn from_path(parameters: &PathParameters) -> Result<Self, ApiError> {
                parameters.get($name).map($id)
            }
        }

        impl DescribePath for $id {
            fn describe(parameters: &mut Vec<Parameter>) {
                parameters.push(parameter::<$inner>($name, $description, $example));
            }
        }
    )+ };
}

/// The id of a status effect.
pub(super) struct EffectId(pub(super) Uuid);

/// A player of DarkAges.
pub(super) struct Player(pub(super) i64);
/// The name of a registered player, in any case.
pub(super) struct Username(pub(super) String);
/// A player's e-mail address.
pub(super) struct Email(pub(super) String);
/// The player or creature that hits.
pub(super) struct Attacker(pub(super) i64);
/// The player or creature that is hit.
pub(super) struct Target(pub(super) i64);

/// The UTC day of a leaderboard.
pub(super) struct BoardDay(pub(super) Day);

/// A connection of a client.
pub(super) struct Connection(pub(super) Name);
/// What an entity does.
pub(super) struct Action(pub(super) Name);

/// An automation rule of a ship.
pub(super) struct RuleName(pub(super) String);

/// Words without colons and braces.
macro_rules! words {
    ($($id:ident, $name:literal, $description:literal, $example:literal;)+) => { $(
        impl FromPath for $id {
            fn from_path(parameters: &PathParameters) -> Result<Self, ApiError> {
                parameters.parse($name, |text| Name::new(text)).map($id)
            }
        }

        impl DescribePath for $id {
            fn describe(parameters: &mut Vec<Parameter>) {
                parameters.push(parameter::<Name>($name, $description, $example));
            }
        }
    )+ };
}

words! {
    Connection, "connection", "The connection, a word without `:`, `{` and `}`.", "conn-1";
    BodyName, "body", "The celestial body, a word without `:`, `{` and `}`.", "Earth";
    SystemId, "system", "The star system, a word without `:`, `{` and `}`.", "sol";
    Action, "action", "What the entity does, a word without `:`, `{` and `}`.", "attack";
}

ids! {
    Tenant(Uuid), "tenant", "The tenant.", "550e8400-e29b-41d4-a716-446655440000";
    MonsterId(u32), "monster", "The monster's id.", 1_000_000_000;
    EffectId(Uuid), "effect", "The effect's id.", "6f1e1c58-7a3b-4d0a-9d3e-2f6f3f1f2a11";
    SkillId(u16), "skill", "The skill, 0 to 65535.", 126;
    CharacterId(u32), "character", "The character.", 7;
    ReactorId(u32), "reactor", "The reactor's id.", 1_000_000_001;
    EntityId(i64), "entity", "The entity, which is a player's id unless the login named another one.", 12_345;
    ZoneId(i32), "zone", "The zone.", 42;
    Player(i64), "player", "The player.", 12_345;
    Username(String), "username", "The name, in whatever case.", "ann";
    Email(String), "email", "The e-mail address, in whatever case.", "ann@example.org";
    Attacker(i64), "attacker", "The player or creature that hits.", 12_345;
    ShipId(Uuid), "ship", "The ship.", "550e8400-e29b-41d4-a716-446655440000";
    StationId(Uuid), "station", "The station.", "770e8400-e29b-41d4-a716-446655440002";
    JumpgateId(Uuid), "jumpgate", "The jump gate.", "770e8400-e29b-41d4-a716-446655440002";
    PlayerId(Uuid), "player_id", "The player.", "660e8400-e29b-41d4-a716-446655440001";
    RuleName(String), "rule", "The rule of the ship.", "low-fuel";
    Target(i64), "target", "The player or creature that is hit.", 12_346;
}

impl FromPath for BoardCategory {
    fn from_path(parameters: &PathParameters) -> Result<BoardCategory, ApiError> {
        parameters.parse("category", |text| {
            let found = CATEGORIES.into_iter().find(|category| category.text() == text);
            found.ok_or("expected kills, damage, wins or playtime")
        })
    }
}

impl DescribePath for BoardCategory {
    fn describe(parameters: &mut Vec<Parameter>) {
        let description = "What the leaderboard counts: kills, damage, wins or playtime.";
        parameters.push(parameter::<String>("category", description, "kills"));
    }
}

impl FromPath for BoardDay {
    fn from_path(parameters: &PathParameters) -> Result<BoardDay, ApiError> {
        parameters.parse("day", |text| text.parse()).map(BoardDay)
    }
}

impl DescribePath for BoardDay {
    fn describe(parameters: &mut Vec<Parameter>) {
        parameters.push(parameter::<String>("day", "A UTC day.", "2026-01-31"));
    }
}

impl FromPath for Field {
    fn from_path(parameters: &PathParameters) -> Result<Field, ApiError> {
        Ok(Field {
            world: parameters.get("world")?,
            channel: parameters.get("channel")?,
            map: parameters.get("map")?,
            instance: parameters.get("instance")?,
        })
    }
}

impl DescribePath for Field {
    fn describe(parameters: &mut Vec<Parameter>) {
        let instance = "The instance of the map; all zeros for a map with only one.";
        parameters.extend([
            parameter::<u8>("world", "The world.", 0),
            parameter::<u8>("channel", "The channel of the world.", 1),
            parameter::<u32>("map", "The map.", 100_000_000),
            parameter::<Uuid>("instance", instance, "00000000-0000-0000-0000-000000000000"),
        ]);
    }
}

impl FromPath for Spot {
    fn from_path(parameters: &PathParameters) -> Result<Spot, ApiError> {
        let classification = parameters.get("classification")?;
        check_classification(classification)?;
        Ok(Spot { classification, x: parameters.get("x")?, y: parameters.get("y")? })
    }
}

impl DescribePath for Spot {
    fn describe(parameters: &mut Vec<Parameter>) {
        parameters.extend([
            at_least_one(parameter::<u32>("classification", "The classification of the reactor.", 2001)),
            parameter::<i16>("x", "Position.", -315),
            parameter::<i16>("y", "Position.", 88),
        ]);
    }
}
