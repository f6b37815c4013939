//! The history tables of DarkAges, as its storage document has them.
//!
//! What CQL refuses is corrected: `AND ttl = n` is `default_time_to_live`; the counters of `player_stats` are totals, which
//! stay exact when an event is delivered again; the entries of `leaderboard_alltime` are one frozen cell, so that writing
//! them again does not double them, and the column's name stands in quotes, because `entries` is a reserved word. Tables that are not in the document begin with `ember_`.

use super::boards::BoardScore;
use emberkeep_history::HistorySchema;
use emberkeep_schema::{Day, Timestamp, table, text_enum, totals};
use std::collections::BTreeSet;
use std::net::IpAddr;
use uuid::Uuid;

text_enum! {
    /// How a hit landed.
    pub enum HitType { Normal = "normal", Critical = "critical", Blocked = "blocked", Missed = "missed" }
}

text_enum! {
    /// What an audit entry is about.
    pub enum AuditEvent {
        Login = "login", Logout = "logout", Kick = "kick", Ban = "ban", Suspicious = "suspicious",
    }
}

text_enum! {
    /// How serious an audit entry is.
    pub enum Severity { Info = "info", Warning = "warning", Critical = "critical" }
}

text_enum! {
    /// What a leaderboard counts.
    pub enum BoardCategory { Kills = "kills", Damage = "damage", Wins = "wins", Playtime = "playtime" }
}

table! {
    /// All combat interactions, for analytics and replays.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CombatEvent = "combat_events" {
        /// When the hit landed, by the clock of the server that computed it.
        pub timestamp: Timestamp,
        /// UUID of version 7. A replay of the hit has the same, so it overwrites itself.
        pub event_id: Uuid,
        /// Player id of the attacker, or the id of a creature of the game.
        pub attacker_id: i64,
        /// Player id of the target, or the id of a creature of the game.
        pub target_id: i64,
        /// Health that the hit took: never more than the target had. 0 if it missed.
        pub damage: i32,
        /// How it landed: normal, critical, blocked or missed.
        pub hit_type: HitType,
        /// The ability that was used; absent for a plain attack.
        pub ability_name: Option<String>,
        /// Zone of the target.
        pub zone_id: i32,
        /// Position of the target: to the east.
        pub position_x: f64,
        /// Position of the target: up.
        pub position_y: f64,
        /// Position of the target: to the north.
        pub position_z: f64,
        /// The server that computed the hit.
        pub server_instance: String,
        /// Shard of that server.
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
    /// The kill feed: hits that killed.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Kill = "ember_kills" {
        /// When the last hit landed.
        pub timestamp: Timestamp,
        /// The id of the combat event that killed.
        pub event_id: Uuid,
        /// Player id of the killer, or the id of a creature of the game.
        pub attacker_id: i64,
        /// Player id of the player who died.
        pub target_id: i64,
        /// Health taken by the last hit.
        pub damage: i32,
        /// The ability of the last hit; absent for a plain attack.
        pub ability_name: Option<String>,
        /// Zone in which the target died.
        pub zone_id: i32,
        /// The server that computed the hit.
        pub server_instance: String,
    }
    partition: (day_bucket = day(timestamp)),
    clustering: (timestamp desc, event_id asc),
    ttl: days(30) of timestamp,
    compaction: time_window(days(1)),
    slices: (hours(1), 4),
    writes: events,
    owner: "combat",
}

totals! {
    /// What a player did, ever.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerStats = "player_stats" by "ember_stats_by_source" {
        key: player_id: i64,
        sums: {
            /// Players that the player killed.
            total_kills,
            /// How often the player died.
            total_deaths,
            /// Kills by others that the player helped with.
            total_assists,
            /// Health taken from others.
            total_damage_dealt,
            /// Health lost to hits.
            total_damage_taken,
            /// Health that blocking saved.
            total_damage_blocked,
            /// Health given to players.
            total_healing_done,
            /// Recorded in milliseconds, read in whole minutes.
            total_playtime_minutes per 60_000,
            /// Matches that the player took part in.
            total_matches,
            /// Matches that the player won.
            total_wins,
        },
        owner: "combat",
    }
}

