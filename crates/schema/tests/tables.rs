//! Tables with every clause of a declaration, as a game would write them: columns, keys and CQL derive from it. They are small
//! tables of this test, because schema knows no game.

#![allow(missing_docs)]

use emberkeep_schema::{
    CqlLayout, Day, Order, RowTtl, Table, Timestamp, Totals, Value, Writes, table, text_enum, totals,
};
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
        /// Who hit.
        pub attacker_id: i64,
        /// Who was hit.
        pub target_id: i64,
        /// Health taken.
        pub damage: i32,
        /// How it landed.
        pub hit_type: HitType,
        /// The ability, if one was used.
        pub ability_name: Option<String>,
        /// Where.
        pub zone_id: i32,
        /// Position.
        pub position_x: f64,
    }
    partition: (day_bucket = day(timestamp)),
    clustering: (timestamp desc, event_id asc),
    ttl: days(30) of timestamp,
    compaction: time_window(days(1)),
    slices: (minutes(1), 16),
    lookups: (
        by_attacker(attacker_id, day_bucket) index "idx_combat_attacker",
        by_target(target_id, day_bucket) index "idx_combat_target" table "ember_hits_by_target",
        by_zone(zone_id, day_bucket) table "ember_events_by_zone",
        by_damage(damage, day_bucket),
    ),
    writes: events,
    owner: "combat",
}

table! {
    /// Persistent player data.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Profile = "player_profiles" {
        pub player_id: i64,
        pub username: String,
        pub preferred_class: i8,
        pub settings: Vec<u8>,
        pub client_versions: BTreeSet<String>,
        pub last_known_ip: Option<IpAddr>,
        pub best: Vec<(i64, String, i64)>,
    }
    owner: "accounts",
    writes: rows,
    ttl: persistent,
    lookups: (by_username(username)),
    clustering: (),
    partition: (player_id),
}

totals! {
    /// What a player did, ever.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayerStats = "player_stats" by "ember_stats_by_source" {
        key: player_id: i64,
        sums: { total_kills, total_playtime_minutes per 60_000 },
        owner: "combat",
    }
}

fn event() -> CombatEvent {
    CombatEvent {
        timestamp: Timestamp(1_704_103_200_000),
        event_id: Uuid::from_u128(7),
        attacker_id: 1,
        target_id: 2,
        damage: 30,
        hit_type: HitType::Critical,
        ability_name: None,
        zone_id: 42,
        position_x: 1.5,
    }
}

#[test]
fn a_row_is_its_values_and_the_bucket_is_derived() {
    let values = event().into_values();
    assert_eq!(values[0], Some(Value::Text("2024-01-01".into())));
    assert_eq!(values[7], None, "an absent optional column");
    assert_eq!(CombatEvent::from_values(values), Ok(event()));
    let key = event().row_key();
    assert_eq!(key, CombatEvent::key(Timestamp(1_704_103_200_000), Uuid::from_u128(7)));
    assert_eq!(key.into_values().len(), 3);
}

#[test]
fn a_value_that_does_not_fit_names_its_column() {
    let mut values = event().into_values();
    values[6] = Some(Value::Text("soft".into()));
    let (column, problem) = CombatEvent::from_values(values).unwrap_err();
    assert_eq!(column, "hit_type");
    assert!(problem.contains("none of the texts of HitType: normal, critical"), "{problem}");
}

#[test]
fn lookups_have_typed_functions_and_days_may_be_many() {
    let day: Day = "2024-01-01".parse().unwrap();
    let rows = CombatEvent::by_attacker(7, day..=day.next());
    assert_eq!(rows.lookup(), Some("by_attacker"));
    let partitions = rows.into_partitions();
    assert_eq!(partitions.len(), 2);
    assert_eq!(partitions[1], [Some(Value::BigInt(7)), Some(Value::Text("2024-01-02".into()))]);
    assert_eq!(Profile::by_username("ann").into_partitions(), [[Some(Value::Text("ann".into()))]]);
    let lookup = CombatEvent::DECLARATION.lookup("by_zone").unwrap();
    let key = CombatEvent::DECLARATION.lookup_key(lookup);
    assert_eq!(key[2], ("timestamp", Order::Descending));
    let ttl = RowTtl::Since { ms: 2_592_000_000, column: "timestamp" };
    assert_eq!(CombatEvent::DECLARATION.ttl, ttl);
    assert_eq!(CombatEvent::DECLARATION.time_column(), Some("timestamp"));
    assert_eq!(
        (CombatEvent::DECLARATION.writes, Profile::DECLARATION.writes),
        (Writes::Events, Writes::Rows)
    );
}

