//! The tables of the suite: small ones for each kind of key, write, TTL and lookup, because history knows no game.
//!
//! Only the events and the totals are as wide as those of a game: benchmarks write them, too.

use super::NOW;
use crate::TotalsEntry;
use emberkeep_schema::{Day, Timestamp, table, text_enum, totals};
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
        /// The time of the key: rows are sorted by it and expire after it.
        pub timestamp: Timestamp,
        /// Its id; a replay has the same.
        pub event_id: Uuid,
        /// Found by a lookup with a secondary index.
        pub attacker_id: i64,
        /// Found by a lookup with a secondary index.
        pub target_id: i64,
        /// Health that was taken.
        pub damage: i32,
        /// A text of an enum.
        pub hit_type: HitType,
        /// A text that may be absent.
        pub ability_name: Option<String>,
        /// Found by a lookup with a query table.
        pub zone_id: i32,
        /// Position in the zone, to the east.
        pub position_x: f64,
        /// Position in the zone, upwards.
        pub position_y: f64,
        /// Position in the zone, to the north.
        pub position_z: f64,
        /// The server that computed the hit.
        pub server_instance: String,
        /// The shard of that server.
        pub shard_id: i32,
    }
    partition: (day_bucket = day(timestamp)),
    clustering: (timestamp desc, event_id asc),
    ttl: days(30) of timestamp,
    compaction: time_window(days(1)),
    slices: (minutes(1), 16),
    lookups: (
        by_attacker(attacker_id, day_bucket) index "idx_combat_attacker",
        by_target(target_id, day_bucket) index "idx_combat_target",
        by_zone(zone_id, day_bucket) table "ember_events_by_zone",
    ),
    writes: events,
    owner: "combat",
}

table! {
    /// Rows that change, with two indexes and optional columns.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Profile = "player_profiles" {
        /// The only column of the key.
        pub player_id: i64,
        /// A lookup whose rows move when it changes.
        pub username: String,
        /// The column of a second lookup.
        pub email: String,
        /// A column that an older declaration has, too.
        pub level: i32,
        /// Bytes that may be absent.
        pub settings: Option<Vec<u8>>,
        /// A time that may be absent.
        pub ban_expires: Option<Timestamp>,
        /// A set; an empty one is absent.
        pub client_versions: BTreeSet<String>,
        /// An address that may be absent.
        pub last_known_ip: Option<IpAddr>,
    }
    partition: (player_id),
    clustering: (),
    ttl: persistent,
    lookups: (
        by_username(username) index "idx_player_username",
        by_email(email) index "idx_player_email",
    ),
    writes: rows,
    owner: "accounts",
}

table! {
    /// Rows that change, in the order of time, with a TTL of their own time.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerSession = "player_sessions" {
        /// The partition: the sessions of one player.
        pub player_id: i64,
        /// When it began; the TTL counts from it.
        pub session_start: Timestamp,
        /// When it ended; absent while it lasts.
        pub session_end: Option<Timestamp>,
        /// A number that a second write changes.
        pub kills: i32,
    }
    partition: (player_id),
    clustering: (session_start desc),
    ttl: days(90) of session_start,
    compaction: leveled,
    writes: rows,
    owner: "sessions",
}

table! {
    /// The scores of a day: a projection, whose rows move when a score changes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DailyScore = "leaderboard_daily" {
        /// What is counted; one half of the partition.
        pub category: String,
        /// The other half of the partition.
        pub day: Day,
        /// The player that has the score.
        pub player_id: i64,
        /// The name when it was scored.
        pub player_name: String,
        /// A part of the key that changes: the row moves.
        pub score: i64,
    }
    partition: (category, day),
    clustering: (score desc, player_id asc),
    ttl: days(90),
    writes: versioned,
    owner: "leaderboards",
}

table! {
    /// The best of all time: a projection in one row.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AllTimeBoard = "leaderboard_alltime" {
        /// What is counted; each category is one row.
        pub category: String,
        /// Player, name and score.
        pub entries: Vec<(i64, String, i64)>,
    }
    partition: (category),
    clustering: (),
    ttl: persistent,
    writes: versioned,
    owner: "leaderboards",
}