table! {
    /// Completed play sessions: one row from login to logout or expiry.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerSession = "player_sessions" {
        /// The player, not the entity that it played.
        pub player_id: i64,
        /// When it began. No two sessions of a player begin in the same millisecond.
        pub session_start: Timestamp,
        /// When it ended: the logout, or the last known activity of a session that expired.
        pub session_end: Timestamp,
        /// The zone in which it ended; 0 = none.
        pub zone_id: i32,
        /// Players that the player killed.
        pub kills: i32,
        /// How often the player died.
        pub deaths: i32,
        /// Health taken from others.
        pub damage_dealt: i64,
        /// Health lost to hits.
        pub damage_taken: i64,
        /// Whole minutes from start to end.
        pub playtime_minutes: i32,
        /// The version that the client sent at login; empty if it sent none.
        pub client_version: String,
        /// The server of the last zone.
        pub server_instance: String,
        /// UUID of version 7, drawn at login.
        pub session_id: Uuid,
    }
    partition: (player_id),
    clustering: (session_start desc),
    ttl: days(90) of session_start,
    compaction: leveled,
    writes: events,
    owner: "sessions",
}

table! {
    /// Daily leaderboards: a projection of the boards in hot state.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DailyScore = "leaderboard_daily" {
        /// What is counted: kills, damage, wins or playtime.
        pub category: BoardCategory,
        /// The day, in UTC.
        pub day: Day,
        /// The player, who stands once in a board.
        pub player_id: i64,
        /// The player's name when it scored.
        pub player_name: String,
        /// Kills, health, wins or minutes of that day.
        pub score: i64,
    }
    partition: (category, day),
    clustering: (score desc, player_id asc),
    ttl: days(90),
    writes: versioned,
    owner: "leaderboards",
}

table! {
    /// All-time leaderboards: the best 100 of each, a projection of the boards in hot state.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AllTimeBoard = "leaderboard_alltime" {
        /// What is counted: kills, damage, wins or playtime.
        pub category: BoardCategory,
        /// Player, name and score, the best first.
        pub entries: Vec<(i64, String, i64)>,
    }
    partition: (category),
    clustering: (),
    ttl: persistent,
    writes: versioned,
    owner: "leaderboards",
}

table! {
    /// Persistent player data: one row a registered player.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerProfile = "player_profiles" {
        /// The player. The id never changes.
        pub player_id: i64,
        /// The name as the player wrote it. Unique by its folded form in `ember_profile_claims`.
        pub username: String,
        /// The e-mail address. Unique like the name.
        pub email: String,
        /// When the account was made.
        pub created_at: Timestamp,
        /// The last login; absent before the first.
        pub last_login: Option<Timestamp>,
        /// The level that the player has reached, 1 or more.
        pub level: i32,
        /// Points of experience, 0 or more.
        pub experience: i64,
        /// Whole minutes, as the game sets them.
        pub total_playtime_minutes: i64,
        /// The game's number of a class; absent = none chosen.
        pub preferred_class: Option<i8>,
        /// Settings as JSON, as the client wrote them.
        pub settings: Option<Vec<u8>>,
        /// Whether a ban was set. One that has expired counts as none.
        pub is_banned: bool,
        /// Why; absent without a ban.
        pub ban_reason: Option<String>,
        /// When the ban ends; absent = never.
        pub ban_expires: Option<Timestamp>,
        /// All versions of clients that were used.
        pub client_versions: BTreeSet<String>,
        /// The address of the last login.
        pub last_known_ip: Option<IpAddr>,
    }
    partition: (player_id),
    clustering: (),
    ttl: persistent,
    lookups: (
        by_username(username) index "idx_player_username",
        by_email(email) index "idx_player_email",
    ),
    writes: conditional,
    owner: "accounts",
}

text_enum! {
    /// What a claim is of.
    pub enum ClaimKind { Username = "username", Email = "email" }
}

table! {
    /// Who has a name or an e-mail address. It alone decides that they are unique.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ProfileClaim = "ember_profile_claims" {
        /// Whether the text is a name or an address.
        pub kind: ClaimKind,
        /// Its folded text: texts that differ in case only are one.
        pub folded: String,
        /// The player who has it.
        pub player_id: i64,
        /// Tells this claim from others of the same player.
        pub token: Uuid,
        /// Whether the player has it. Of several the latest is the player's; the others are left over from renames.
        pub is_confirmed: bool,
        /// When it was claimed, and later than all that the player had confirmed before.
        pub claimed_at: Timestamp,
        /// The text as the player wrote it.
        pub text: String,
    }
    partition: (kind, folded),
    clustering: (),
    ttl: persistent,
    lookups: (by_player(player_id) index "idx_profile_claims_player"),
    writes: conditional,
    owner: "accounts",
}

