//! The behaviour of a new reactor: stricter than what is read from the store.

use emberkeep_games::reactors::{Event, Offset, PerState, ReactorData, ReactorItem};
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema as _, ToSchema};

/// The behaviour of a reactor.
#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Kind {
    /// The name of the template.
    #[serde(default)]
    name: String,
    /// Top left of its area, relative to its position.
    #[serde(default)]
    tl: Corner,
    /// Bottom right of its area.
    #[serde(default)]
    br: Corner,
    /// Transitions of each state, in the order in which they are tried. The names are states, -128 to 127.
    #[serde(default)]
    #[schema(schema_with = states)]
    state_info: BTreeMap<i8, Vec<Transition>>,
    /// Timeouts of states in milliseconds. The names are states, -128 to 127.
    #[serde(default)]
    #[schema(schema_with = timeouts)]
    timeout_info: BTreeMap<i8, i32>,
}

/// An object whose names are states.
fn per_state(what: &str, each: impl Into<AdditionalProperties<Schema>>) -> Schema {
    let name = ObjectBuilder::new().schema_type(Type::String);
    let name = name.pattern(Some("^(-128|-?([0-9]|[1-9][0-9]|1[01][0-9]|12[0-7]))$"));
    let states = ObjectBuilder::new().property_names(Some(name)).additional_properties(Some(each));
    states.description(Some(what)).build().into()
}

fn states() -> Schema {
    per_state("Transitions of each state, in the order in which they are tried", <Vec<Transition>>::schema())
}

fn timeouts() -> Schema {
    per_state("Timeouts of states in milliseconds", i32::schema())
}

/// A corner of a reactor's area, relative to its position.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields)]
struct Corner {
    /// The distance to the right; negative is to the left.
    x: i16,
    /// The distance downwards; negative is upwards.
    y: i16,
}

/// A transition to another state.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Transition {
    /// The type of the event, as numbered by the game.
    #[serde(default)]
    r#type: i32,
    /// The item that must be dropped on the reactor.
    reactor_item: Option<Item>,
    /// Skills that cause it; empty means any hit.
    #[serde(default)]
    active_skills: Vec<u32>,
    /// The next state. An undefined state destroys the reactor.
    next_state: i8,
}

/// Schemas that [`Kind`] refers to and that utoipa does not collect.
pub(super) fn schemas() -> [(String, RefOr<Schema>); 1] {
    [(Item::name().into_owned(), Item::schema())]
}

/// An item that must be dropped on a reactor.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RequiredItem)]
struct Item {
    /// The number of the item.
    item_id: u32,
    /// How many of it are needed.
    quantity: u16,
}

impl From<Kind> for ReactorData {
    fn from(kind: Kind) -> ReactorData {
        let events = |transitions: Vec<Transition>| {
            transitions.into_iter().map(Event::from).collect::<Vec<_>>().into()
        };
        ReactorData {
            name: kind.name,
            top_left: kind.tl.into(),
            bottom_right: kind.br.into(),
            states: kind
                .state_info
                .into_iter()
                .map(|(state, transitions)| (state, events(transitions)))
                .collect(),
            timeouts: PerState(kind.timeout_info),
            ..ReactorData::default()
        }
    }
}

impl From<Corner> for Offset {
    fn from(Corner { x, y }: Corner) -> Offset {
        Offset { x, y, ..Offset::default() }
    }
}

impl From<Transition> for Event {
    fn from(transition: Transition) -> Event {
        let item = |Item { item_id: item, quantity }| ReactorItem { quantity, ..ReactorItem::new(item) };
        Event {
            kind: transition.r#type,
            item: transition.reactor_item.map(item),
            skills: transition.active_skills.into(),
            next: transition.next_state,
            ..Event::default()
        }
    }
}
