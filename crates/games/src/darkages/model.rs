//! What DarkAges stores in hot state.

use emberkeep_hot::command::number_after_comma;
use emberkeep_schema::{Array, Codec, ValueError, part, record};
use std::net::IpAddr;
use uuid::Uuid;

part! {
    /// A player in a zone. It is the player's id, unless a login names another.
    #[derive(Copy)]
    pub struct EntityId(i64);
}

part! {
    /// A zone. 0 is no zone.
    #[derive(Copy, Default)]
    pub struct ZoneId(i32);
}

impl ZoneId {
    /// Where a player is that has left its zone and entered no other.
    pub const NONE: ZoneId = ZoneId(0);
}

record! {
    /// A point of a zone.
    #[derive(Clone, Debug, PartialEq)]
    #[openapi]
    pub struct Point {
        /// The coordinate to the east.
        #[openapi(example = 1234.5)]
        pub x: f64 => "x",
        /// The coordinate upwards.
        #[openapi(example = 0.0)]
        pub y: f64 => "y",
        /// The coordinate to the north.
        #[openapi(example = 6789.0)]
        pub z: f64 => "z",
    }
}

impl Point {
    /// Whether all coordinates are numbers that JSON can hold.
    pub fn is_finite(&self) -> bool {
        [self.x, self.y, self.z].iter().all(|number| number.is_finite())
    }
}

record! {
    /// A player's session, as the storage document has it.
    #[derive(Clone, Debug, PartialEq)]
    #[openapi]
    pub struct Session {
        /// The player's entity, as in the key.
        pub entity_id: i64 => "entity_id",
        /// The client's own name, at most 128 bytes.
        #[openapi(example = "player_abc123")]
        pub client_id: String => "client_id",
        /// The zone; 0 = none.
        #[openapi(example = 42)]
        pub zone_id: i32 => "zone_id",
        /// When it began, in milliseconds since 1970.
        pub login_time: i64 => "login_time",
        /// The last activity, in milliseconds since 1970. The session lives for an hour after it.
        pub last_activity: i64 => "last_activity",
        /// Where the player was at login, heartbeat or a change of zone. Its position is newer.
        pub position: Point => "position",
        /// Health left; 0 = dead.
        #[openapi(example = 85)]
        pub health: i32 => "health",
        /// Full health, from 1.
        #[openapi(example = 100)]
        pub max_health: i32 => "max_health",
        /// The team; 0 = none.
        #[openapi(example = 1)]
        pub team_id: i32 => "team_id" or 0,
        /// What the player does, in the words of the game.
        #[openapi(example = "active")]
        pub status: String => "status" or "active".to_owned(),
    }
}

record! {
    /// The cached result of a spatial query.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SpatialQuery {
        /// The zone that was searched.
        pub zone: i32 => "zone",
        /// The point around which it was searched.
        pub centre: Point => "centre",
        /// How far an entity may be from the centre.
        pub radius: f64 => "radius",
        /// When the positions were read, in milliseconds since 1970.
        pub at_ms: i64 => "at_ms",
        /// The entities in reach.
        pub ids: Array<i64> => "ids",
    }
}

record! {
    /// What is known of a session besides, for the day on which it becomes a play session of history. It outlives the
    /// session, and is removed in the commit that records the play session.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Play {
        /// The id that the play session has in history.
        pub session_id: Uuid => "session_id",
        /// The player, not the entity that it plays.
        pub player_id: i64 => "player_id",
        /// The player's name, for leaderboards.
        pub player_name: String => "player_name" default,
        /// When the session began, in milliseconds since 1970.
        pub login_time: i64 => "login_time",
        /// The last known activity.
        pub last_activity: i64 => "last_activity",
        /// The zone in which the player was last; 0 = none.
        pub zone_id: i32 => "zone_id",
        /// Players killed in this session.
        pub kills: i32 => "kills" or 0,
        /// How often the player died in this session.
        pub deaths: i32 => "deaths" or 0,
        /// Health that the player took from others in this session.
        pub damage_dealt: i64 => "damage_dealt" or 0,
        /// Health that the player lost to hits in this session.
        pub damage_taken: i64 => "damage_taken" or 0,
        /// The client's version, at most 128 bytes; empty = unknown.
        pub client_version: String => "client_version" default,
        /// The server of the zone.
        pub server_instance: String => "server_instance" default,
        /// The client's address, if it is known.
        pub ip: Option<IpAddr> => "ip" optional,
        /// The number of the login or hand-off by which the player came here, if shards are partitions of their own.
        pub number: i64 => "number" or 0,
    }
}

/// A position with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// The coordinate to the east.
    pub x: f64,
    /// The coordinate upwards.
    pub y: f64,
    /// The coordinate to the north.
    pub z: f64,
    /// When the player was there, in milliseconds since 1970.
    pub at: i64,
}

impl Position {
    /// The square of the distance to a point.
    pub fn distance_squared(&self, point: &Point) -> f64 {
        (self.x - point.x).powi(2) + (self.y - point.y).powi(2) + (self.z - point.z).powi(2)
    }
}

/// A position as the document writes it: `x,y,z,timestamp`.
pub struct PositionText;

impl Codec for PositionText {
    type Value = Position;
    const TYPE: &'static str = "x,y,z,timestamp";

    fn encode(position: &Position, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let Position { x, y, z, at } = position;
        out.extend_from_slice(format!("{x:?},{y:?},{z:?},{at}").as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Position, ValueError> {
        let parse = || {
            let mut parts = std::str::from_utf8(bytes).ok()?.split(',');
            let mut number = || parts.next()?.parse().ok().filter(|number: &f64| number.is_finite());
            let (x, y, z) = (number()?, number()?, number()?);
            // The same times as those by which the store finds the newest.
            let at = number_after_comma(parts.next()?.as_bytes())?;
            parts.next().is_none().then_some(Position { x, y, z, at })
        };
        parse().ok_or(ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_position_is_written_as_in_the_document() {
        let text = b"1234.5,0.0,6789.0,1704067260000";
        let position = PositionText::decode(text).unwrap();
        assert_eq!(position, Position { x: 1234.5, y: 0.0, z: 6789.0, at: 1_704_067_260_000 });
        let mut out = Vec::new();
        PositionText::encode(&position, &mut out).unwrap();
        assert_eq!(out, text);
    }

    #[test]
    fn what_is_not_a_position_is_refused() {
        for text in [
            "",
            "1,2,3",
            "1,2,3,4,5",
            "NaN,0,0,1",
            "inf,0,0,1",
            "a,b,c,d",
            "1,2,3,4.5",
            "1, 2,3,4",
            "1,2,3,+4",
            "1,2,3,04",
        ] {
            assert!(PositionText::decode(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_finite_position_is_read_back(x in -1e300..1e300f64, y: f64, z in -1e9..1e9f64, at: i64) {
            prop_assume!(y.is_finite());
            let position = Position { x, y, z, at };
            let mut out = Vec::new();
            PositionText::encode(&position, &mut out).unwrap();
            prop_assert_eq!(PositionText::decode(&out).unwrap(), position);
        }
    }
}