table! {
    /// What each reporter saw of a zone in an hour. Merged, they are the row of `zone_metrics`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ZoneReport = "ember_zone_reports" {
        /// The zone that was measured.
        pub zone_id: i32,
        /// The beginning of the hour, UTC.
        pub hour_bucket: Timestamp,
        /// The server that reports.
        pub server_instance: String,
        /// A number that the server draws when it starts: it counts from zero again then.
        pub incarnation: Uuid,
        /// Samples, of which each is a tick.
        pub samples: i64,
        /// Players, added up over the samples.
        pub player_count_sum: i64,
        /// The most players in a sample.
        pub player_count_max: i32,
        /// The fewest players in a sample.
        pub player_count_min: i32,
        /// Milliseconds, added up over the samples.
        pub tick_time_ms_sum: f64,
        /// The longest tick in milliseconds.
        pub tick_time_ms_max: f32,
        /// The lengths of ticks as a sketch.
        pub tick_time_sketch: Vec<u8>,
        /// Packets sent in the hour.
        pub packets_sent: i64,
        /// Packets received in the hour.
        pub packets_received: i64,
        /// Bytes sent in the hour.
        pub bytes_sent: i64,
        /// Bytes received in the hour.
        pub bytes_received: i64,
    }
    partition: (zone_id, hour_bucket),
    clustering: (server_instance asc, incarnation asc),
    ttl: days(7) of hour_bucket,
    compaction: time_window(hours(1)),
    writes: versioned,
    owner: "zones",
}

table! {
    /// Performance of zone servers by hour.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ZoneMetrics = "zone_metrics" {
        /// The zone that was measured.
        pub zone_id: i32,
        /// The beginning of the hour, UTC.
        pub hour_bucket: Timestamp,
        /// The average of players over the hour.
        pub avg_player_count: i32,
        /// The most players in a sample.
        pub max_player_count: i32,
        /// The fewest players in a sample.
        pub min_player_count: i32,
        /// Length of a tick, on average.
        pub avg_tick_time_ms: f32,
        /// Length of a tick, at most.
        pub max_tick_time_ms: f32,
        /// Length of a tick that 99 of 100 stay below.
        pub p99_tick_time_ms: f32,
        /// Packets sent by all its servers.
        pub total_packets_sent: i64,
        /// Packets received by all its servers.
        pub total_packets_received: i64,
        /// Bytes sent by all its servers.
        pub total_bytes_sent: i64,
        /// Bytes received by all its servers.
        pub total_bytes_received: i64,
        /// The server with most samples.
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
    /// Security and compliance log.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AuditEntry = "audit_log" {
        /// When it happened, by the clock of hot state.
        pub timestamp: Timestamp,
        /// UUID of version 7. A replay has the same, so it overwrites itself.
        pub event_id: Uuid,
        /// What it is about: login, logout, kick, ban or suspicious.
        pub event_type: AuditEvent,
        /// The player that it is about.
        pub player_id: i64,
        /// The player's address, if known.
        pub player_ip: Option<IpAddr>,
        /// JSON with what the type needs, such as a reason; absent if nothing is to be said.
        pub details: Option<Vec<u8>>,
        /// info, warning or critical.
        pub severity: Severity,
    }
    partition: (day_bucket = day(timestamp)),
    clustering: (timestamp desc, event_id asc),
    ttl: days(180) of timestamp,
    compaction: time_window(days(1)),
    slices: (hours(1), 4),
    lookups: (
        by_type(event_type, day_bucket) table "ember_audit_by_type",
        by_severity(severity, day_bucket) table "ember_audit_by_severity",
    ),
    writes: events,
    owner: "audit",
}

