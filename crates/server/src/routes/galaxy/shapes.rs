//! How the OpenAPI document describes the types of Galaxy, which answers carry unchanged.

use emberkeep_games::galaxy::{
    self, AttitudeMode, Body, Clock, Fleet, Jumpgate, Maneuver, Rule, RuleMode, Ship, ShipClass, ShipState,
    Station, StructureState, TargetType,
};
use serde::Serialize;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Boolean,
    Integer,
    Number,
    Text,
    Uuid,
    /// `[x, y, z]`
    Vector,
    /// `[w, x, y, z]`
    Quaternion,
    /// One of these texts.
    Word(fn() -> Vec<&'static str>),
    Uuids,
}

/// A field of an answer: its name, what it holds, whether it can be `null`, and what it is.
type Field = (&'static str, Shape, bool, &'static str);

impl Shape {
    fn schema(self, or_null: bool, description: &str) -> RefOr<Schema> {
        let kind = |kind| match or_null {
            true => SchemaType::from_iter([kind, Type::Null]),
            false => SchemaType::Type(kind),
        };
        let plain = |one| ObjectBuilder::new().schema_type(kind(one)).description(Some(description));
        let format = |one: KnownFormat| Some(SchemaFormat::KnownFormat(one));
        match self {
            Shape::Boolean => plain(Type::Boolean).into(),
            Shape::Integer => plain(Type::Integer).format(format(KnownFormat::Int64)).into(),
            Shape::Number => plain(Type::Number).into(),
            Shape::Text => plain(Type::String).into(),
            Shape::Uuid => plain(Type::String).format(format(KnownFormat::Uuid)).into(),
            Shape::Word(words) => {
                let nothing = or_null.then_some(serde_json::Value::Null);
                let words = words().into_iter().map(serde_json::Value::from).chain(nothing);
                plain(Type::String).enum_values(Some(words.collect::<Vec<_>>())).into()
            }
            Shape::Uuids => {
                let id = ObjectBuilder::new().schema_type(Type::String).format(format(KnownFormat::Uuid));
                ArrayBuilder::new().items(id).description(Some(description)).into()
            }
            Shape::Vector => numbers(3, kind(Type::Array), description),
            Shape::Quaternion => numbers(4, kind(Type::Array), description),
        }
    }
}

fn numbers(count: usize, kind: SchemaType, description: &str) -> RefOr<Schema> {
    let item = ObjectBuilder::new().schema_type(Type::Number);
    let list = ArrayBuilder::new().schema_type(kind).items(item).description(Some(description));
    list.min_items(Some(count)).max_items(Some(count)).into()
}

/// A vector in a body.
pub(super) fn vector() -> RefOr<Schema> {
    Shape::Vector.schema(false, "`[x, y, z]`, finite numbers.")
}

/// The same where it may be absent.
pub(super) fn maybe_vector() -> RefOr<Schema> {
    Shape::Vector.schema(true, "`[x, y, z]`, finite numbers.")
}

/// A quaternion in a body, where it may be absent.
pub(super) fn maybe_quaternion() -> RefOr<Schema> {
    Shape::Quaternion.schema(true, "`[w, x, y, z]`, finite numbers.")
}

macro_rules! words {
    ($($values:ident, $type:ident;)+) => { $(
        fn $values() -> Vec<&'static str> {
            $type::ALL.iter().map(|value| value.as_str()).collect()
        }
    )+ };
}

words! {
    ship_classes, ShipClass;
    attitude_modes, AttitudeMode;
    target_types, TargetType;
    rule_modes, RuleMode;
}

/// The class of a ship in a body.
pub(super) fn maybe_ship_class() -> RefOr<Schema> {
    Shape::Word(ship_classes).schema(true, "The class of the ship; `fast_frigate` if absent.")
}

/// An attitude mode in a body.
pub(super) fn attitude_mode() -> RefOr<Schema> {
    Shape::Word(attitude_modes).schema(false, "What the attitude control does; `none` if absent.")
}

