//! The key patterns of the five games that this layer was made for, in one schema: every one can be
//! declared as its document writes it, and no key belongs to two of them.

use emberkeep_schema::{
    KeyIdentity, KeyLayout, Name, Raw, Schema, Text, Topology, family, partition, schema,
};
use uuid::Uuid;

partition! {
    /// A tenant.
    struct Tenant(Uuid) as "tenantId";
}
partition! {
    /// A room.
    struct Room(Name) as "code";
}
partition! {
    /// A shard.
    struct Shard(Name) as "shard";
}
partition! {
    /// The galaxy.
    struct Galaxy = "galaxy";
}

macro_rules! families {
    ($(($($partition:ident)+) $name:ident = $pattern:literal ($($part:ident: $type:ty),*);)*) => {
        $(family! {
            $name = $pattern {
                kind: Text<Raw>, partition: $($partition)+, parts: ($($part: $type),*), ttl: persistent, owner: "a game"
            }
        })*

        fn all() -> Schema {
            schema![$($name),*].expect("no key belongs to two families")
        }
    };
}

families! {
    (shared Tenant) REACTOR_NEXT = "reactors:next_id" ();
    (shared Tenant) REACTORS = "reactors:all" ();
    (shared Tenant) REACTOR = "reactor:{id}" (id: u32);
    (Tenant) REACTOR_MAP = "reactors:map:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}" (worldId: u8, channelId: u8, mapId: u32, instance: Uuid);
    (Tenant) REACTOR_COOLDOWN = "reactor:cd:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}:{classification}:{x}:{y}" (worldId: u8, channelId: u8, mapId: u32, instance: Uuid, classification: u32, x: i16, y: i16);

    (Tenant) MONSTER = "atlas:monster:{tenantId}:{uniqueId}" (uniqueId: u32);
    (Tenant) MONSTER_MAP = "atlas:monster-map:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}" (worldId: u8, channelId: u8, mapId: u32, instance: Uuid);
    (Tenant) MONSTER_NEXT = "atlas:monster-ids:{tenantId}:next" ();
    (Tenant) MONSTER_FREE = "atlas:monster-ids:{tenantId}:free" ();
    (Tenant) MONSTER_COOLDOWN = "atlas:monster-cooldown:{tenantId}:{monsterId}:{skillId}" (monsterId: u32, skillId: u32);
    (Tenant) DROP_TIMER = "atlas:drop-timer:{tenantId}:{uniqueId}" (uniqueId: u32);

    (Room) ROOM_META = "brp:room:{code}:meta" ();
    (Room) ROOM_STATE = "brp:room:{code}:state" ();
    (Room) DEVICE_TO_PLAYER = "brp:room:{code}:device_to_player" ();
    (Room) PLAYER_TO_DEVICE = "brp:room:{code}:player_to_device" ();
    (Room) PLAYER_ACTIVE = "brp:room:{code}:player_active" ();
    (Room) VOTE = "brp:room:{code}:vote:{round_id}:{item_id}" (round_id: Name, item_id: Name);
    (Room) VOTE_RECEIVED = "brp:room:{code}:vote_received:{round_id}:{item_id}" (round_id: Name, item_id: Name);

    (shared Shard) SESSION = "session:{id}" (id: u64);
    (shared Shard) ZONE_PLAYERS = "zone:{id}:players" (id: u32);
    (shared Shard) PLAYER_POSITION = "player:{id}:pos" (id: u64);
    (shared Shard) PLAYER_ZONE = "player:{id}:zone" (id: u64);
    (shared Shard) ZONE_CHANNEL = "channel:zone:{id}" (id: u32);
    (shared Shard) CONNECTION = "internal:conn:{id}" (id: u64);
    (shared Shard) RATE_LIMIT = "ratelimit:{id}:{action}" (id: u64, action: Name);
    (shared Shard) SPATIAL_QUERY = "temp:spatial:query:{id}" (id: Name);

    (Galaxy) SHIP = "ship:{ship_id}" (ship_id: Uuid);
    (Galaxy) STATION = "station:{station_id}" (station_id: Uuid);
    (Galaxy) BODY = "body:{name}" (name: Name);
    (Galaxy) TICK = "game:tick" ();
    (Galaxy) PAUSED = "game:paused" ();
    (Galaxy) MANEUVER = "maneuver:{ship_id}" (ship_id: Uuid);
    (Galaxy) RULES = "automation:{ship_id}:rules" (ship_id: Uuid);
    (Galaxy) RULE = "automation:{ship_id}:{rule_id}" (ship_id: Uuid, rule_id: Uuid);
    (Galaxy) ONLINE = "connections:online" ();
    (Galaxy) SYSTEM_BODIES = "system:{system_id}:bodies" (system_id: Name);
    (Galaxy) SYSTEM_SHIPS = "system:{system_id}:ships" (system_id: Name);
}

/// The family and the partition of a raw key.
fn found(layout: &KeyLayout, raw: &str) -> Option<(&'static str, Option<String>)> {
    match all().identify(layout, raw.as_bytes())? {
        KeyIdentity::Family { declaration, partition, .. } => Some((declaration.name, partition)),
        KeyIdentity::Own { .. } => Some(("own", None)),
    }
}

#[test]
fn keys_from_the_documents_find_their_family() {
    let single = KeyLayout::single();
    let in_galaxy = |name| Some((name, Some("galaxy".to_owned())));
    assert_eq!(found(&single, "reactor:1000000001"), Some(("REACTOR", None)));
    assert_eq!(found(&single, "zone:42:players"), Some(("ZONE_PLAYERS", None)));
    assert_eq!(found(&single, "brp:room:AB12CD:meta"), Some(("ROOM_META", Some("AB12CD".to_owned()))));
    assert_eq!(found(&single, "body:Earth"), in_galaxy("BODY"));
    let ship = "550e8400-e29b-41d4-a716-446655440000";
    assert_eq!(found(&single, &format!("automation:{ship}:rules")), in_galaxy("RULES"));
    assert_eq!(found(&single, &format!("automation:{ship}:{ship}")), in_galaxy("RULE"));
    assert_eq!(found(&single, "automation:x:rules"), None);
}

#[test]
fn a_rendered_key_is_found_in_both_layouts() {
    let tenant = Tenant(Uuid::from_u128(7));
    let room = Room(Name::new("AB12CD").expect("a room code is a name"));
    let item = Name::new("item 1").expect("a name");
    for layout in [Topology::Single, Topology::Cluster] {
        let layout = KeyLayout::new("test:", layout).expect("a sound prefix");
        let cooldown = REACTOR_COOLDOWN.key(0, 1, 100_000_000, Uuid::nil(), 2_000, -5, 12);
        let raw = cooldown.to_text(&layout, &tenant);
        assert_eq!(found(&layout, &raw), Some(("REACTOR_COOLDOWN", Some(tenant.to_string()))));
        let raw = VOTE.key(&item, &item).to_text(&layout, &room);
        assert_eq!(found(&layout, &raw), Some(("VOTE", Some(room.to_string()))));
    }
}

#[test]
fn every_family_has_a_row_and_a_glob_of_its_own() {
    let schema = all();
    let mut globs: Vec<_> =
        schema.families().iter().map(|family| family.glob(&KeyLayout::cluster())).collect();
    assert_eq!(globs.len(), schema.to_table(&KeyLayout::cluster()).len());
    globs.sort();
    globs.dedup();
    assert_eq!(globs.len(), schema.families().len());
}
