//! What a reactor does, as a request says it: stricter than what is read from the store.

use emberkeep_games::reactors::{Event, PerState, Point, ReactorData, ReactorItem};
use emberkeep_schema::Extra;
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema as _, ToSchema};

/// What a kind of reactor does.
#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Kind {
    /// The kind's name.
    #[serde(default)]
    name: String,
    /// Top left of the area in which it can be reached, as seen from where it stands.
    #[serde(default)]
    tl: Corner,
    /// Bottom right of that area.
    #[serde(default)]
    br: Corner,
    /// What may happen in each state, what is tried first first. The names are states, -128 to 127.
    #[serde(default)]
    #[schema(schema_with = states)]
    state_info: BTreeMap<i8, Vec<Transaction>>,
    /// Milliseconds after which a state ends by itself. The names are states, -128 to 127.
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
    per_state("What may happen in each state, what is tried first first", <Vec<Transaction>>::schema())
}

fn timeouts() -> Schema {
    per_state("Milliseconds after which a state ends by itself", i32::schema())
}

/// A place.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields)]
struct Corner {
    /// To the right.
    x: i16,
    /// Down.
    y: i16,
}

/// What leads from a state to another.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Transaction {
    /// What kind of event; the game's own numbers.
    #[serde(default)]
    r#type: i32,
    /// What has to be dropped for it.
    reactor_item: Option<Item>,
    /// Skills that cause it; none means that any hit does.
    #[serde(default)]
    active_skills: Vec<u32>,
    /// The state that it leads to. One that the reactor does not have ends it.
    next_state: i8,
}

/// Schemas that [`Kind`]'s own refers to, and that nothing else would put into the document.
pub(super) fn schemas() -> [(String, RefOr<Schema>); 1] {
    [(Item::name().into_owned(), Item::schema())]
}

/// What has to be dropped on a reactor.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RequiredItem)]
struct Item {
    /// Which item.
    item_id: u32,
    /// How many.
    quantity: u16,
}

impl From<Kind> for ReactorData {
    fn from(kind: Kind) -> ReactorData {
        let events = |transactions: Vec<Transaction>| {
            transactions.into_iter().map(Event::from).collect::<Vec<_>>().into()
        };
        ReactorData {
            name: kind.name,
            top_left: kind.tl.into(),
            bottom_right: kind.br.into(),
            states: kind
                .state_info
                .into_iter()
                .map(|(state, transactions)| (state, events(transactions)))
                .collect(),
            timeouts: PerState(kind.timeout_info),
            extra: Extra::default(),
        }
    }
}

impl From<Corner> for Point {
    fn from(Corner { x, y }: Corner) -> Point {
        Point { x, y, extra: Extra::default() }
    }
}

impl From<Transaction> for Event {
    fn from(transaction: Transaction) -> Event {
        let item = |Item { item_id: item, quantity }| ReactorItem { item, quantity, extra: Extra::default() };
        Event {
            kind: transaction.r#type,
            item: transaction.reactor_item.map(item),
            skills: transaction.active_skills.into(),
            next: transaction.next_state,
            extra: Extra::default(),
        }
    }
}