/// The type of a target in a body.
pub(super) fn maybe_target_type() -> RefOr<Schema> {
    Shape::Word(target_types).schema(true, "The kind of the target.")
}

/// The mode of a rule in a body.
pub(super) fn rule_mode() -> RefOr<Schema> {
    Shape::Word(rule_modes).schema(false, "How often the rule acts; `once` if absent.")
}

/// Another mode of a rule in a body.
pub(super) fn maybe_rule_mode() -> RefOr<Schema> {
    Shape::Word(rule_modes).schema(true, "How often the rule acts.")
}

fn record(description: &str, groups: &[&[Field]]) -> RefOr<Schema> {
    let object = ObjectBuilder::new().description(Some(description));
    let fields = groups.iter().flat_map(|group| group.iter());
    let object = fields.fold(object, |object, (name, shape, or_null, what)| {
        object.property(*name, shape.schema(*or_null, what)).required(*name)
    });
    object.into()
}

/// Declares answers that are types of the game, and their schemas.
macro_rules! answers {
    ($($name:ident($real:ty), $schema:literal, $description:literal, [$($fields:expr),+];)+) => { $(
        #[doc = $description]
        #[derive(Serialize)]
        #[serde(transparent)]
        pub(super) struct $name(pub(super) $real);

        impl From<$real> for $name {
            fn from(real: $real) -> $name {
                $name(real)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                record($description, &[$($fields),+])
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($schema)
            }
        }
    )+ };
}

const MOTION: &[Field] = &[
    ("position", Shape::Vector, false, "Where it is, in metres."),
    ("velocity", Shape::Vector, false, "In metres per second."),
    ("attitude", Shape::Quaternion, false, "Where it points."),
    ("angular_velocity", Shape::Vector, false, "In radians per second."),
    ("fuel", Shape::Number, false, "Fuel left, in kg."),
    ("wheel_momentum", Shape::Vector, false, "Momentum of its reaction wheels, in newton metre seconds."),
];
const CONTROLS: &[Field] = &[
    ("rotation_input", Shape::Vector, false, "Pitch, yaw and roll, each from -1 to 1."),
    ("thrust_level", Shape::Number, false, "From 0 to 1."),
    ("attitude_hold", Shape::Boolean, false, "Whether rotation is damped."),
    ("attitude_mode", Shape::Word(attitude_modes), false, "What the attitude control does."),
    ("attitude_target", Shape::Quaternion, true, "The attitude that is aimed at."),
    ("attitude_target_id", Shape::Text, true, "What the attitude is directed at."),
    ("attitude_target_type", Shape::Word(target_types), true, "The kind of the target."),
];
const SHIP: &[Field] = &[
    ("ship_id", Shape::Uuid, false, "Its id."),
    ("player_id", Shape::Uuid, false, "Whose it is."),
    ("name", Shape::Text, false, "What players see."),
    ("ship_class", Shape::Word(ship_classes), false, "Its class."),
    ("fuel_capacity", Shape::Number, false, "The most fuel, in kg."),
    ("dry_mass", Shape::Number, false, "Mass without fuel, in kg."),
    ("system_id", Shape::Text, false, "The star system in which it is."),
    (
        "tick",
        Shape::Integer,
        true,
        "The tick of its motion: at most one ahead of the present one. `null` = another program wrote it.",
    ),
    (
        "spawn_number",
        Shape::Integer,
        false,
        "Its number among all that were spawned; 0 = another program spawned it.",
    ),
];
const OWNED: &[Field] = &[("player_id", Shape::Uuid, false, "Whose it is.")];
const PLACED: &[Field] = &[
    ("system_id", Shape::Text, false, "Its star system."),
    ("position", Shape::Vector, false, "Where it is, in metres."),
    ("velocity", Shape::Vector, false, "In metres per second."),
];
const SYSTEM: &[Field] = &[("system_id", Shape::Text, false, "Its star system.")];
const NAMED: &[Field] = &[("name", Shape::Text, false, "What players see.")];
const STRUCTURE: &[Field] = &[
    ("mass", Shape::Number, false, "In kg."),
    ("radius", Shape::Number, false, "How near others may come, in metres."),
    ("parent_body", Shape::Text, false, "The body that it belongs to."),
];
const CLOCK: &[Field] = &[
    ("tick", Shape::Integer, false, "The present tick; 0 before the first one."),
    ("time", Shape::Text, true, "Its game time in ISO 8601; `null` before a tick engine was started."),
    ("paused", Shape::Boolean, false, "Whether ticks are paused."),
    ("tick_rate", Shape::Number, false, "Ticks per second."),
    ("time_scale", Shape::Number, false, "Speed of game time."),
    ("time_sync", Shape::Boolean, false, "Whether game time is synchronized with UTC."),
    ("time_drift", Shape::Number, false, "Seconds by which game time is behind UTC."),
    ("registration_open", Shape::Boolean, false, "Whether players may register."),
];
const FLEET: &[Field] = &[
    ("ships", Shape::Uuids, false, "The player's ships, in the order of their ids."),
    ("active", Shape::Uuid, true, "The one that the player pilots; `null` if there is no ship."),
];
const RULE: &[Field] = &[
    ("rule_id", Shape::Text, false, "Its id, unique in the ship."),
    ("ship_id", Shape::Uuid, false, "The ship."),
    ("name", Shape::Text, false, "What players see."),
    ("enabled", Shape::Boolean, false, "Whether it is evaluated."),
    ("mode", Shape::Word(rule_modes), false, "How often it acts."),
    ("priority", Shape::Integer, false, "0 to 99; lower ones come first."),
    ("trigger_json", Shape::Text, false, "When it acts: JSON as it was written."),
    ("actions_json", Shape::Text, false, "What it does: JSON as it was written."),
    ("created_at", Shape::Integer, false, "When it was created, in milliseconds since 1970."),
];
const MANEUVER: &[Field] = &[
    ("ship_id", Shape::Uuid, false, "The ship."),
    ("type", Shape::Text, false, "What it is, such as `circularize`."),
    ("params_json", Shape::Text, false, "Its parameters: a JSON object as it was written."),
    ("phase", Shape::Text, false, "How far it has come, in the words of the game."),
    ("status", Shape::Text, false, "Whether it runs, in the words of the game."),
    ("created_at_tick", Shape::Integer, false, "The tick in which it was begun."),
    ("updated_at_tick", Shape::Integer, false, "The tick in which it was changed last."),
];

