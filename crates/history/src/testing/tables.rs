//! The tables of the suite, as a game declares them.

use super::NOW;
use emberkeep_schema::{Timestamp, table, text_enum, totals};
use std::collections::BTreeSet;
use std::net::IpAddr;
use uuid::Uuid;

text_enum! {
    /// How a hit landed.
    pub enum HitType { Normal = "normal", Critical = "critical", Blocked = "blocked", Missed = "missed" }
}

table! {
    /// All combat interactions, for analytics and replays.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CombatEvent = "combat_events" {
        /// When it happened.
        pub timestamp: Timestamp,
        /// Its id; a replay has the same.
        pub event_id: Uuid,
        /// The attacker.
        pub attacker_id: i64,
        /// The target.
        pub target_id: i64,
        /// Health taken.
        pub damage: i32,
        /// How it landed.
        pub hit_type: HitType,
        /// The ability, if one was used.
        pub ability_name: Option<String>,
        /// The zone.
        pub zone_id: i32,
        /// Position in the zone.
        pub position_x: f64,
        /// See `position_x`.
        pub position_y: f64,
        /// See `position_x`.
        pub position_z: f64,
        /// The server that computed the hit.
        pub server_instance: String,
        /// Its shard.
        pub shard_id: i32,
    }
    partition: (day_bucket = day(timestamp)),
    clustering: (timestamp desc, event_id asc),
    ttl: days(30) of timestamp,
    compaction: time_window(days(1)),
    slices: (minutes(1), 16),
    lookups: (
        by_attacker(attacker_id, day_bucket),
        by_target(target_id, day_bucket),
        by_zone(zone_id, day_bucket),
    ),
    owner: "combat",
}

table! {
    /// Persistent player data: a row that changes, of every column type.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Profile = "player_profiles" {
        /// The player.
        pub player_id: i64,
        /// The name.
        pub username: String,
        /// The level.
        pub level: i16,
        /// The class.
        pub preferred_class: i8,
        /// The skill rating.
        pub rating: f32,
        /// Settings, as the client wrote them.
        pub settings: Vec<u8>,
        /// Whether the player is banned.
        pub is_banned: bool,
        /// When a ban ends.
        pub ban_expires: Option<Timestamp>,
        /// Versions of clients.
        pub client_versions: BTreeSet<String>,
        /// The last address.
        pub last_known_ip: Option<IpAddr>,
        /// Best scores: player, name, score.
        pub best: Vec<(i64, String, i64)>,
    }
    partition: (player_id),
    clustering: (),
    ttl: persistent,
    compaction: leveled,
    lookups: (by_username(username)),
    owner: "accounts",
}

table! {
    /// Names that are taken.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Name = "names" {
        /// The name.
        pub name: String,
        /// The player that has it.
        pub player_id: i64,
    }
    partition: (name),
    clustering: (),
    ttl: days(1),
    owner: "accounts",
}

totals! {
    /// What a player did, ever.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerStats = "player_stats" by "ember_stats_by_source" {
        key: player_id: i64,
        sums: {
            /// Kills.
            total_kills,
            /// Deaths.
            total_deaths,
            /// Damage dealt.
            total_damage_dealt,
            /// Recorded in milliseconds.
            total_playtime_minutes per 60_000,
        },
        owner: "combat",
    }
}

/// An event of a player and zone of its own, so many milliseconds before [`NOW`].
pub fn event(player: i64, ago_ms: i64, id: u128) -> CombatEvent {
    CombatEvent {
        timestamp: Timestamp(NOW - ago_ms),
        event_id: Uuid::from_u128(id),
        attacker_id: player,
        target_id: player + 1_000_000,
        damage: 30,
        hit_type: HitType::Critical,
        ability_name: None,
        zone_id: player as i32,
        position_x: 1.5,
        position_y: -0.25,
        position_z: 1e300,
        server_instance: "zone-7".into(),
        shard_id: 3,
    }
}