/// The tables and totals of DarkAges.
pub fn schema() -> HistorySchema {
    HistorySchema::new()
        .table::<CombatEvent>()
        .table::<Kill>()
        .totals::<PlayerStats>()
        .table::<PlayerSession>()
        .table::<DailyScore>()
        .table::<AllTimeBoard>()
        .table::<BoardScore>()
        .table::<PlayerProfile>()
        .table::<ProfileClaim>()
        .table::<ZoneReport>()
        .table::<ZoneMetrics>()
        .table::<AuditEntry>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{CqlLayout, Table, Totals};

    /// The columns of a CREATE TABLE of the document, with its comments left out.
    fn columns(create: &str) -> Vec<String> {
        let body = create.split_once("(\n").expect("columns").1;
        let column = |line: &str| line.trim().trim_end_matches(',').to_owned();
        body.lines().map(column).take_while(|line| !line.starts_with("PRIMARY KEY")).collect()
    }

    #[test]
    fn the_tables_are_those_of_the_document() {
        let cql = |declaration: &emberkeep_schema::TableDeclaration| declaration.to_cql(CqlLayout::Document);
        assert_eq!(
            columns(&cql(CombatEvent::DECLARATION)),
            [
                "day_bucket text",
                "timestamp timestamp",
                "event_id uuid",
                "attacker_id bigint",
                "target_id bigint",
                "damage int",
                "hit_type text",
                "ability_name text",
                "zone_id int",
                "position_x double",
                "position_y double",
                "position_z double",
                "server_instance text",
                "shard_id int"
            ]
        );
        assert_eq!(
            columns(&cql(PlayerSession::DECLARATION)),
            [
                "player_id bigint",
                "session_start timestamp",
                "session_end timestamp",
                "zone_id int",
                "kills int",
                "deaths int",
                "damage_dealt bigint",
                "damage_taken bigint",
                "playtime_minutes int",
                "client_version text",
                "server_instance text",
                "session_id uuid"
            ]
        );
        assert_eq!(
            columns(&cql(DailyScore::DECLARATION)),
            ["category text", "day text", "player_id bigint", "player_name text", "score bigint"]
        );
        assert_eq!(
            columns(&cql(AllTimeBoard::DECLARATION)),
            ["category text", "\"entries\" frozen<list<frozen<tuple<bigint, text, bigint>>>>"]
        );
        assert_eq!(
            columns(&cql(PlayerProfile::DECLARATION)),
            [
                "player_id bigint",
                "username text",
                "email text",
                "created_at timestamp",
                "last_login timestamp",
                "level int",
                "experience bigint",
                "total_playtime_minutes bigint",
                "preferred_class tinyint",
                "settings blob",
                "is_banned boolean",
                "ban_reason text",
                "ban_expires timestamp",
                "client_versions set<text>",
                "last_known_ip inet"
            ]
        );
        assert_eq!(
            columns(&cql(ZoneMetrics::DECLARATION)),
            [
                "zone_id int",
                "hour_bucket timestamp",
                "avg_player_count int",
                "max_player_count int",
                "min_player_count int",
                "avg_tick_time_ms float",
                "max_tick_time_ms float",
                "p99_tick_time_ms float",
                "total_packets_sent bigint",
                "total_packets_received bigint",
                "total_bytes_sent bigint",
                "total_bytes_received bigint",
                "server_instance text"
            ]
        );
        assert_eq!(
            columns(&cql(AuditEntry::DECLARATION)),
            [
                "day_bucket text",
                "timestamp timestamp",
                "event_id uuid",
                "event_type text",
                "player_id bigint",
                "player_ip inet",
                "details blob",
                "severity text"
            ]
        );
        assert_eq!(
            columns(&PlayerStats::DECLARATION.to_cql()),
            [
                "player_id bigint",
                "total_kills bigint",
                "total_deaths bigint",
                "total_assists bigint",
                "total_damage_dealt bigint",
                "total_damage_taken bigint",
                "total_damage_blocked bigint",
                "total_healing_done bigint",
                "total_playtime_minutes bigint",
                "total_matches bigint",
                "total_wins bigint",
                "last_updated timestamp"
            ]
        );
    }

    #[test]
    fn keys_options_and_indexes_are_those_of_the_document() {
        let all: String = schema().tables().iter().map(|table| table.to_cql(CqlLayout::Document)).collect();
        for text in [
            "PRIMARY KEY ((day_bucket), timestamp, event_id)\n) WITH CLUSTERING ORDER BY (timestamp DESC, event_id ASC)\n  AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 1}\n  AND default_time_to_live = 2592000;",
            "CREATE INDEX IF NOT EXISTS idx_combat_attacker ON combat_events (attacker_id);",
            "CREATE INDEX IF NOT EXISTS idx_combat_target ON combat_events (target_id);",
            "PRIMARY KEY ((player_id), session_start)\n) WITH CLUSTERING ORDER BY (session_start DESC)\n  AND compaction = {'class': 'LeveledCompactionStrategy'}\n  AND default_time_to_live = 7776000;",
            "PRIMARY KEY ((category, day), score, player_id)\n) WITH CLUSTERING ORDER BY (score DESC, player_id ASC)\n  AND default_time_to_live = 7776000;",
            "CREATE INDEX IF NOT EXISTS idx_player_username ON player_profiles (username);",
            "CREATE INDEX IF NOT EXISTS idx_player_email ON player_profiles (email);",
            "PRIMARY KEY ((zone_id), hour_bucket)\n) WITH CLUSTERING ORDER BY (hour_bucket DESC)\n  AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', 'compaction_window_size': 1}\n  AND default_time_to_live = 604800;",
            "AND default_time_to_live = 15552000;",
        ] {
            assert!(all.contains(text), "{text}\n{all}");
        }
        schema().check().unwrap();
    }
}
