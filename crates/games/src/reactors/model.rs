//! The record of a reactor. JSON names and widths of numbers are those of the service that defined the
//! storage document, so that it can read what we write.

use super::per_state::PerState;
use super::timestamp::Timestamp;
use crate::world::{Field, Tenant, TenantFields};
use emberkeep_schema::{Array, part, record};
use uuid::Uuid;

part! {
    /// The id of a reactor. On one server all tenants share one counter.
    #[derive(Copy)]
    pub struct ReactorId(u32);
}

record! {
    /// A reactor, from its creation to its destruction. External services may have added fields.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct Reactor {
        /// The tenant to which it belongs.
        // The key does not contain it, so a record without it is corrupt.
        pub tenant: TenantFields => "tenant",
        /// The id of the reactor; no other living one of its tenant has it.
        #[openapi(example = 1_000_000_001)]
        pub id: ReactorId => "id",
        /// The world it is in.
        pub world: u8 => "worldId",
        /// The channel it is in.
        #[openapi(example = 1)]
        pub channel: u8 => "channelId",
        /// The map it is on.
        #[openapi(example = 100_000_000)]
        pub map: u32 => "mapId",
        /// The instance of the map.
        pub instance: Uuid => "instance",
        /// The kind of reactor, at least 1.
        #[openapi(example = 2001)]
        pub classification: u32 => "classification",
        /// The name that scripts use.
        #[openapi(example = "box")]
        pub name: String => "name" default,
        /// Its behaviour in each state.
        pub data: ReactorData => "data" default,
        /// The state it is in.
        pub state: i8 => "state" or 0,
        /// The state of its event.
        pub event_state: u8 => "eventState" or 0,
        /// Cooldown of its spot after its destruction, in milliseconds; 0 is none.
        #[openapi(example = 60_000)]
        pub delay_ms: u32 => "delay" or 0,
        /// The direction that it faces.
        pub direction: u8 => "direction" or 0,
        /// The horizontal position in the field.
        #[openapi(example = -315)]
        pub x: i16 => "x" or 0,
        /// The vertical position in the field.
        #[openapi(example = 88)]
        pub y: i16 => "y" or 0,
        /// When it changed last: RFC 3339 where Emberkeep wrote it.
        #[openapi(example = "2024-02-29T23:59:59.007Z")]
        pub update_time: Timestamp => "updateTime" default,
    }
}

impl Reactor {
    /// The field that it is in.
    pub fn field(&self) -> Field {
        Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance }
    }

    /// The spot that it occupies.
    pub fn spot(&self) -> Spot {
        Spot { classification: self.classification, x: self.x, y: self.y }
    }

    /// Whether it belongs to a tenant.
    pub fn is_of(&self, tenant: &Tenant) -> bool {
        self.tenant.id == tenant.0
    }
}

/// A classification at a position. At most one living reactor of a field occupies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The kind of reactor.
    pub classification: u32,
    /// The horizontal position in the field.
    pub x: i16,
    /// The vertical position in the field.
    pub y: i16,
}

record! {
    /// The behaviour of a reactor.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[openapi]
    pub struct ReactorData {
        /// The name of the template.
        pub name: String => "name" default,
        /// Top left of its area, relative to its position.
        pub top_left: Offset => "tl" default,
        /// Bottom right of its area.
        pub bottom_right: Offset => "br" default,
        /// Transitions of each state, in the order they are tried. The names are states, -128 to 127.
        #[openapi(example = json!({"0": [{"type": 0, "activeSkills": [], "nextState": 1}], "1": []}))]
        pub states: PerState<Array<Event>> => "stateInfo" default,
        /// Timeouts of states in milliseconds. The names are states, -128 to 127.
        #[openapi(example = json!({}))]
        pub timeouts: PerState<i32> => "timeoutInfo" default,
    }
}

record! {
    /// A point relative to a reactor.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[openapi]
    pub struct Offset {
        /// The distance to the right; negative is to the left.
        pub x: i16 => "x" or 0,
        /// The distance downwards; negative is upwards.
        pub y: i16 => "y" or 0,
    }
}

record! {
    /// A transition to another state.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[openapi]
    pub struct Event {
        /// The type of the event, as numbered by the game.
        pub kind: i32 => "type" or 0,
        /// The item that must be dropped on the reactor.
        pub item: Option<ReactorItem> => "reactorItem" optional,
        /// Skills that cause it; empty means any hit.
        pub skills: Array<u32> => "activeSkills" default,
        /// The next state. If the reactor has no such state, it triggers.
        pub next: i8 => "nextState" or 0,
    }
}

record! {
    /// An item that must be dropped on a reactor.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct ReactorItem {
        /// The number of the item.
        pub item: u32 => "itemId",
        /// How many of it are needed.
        pub quantity: u16 => "quantity" or 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Codec, Json};

    /// As a Go service of a later version writes it, after a script emptied two lists.
    const EXTERNAL: &str = concat!(
        r#"{"tenant":{"id":"550e8400-e29b-41d4-a716-446655440000","region":"GMS","majorVersion":83,"minorVersion":1},"#,
        r#""id":1000000001,"worldId":0,"channelId":1,"mapId":100000000,"#,
        r#""instance":"00000000-0000-0000-0000-000000000000","classification":2001,"name":"box","#,
        r#""data":{"name":"","tl":{"x":-20,"y":-35},"br":{"x":20,"y":0},"activateByTouch":false,"#,
        r#""stateInfo":{"0":[{"type":0,"activeSkills":{},"nextState":1}],"1":{},"#,
        r#""2":[{"type":100,"reactorItem":{"itemId":4001,"quantity":3},"activeSkills":null,"nextState":3}]},"#,
        r#""timeoutInfo":null},"state":0,"eventState":0,"delay":5000,"direction":0,"x":-315,"y":-88,"#,
        r#""updateTime":"2024-02-29T23:59:59.007123456+02:00","touches":{"7":1}}"#,
    );

    #[test]
    fn what_others_wrote_is_read_and_kept() {
        let reactor = Json::<Reactor>::decode(EXTERNAL.as_bytes()).unwrap();
        assert_eq!(reactor.spot(), Spot { classification: 2001, x: -315, y: -88 });
        assert!(reactor.data.states.get(1).unwrap().is_empty());
        assert!(reactor.data.states.get(0).unwrap()[0].skills.is_empty());
        assert_eq!(reactor.data.states.get(2).unwrap()[0].item.as_ref().unwrap().quantity, 3);
        assert_eq!(reactor.update_time.ms(), Some(1_709_243_999_007));
        let mut out = Vec::new();
        Json::<Reactor>::encode(&reactor, &mut out).unwrap();
        let written = String::from_utf8(out).unwrap();
        for kept in [
            r#""stateInfo":{"0":[{"type":0,"activeSkills":[],"nextState":1}],"1":[],"2":[{"#,
            r#""timeoutInfo":{},"activateByTouch":false}"#,
            r#""updateTime":"2024-02-29T23:59:59.007123456+02:00","touches":{"7":1}}"#,
        ] {
            assert!(written.contains(kept), "{kept} in {written}");
        }
        assert_eq!(Json::<Reactor>::decode(written.as_bytes()), Ok(reactor));
    }

    #[test]
    fn a_record_that_does_not_say_whose_it_is_is_refused() {
        let without = EXTERNAL.replacen("\"tenant\"", "\"renter\"", 1);
        let error = Json::<Reactor>::decode(without.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("missing field `tenant`"), "{error}");
    }
}
