//! The tables of the suite: those of an MMO, as it declares them, and two for what those leave out.

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
        by_attacker(attacker_id, day_bucket) index "idx_combat_attacker",
        by_target(target_id, day_bucket) index "idx_combat_target",
        by_zone(zone_id, day_bucket) table "ember_events_by_zone",
    ),
    writes: events,
    owner: "combat",
}

table! {
    /// Persistent player data: rows that change, with two indexes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Profile = "player_profiles" {
        /// The player.
        pub player_id: i64,
        /// The name.
        pub username: String,
        /// The address of the account.
        pub email: String,
        /// When the account was made.
        pub created_at: Timestamp,
        /// When the player was last here.
        pub last_login: Option<Timestamp>,
        /// The level.
        pub level: i32,
        /// The experience.
        pub experience: i64,
        /// Minutes played.
        pub total_playtime_minutes: i64,
        /// The class.
        pub preferred_class: Option<i8>,
        /// Settings, as the client wrote them.
        pub settings: Option<Vec<u8>>,
        /// Whether the player is banned.
        pub is_banned: bool,
        /// Why.
        pub ban_reason: Option<String>,
        /// When a ban ends.
        pub ban_expires: Option<Timestamp>,
        /// Versions of clients.
        pub client_versions: BTreeSet<String>,
        /// The last address.
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
    /// Completed play sessions: rows that change, in the order of time, with a TTL of their own time.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerSession = "player_sessions" {
        /// The player.
        pub player_id: i64,
        /// When it began.
        pub session_start: Timestamp,
        /// When it ended.
        pub session_end: Option<Timestamp>,
        /// The last zone.
        pub zone_id: i32,
        /// Kills.
        pub kills: i32,
        /// Deaths.
        pub deaths: i32,
        /// Damage dealt.
        pub damage_dealt: i64,
        /// Damage taken.
        pub damage_taken: i64,
        /// Minutes played.
        pub playtime_minutes: i32,
        /// The client.
        pub client_version: String,
        /// The server.
        pub server_instance: String,
        /// The session.
        pub session_id: Uuid,
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
        /// What is counted.
        pub category: String,
        /// The day.
        pub day: Day,
        /// The player.
        pub player_id: i64,
        /// The name when it was scored.
        pub player_name: String,
        /// The score.
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
        /// What is counted.
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
        /// The zone.
        pub zone_id: i32,
        /// The hour.
        pub hour_bucket: Timestamp,
        /// Players.
        pub avg_player_count: i32,
        /// Time of a tick, the average.
        pub avg_tick_time_ms: f32,
        /// Time of a tick, 99 of 100 are shorter.
        pub p99_tick_time_ms: Option<f32>,
        /// Packets.
        pub total_packets_sent: i64,
        /// The server.
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
        /// The name.
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
        /// A group.
        pub name: String,
        /// Orders them.
        pub id: Uuid,
        /// smallint
        pub small: i16,
        /// tinyint
        pub tiny: i8,
        /// int
        pub int: i32,
        /// bigint
        pub big: i64,
        /// float
        pub float: f32,
        /// double
        pub double: f64,
        /// boolean
        pub truth: bool,
        /// blob
        pub bytes: Vec<u8>,
        /// inet
        pub address: IpAddr,
        /// set<text>
        pub texts: BTreeSet<String>,
        /// list of tuples
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
            /// Kills.
            total_kills,
            /// Deaths.
            total_deaths,
            /// Assists.
            total_assists,
            /// Damage dealt.
            total_damage_dealt,
            /// Damage taken.
            total_damage_taken,
            /// Damage blocked.
            total_damage_blocked,
            /// Healing done.
            total_healing_done,
            /// Recorded in milliseconds.
            total_playtime_minutes per 60_000,
            /// Matches.
            total_matches,
            /// Wins.
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
