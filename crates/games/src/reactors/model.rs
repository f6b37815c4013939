//! What is stored of a reactor. The JSON names are those that other services read and write; the widths of the
//! numbers are those of the service that wrote the document, so that it can read whatever we write.

use super::per_state::PerState;
use super::timestamp::Timestamp;
use crate::world::{Field, Tenant, TenantFields};
use emberkeep_schema::{Array, part, record};
use uuid::Uuid;

part! {
    /// One reactor's id. On one server, tenants count with one counter, so that an id says nothing of its tenant.
    #[derive(Copy)]
    pub struct ReactorId(u32);
}

record! {
    /// A reactor, from its creation to its destruction.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Reactor {
        /// Whose it is. The key does not say it, so a record without is unreadable.
        pub tenant: TenantFields => "tenant",
        /// Its id.
        pub id: ReactorId => "id",
        /// The world it is in.
        pub world: u8 => "worldId",
        /// The channel it is in.
        pub channel: u8 => "channelId",
        /// The map it is on.
        pub map: u32 => "mapId",
        /// The instance of the map.
        pub instance: Uuid => "instance",
        /// What kind of reactor it is; never 0.
        pub classification: u32 => "classification",
        /// What scripts call it.
        pub name: String => "name" default,
        /// What it does, state by state.
        pub data: ReactorData => "data" default,
        /// The state it is in.
        pub state: i8 => "state" or 0,
        /// What its event is up to.
        pub event_state: u8 => "eventState" or 0,
        /// Milliseconds for which its spot cools down after it; 0 is not at all.
        pub delay_ms: u32 => "delay" or 0,
        /// Which way it faces.
        pub direction: u8 => "direction" or 0,
        /// Where it stands.
        pub x: i16 => "x" or 0,
        /// Where it stands.
        pub y: i16 => "y" or 0,
        /// When it changed last.
        pub update_time: Timestamp => "updateTime" default,
    }
}

impl Reactor {
    /// Where it is.
    pub fn field(&self) -> Field {
        Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance }
    }

    /// What stands where in its field.
    pub fn spot(&self) -> Spot {
        Spot { classification: self.classification, x: self.x, y: self.y }
    }

    /// Whether it is this tenant's.
    pub fn is_of(&self, tenant: &Tenant) -> bool {
        self.tenant.id == tenant.0
    }
}

/// What stands where in a field. At most one living reactor of a field has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The kind of reactor.
    pub classification: u32,
    /// Where.
    pub x: i16,
    /// Where.
    pub y: i16,
}

record! {
    /// What a kind of reactor does.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ReactorData {
        /// The kind's name.
        pub name: String => "name" default,
        /// Top left of the area in which it can be reached, as seen from where it stands.
        pub top_left: Point => "tl" default,
        /// Bottom right of that area.
        pub bottom_right: Point => "br" default,
        /// What may happen in each state, what is tried first first.
        pub states: PerState<Array<Event>> => "stateInfo" default,
        /// Milliseconds after which a state ends by itself.
        pub timeouts: PerState<i32> => "timeoutInfo" default,
    }
}

record! {
    /// A place.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Point {
        /// To the right.
        pub x: i16 => "x" or 0,
        /// Down.
        pub y: i16 => "y" or 0,
    }
}

record! {
    /// What leads from a state to another.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Event {
        /// What kind of event; the game's own numbers.
        pub kind: i32 => "type" or 0,
        /// What has to be dropped for it.
        pub item: Option<ReactorItem> => "reactorItem" optional,
        /// Skills that cause it; none means that any hit does.
        pub skills: Array<u32> => "activeSkills" default,
        /// The state that it leads to. One that the reactor does not have ends it.
        pub next: i8 => "nextState" or 0,
    }
}

record! {
    /// What has to be dropped on a reactor.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReactorItem {
        /// Which item.
        pub item: u32 => "itemId",
        /// How many.
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
        let told = Json::<Reactor>::decode(without.as_bytes()).unwrap_err().to_string();
        assert!(told.contains("missing field `tenant`"), "{told}");
    }
}