answers! {
    ShipAnswer(Ship), "Ship", "A ship.", [SHIP, MOTION, CONTROLS];
    BodyAnswer(Body), "CelestialBody", "A celestial body.", [NAMED, PLACED];
    StationAnswer(Station), "Station", "A station.",
        [&[("station_id", Shape::Uuid, false, "Its id.")], NAMED, PLACED, STRUCTURE];
    JumpgateAnswer(Jumpgate), "Jumpgate", "A jump gate.",
        [&[("jumpgate_id", Shape::Uuid, false, "Its id.")], NAMED, PLACED, STRUCTURE];
    ClockAnswer(Clock), "GalaxyClock", "The game as a whole, as of one moment.", [CLOCK];
    FleetAnswer(Fleet), "Fleet", "The ships of a player.", [FLEET];
    RuleAnswer(Rule), "AutomationRule", "An automation rule of a ship.", [RULE];
    ManeuverAnswer(Maneuver), "Maneuver", "The maneuver of a ship.", [MANEUVER];
    ShipStateAnswer(ShipState), "ShipState", "A ship of a tick.", [OWNED, SYSTEM, MOTION];
    PlaceAnswer(StructureState), "PlaceState", "A body, a station or a jump gate of a tick.", [PLACED];
}

impl ShipStateAnswer {
    pub(super) fn clone_of(state: &ShipState) -> ShipStateAnswer {
        ShipStateAnswer(state.clone())
    }
}

/// The text of a game time, as the document has it.
pub(super) fn time_text(time: galaxy::GameTime) -> String {
    time.to_string()
}
