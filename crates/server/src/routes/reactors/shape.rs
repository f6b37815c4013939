//! Schemas of the stored records of reactors. A derive cannot describe types of `record!`: they have a hidden field for unknown
//! members. A test compares the field names with what is written.
#![expect(dead_code, reason = "only their schemas are used")]

use crate::routes::shape::TenantFields;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use uuid::Uuid;

/// A reactor, from its creation to its destruction. External services may have added fields.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct Reactor {
    /// The tenant.
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
    /// The classification.
    #[schema(example = 2001)]
    classification: u32,
    /// The name that scripts use.
    #[schema(example = "box")]
    name: String,
    /// Its behaviour in each state.
    data: ReactorData,
    /// The state it is in.
    state: i8,
    /// The state of its event.
    event_state: u8,
    /// Cooldown of its spot after its destruction, in milliseconds; 0 is none.
    #[schema(example = 60_000)]
    delay: u32,
    /// The direction that it faces.
    direction: u8,
    /// Position.
    #[schema(example = -315)]
    x: i16,
    /// Position.
    #[schema(example = 88)]
    y: i16,
    /// When it changed last: RFC 3339 where Emberkeep wrote it.
    #[schema(schema_with = stamp)]
    update_time: (),
}

/// External services also write numbers and `null`.
fn stamp() -> Schema {
    let types = SchemaType::from_iter([Type::String, Type::Integer, Type::Null]);
    let stamp = ObjectBuilder::new().schema_type(types);
    stamp
        .description(Some("When it changed last: RFC 3339 where Emberkeep wrote it"))
        .examples(["2024-02-29T23:59:59.007Z"])
        .build()
        .into()
}

/// The behaviour of a reactor.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ReactorData {
    /// The name of the template.
    name: String,
    /// Top left of its area, relative to its position.
    tl: Point,
    /// Bottom right of its area.
    br: Point,
    /// Transitions of each state, in the order in which they are tried. The names are states, -128 to 127.
    #[schema(example = json!({"0": [{"type": 0, "activeSkills": [], "nextState": 1}], "1": []}))]
    state_info: BTreeMap<String, Vec<Event>>,
    /// Timeouts of states in milliseconds. The names are states, -128 to 127.
    #[schema(example = json!({}))]
    timeout_info: BTreeMap<String, i32>,
}

/// A point.
#[derive(ToSchema)]
pub(super) struct Point {
    /// To the right.
    x: i16,
    /// Down.
    y: i16,
}

/// A transition to another state.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct Event {
    /// The type of the event, as numbered by the game.
    r#type: i32,
    /// The item that must be dropped on the reactor.
    #[schema(nullable = false)]
    reactor_item: Option<ReactorItem>,
    /// Skills that cause it; empty means any hit.
    active_skills: Vec<u32>,
    /// The next state.
    next_state: i8,
}

/// An item that must be dropped on a reactor.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ReactorItem {
    /// The item.
    item_id: u32,
    /// The quantity.
    quantity: u16,
}
