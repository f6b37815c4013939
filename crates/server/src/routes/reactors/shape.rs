//! What is stored of reactors, for the document. The records themselves are written as they are, with all that other
//! services put beside these fields; a test compares the names.
#![expect(dead_code, reason = "only their schemas are used")]

use crate::routes::shape::TenantFields;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use uuid::Uuid;

/// A reactor, from its creation to its destruction. Other services may have written more fields.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct Reactor {
    /// Whose it is.
    tenant: TenantFields,
    /// Its id.
    #[schema(example = 1_000_000_001)]
    id: u32,
    /// The world it is in.
    world_id: u8,
    /// The channel it is in.
    #[schema(example = 1)]
    channel_id: u8,
    /// The map it is on.
    #[schema(example = 100_000_000)]
    map_id: u32,
    /// The instance of the map.
    instance: Uuid,
    /// What kind of reactor it is.
    #[schema(example = 2001)]
    classification: u32,
    /// What scripts call it.
    #[schema(example = "box")]
    name: String,
    /// What it does, state by state.
    data: ReactorData,
    /// The state it is in.
    state: i8,
    /// What its event is up to.
    event_state: u8,
    /// Milliseconds for which its spot cools down after it; 0 is not at all.
    #[schema(example = 60_000)]
    delay: u32,
    /// Which way it faces.
    direction: u8,
    /// Where it stands.
    #[schema(example = -315)]
    x: i16,
    /// Where it stands.
    #[schema(example = 88)]
    y: i16,
    /// When it changed last: RFC 3339 where Emberkeep wrote it.
    #[schema(schema_with = stamp)]
    update_time: (),
}

/// A text; what other services leave there, too.
fn stamp() -> Schema {
    let types = SchemaType::from_iter([Type::String, Type::Integer, Type::Null]);
    let stamp = ObjectBuilder::new().schema_type(types);
    stamp
        .description(Some("When it changed last: RFC 3339 where Emberkeep wrote it"))
        .examples(["2024-02-29T23:59:59.007Z"])
        .build()
        .into()
}

/// What a kind of reactor does.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ReactorData {
    /// The kind's name.
    name: String,
    /// Top left of the area in which it can be reached, as seen from where it stands.
    tl: Point,
    /// Bottom right of that area.
    br: Point,
    /// What may happen in each state, what is tried first first. The names are states, -128 to 127.
    #[schema(example = json!({"0": [{"type": 0, "activeSkills": [], "nextState": 1}], "1": []}))]
    state_info: BTreeMap<String, Vec<Event>>,
    /// Milliseconds after which a state ends by itself. The names are states, -128 to 127.
    #[schema(example = json!({}))]
    timeout_info: BTreeMap<String, i32>,
}

/// A place.
#[derive(ToSchema)]
pub(super) struct Point {
    /// To the right.
    x: i16,
    /// Down.
    y: i16,
}

/// What leads from a state to another.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct Event {
    /// What kind of event; the game's own numbers.
    r#type: i32,
    /// What has to be dropped for it.
    #[schema(nullable = false)]
    reactor_item: Option<ReactorItem>,
    /// Skills that cause it; none means that any hit does.
    active_skills: Vec<u32>,
    /// The state that it leads to.
    next_state: i8,
}

/// What has to be dropped on a reactor.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ReactorItem {
    /// Which item.
    item_id: u32,
    /// How many.
    quantity: u16,
}