table! {
    /// How zones did by the hour: a projection in windows of time.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ZoneMetrics = "zone_metrics" {
        /// The zone that was measured.
        pub zone_id: i32,
        /// The hour, as its first millisecond; the TTL counts from it.
        pub hour_bucket: Timestamp,
        /// Players, the average.
        pub avg_player_count: i32,
        /// Time of a tick, the average.
        pub avg_tick_time_ms: f32,
        /// Time of a tick, 99 of 100 are shorter.
        pub p99_tick_time_ms: Option<f32>,
        /// Packets sent in the hour.
        pub total_packets_sent: i64,
        /// The server that measured.
        pub server_instance: String,
    }
    partition: (zone_id),
    clustering: (hour_bucket desc),
    ttl: days(7) of hour_bucket,
    compaction: time_window(hours(1)),
    writes: versioned,
    owner: "zones",
}

table! {
    /// Names that are taken: claims with one winner.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Name = "names" {
        /// The name that is claimed once.
        pub name: String,
        /// The player that has it.
        pub player_id: i64,
        /// The token of a claim that is not confirmed.
        pub token: Option<Uuid>,
    }
    partition: (name),
    clustering: (),
    ttl: days(1),
    lookups: (by_player(player_id) index "idx_names_player"),
    writes: conditional,
    owner: "accounts",
}

table! {
    /// Rows with a column of every type, ordered by a UUID.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Sample = "samples" {
        /// A group of samples: the partition.
        pub name: String,
        /// Orders the samples of a group, as CQL orders UUIDs.
        pub id: Uuid,
        /// A column of type `smallint`.
        pub small: i16,
        /// A column of type `tinyint`.
        pub tiny: i8,
        /// A column of type `int`.
        pub int: i32,
        /// A column of type `bigint`.
        pub big: i64,
        /// A column of type `float`.
        pub float: f32,
        /// A column of type `double`.
        pub double: f64,
        /// A column of type `boolean`.
        pub truth: bool,
        /// A column of type `blob`.
        pub bytes: Vec<u8>,
        /// A column of type `inet`.
        pub address: IpAddr,
        /// A column of type `set<text>`.
        pub texts: BTreeSet<String>,
        /// A column of type list of tuples.
        pub tuples: Vec<(i64, String, f64)>,
        /// A text that may be absent.
        pub note: Option<String>,
    }
    partition: (name),
    clustering: (id asc),
    ttl: days(2),
    writes: rows,
    owner: "test",
}

totals! {
    /// Visits of a zone, ever.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Visits = "zone_visits" by "ember_visits_by_source" {
        key: zone_id: i64,
        sums: {
            /// Visits.
            visits,
        },
        owner: "test",
    }
}

totals! {
    /// What a player did, ever.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerStats = "player_stats" by "ember_stats_by_source" {
        key: player_id: i64,
        sums: {
            /// The sum that most cases use.
            total_kills,
            /// One of several sums of a row.
            total_deaths,
            /// One of several sums of a row.
            total_assists,
            /// One of several sums of a row.
            total_damage_dealt,
            /// One of several sums of a row.
            total_damage_taken,
            /// One of several sums of a row.
            total_damage_blocked,
            /// One of several sums of a row.
            total_healing_done,
            /// A sum of milliseconds that is read in whole minutes.
            total_playtime_minutes per 60_000,
            /// One of several sums of a row.
            total_matches,
            /// One of several sums of a row.
            total_wins,
        },
        owner: "combat",
    }
}

/// An event of a player and zone of its own, so many milliseconds before [`NOW`].
pub fn event(player: i64, ago_ms: i64, id: u128) -> CombatEvent {
    CombatEvent {
        timestamp: Timestamp(NOW - ago_ms),
        // Events of one key have one content, so those of another player have another id.
        event_id: Uuid::from_u128((player as u128) << 96 | id),
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

/// Kills of a player at a position of a source.
pub fn kills(position: u64, player: i64, total_kills: i64) -> TotalsEntry<PlayerStats> {
    let amounts = PlayerStats { total_kills, ..PlayerStats::default() };
    TotalsEntry { position, key: player, at: Timestamp(NOW), amounts }
}