#[test]
fn the_document_layout_is_that_of_the_document() {
    let columns = "    day_bucket text,
    timestamp timestamp,
    event_id uuid,
    attacker_id bigint,
    target_id bigint,
    damage int,
    hit_type text,
    ability_name text,
    zone_id int,
    position_x double,
";
    let options = "CLUSTERING ORDER BY (timestamp DESC, event_id ASC)
  AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 1}
  AND default_time_to_live = 2592000;
";
    let expected = format!(
        "CREATE TABLE IF NOT EXISTS combat_events (
{columns}    PRIMARY KEY ((day_bucket), timestamp, event_id)
) WITH {options}
CREATE INDEX IF NOT EXISTS idx_combat_attacker ON combat_events (attacker_id);

CREATE INDEX IF NOT EXISTS idx_combat_target ON combat_events (target_id);

CREATE TABLE IF NOT EXISTS ember_events_by_zone (
{columns}    PRIMARY KEY ((zone_id, day_bucket), timestamp, event_id)
) WITH {options}
CREATE TABLE IF NOT EXISTS ember_combat_events_by_damage (
{columns}    PRIMARY KEY ((damage, day_bucket), timestamp, event_id)
) WITH {options}"
    );
    assert_eq!(CombatEvent::DECLARATION.to_cql(CqlLayout::Document), expected);
    let profile = Profile::DECLARATION.to_cql(CqlLayout::Document);
    assert!(profile.contains("    best frozen<list<frozen<tuple<bigint, text, bigint>>>>,\n"), "{profile}");
    assert!(profile.contains("    PRIMARY KEY ((player_id))\n);\n"), "{profile}");
}

#[test]
fn the_scaled_layout_has_slices_and_query_tables() {
    let cql = CombatEvent::DECLARATION.to_cql(CqlLayout::Scaled);
    assert!(
        cql.contains("PRIMARY KEY ((day_bucket, ember_bucket, ember_slice), timestamp, event_id)"),
        "{cql}"
    );
    for name in [
        "ember_combat_events_by_attacker",
        "ember_hits_by_target",
        "ember_events_by_zone",
        "ember_combat_events_by_damage",
    ] {
        assert!(cql.contains(&format!("CREATE TABLE IF NOT EXISTS {name} (")), "{cql}");
    }
    assert!(!cql.contains("CREATE INDEX"), "{cql}");
    assert!(cql.contains("PRIMARY KEY ((zone_id, day_bucket), timestamp, event_id)"), "{cql}");
}

#[test]
fn totals_have_a_table_by_source() {
    let cql = PlayerStats::DECLARATION.to_cql();
    assert!(
        cql.contains(
            "CREATE TABLE IF NOT EXISTS player_stats (\n    player_id bigint,\n    total_kills bigint,"
        ),
        "{cql}"
    );
    assert!(cql.contains("PRIMARY KEY ((player_id), source)"), "{cql}");
    assert_eq!(PlayerStats::from_amounts(&[3, 120_000]).total_kills, 3);
}

table! {
    /// Where players were.
    pub struct Visit = "visits" {
        /// The player.
        pub player_id: i64,
    }
    partition: (player_id),
    clustering: (),
    ttl: persistent,
    deprecated: (device(String, since "2026-01-31"), score(Option<f64>, since "9999-12-31")),
    writes: rows,
    owner: "accounts",
}

#[test]
fn deprecated_columns_are_declared_and_are_not_part_of_the_row() {
    let [device, score] = Visit::DECLARATION.deprecated else { panic!("two are declared") };
    assert_eq!(
        (device.name, device.kind.to_string(), device.since.to_string()),
        ("device", "text".into(), "2026-01-31".into())
    );
    assert_eq!(
        (device.removable_from().to_string(), score.kind.to_string()),
        ("2026-03-02".into(), "double".into())
    );
    assert_eq!(score.removable_from(), Day::MAX);
    assert_eq!(Visit { player_id: 7 }.into_values(), [Some(Value::BigInt(7))]);
    for layout in [CqlLayout::Document, CqlLayout::Scaled] {
        assert!(!Visit::DECLARATION.to_cql(layout).contains("device"), "a new keyspace does not get them");
    }
}
