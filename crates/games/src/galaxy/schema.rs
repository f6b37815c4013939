//! The key families of Galaxy: those of the storage document, jump gates, and auxiliary ones.
//!
//! No key contains the galaxy: there is one for each prefix of a server. The documented keys define what exists; of our
//! own, chunks, heads and presence can be rebuilt or expire.

use super::limits::CHANGES_MAX;
use super::model::{
    BodyName, DecimalText, GameTime, JumpgateId, PlayerId, RuleId, ShipId, StationId, SystemId, TrueFalse,
};
use super::service::{GatewayNotice, Socket};
use super::services::{API_GATEWAY, GALAXY, PHYSICS, PLAYERS, TICK_ENGINE};
use super::tick::{Change, Chunk, Era, StagedTick, TickHead};
use emberkeep_primitives::lease::LeaseRecord;
use emberkeep_schema::{
    Channel, Hash, Id, Json, Log, Name, Number, RefuseAbove, Schema, Set, SortedSet, Text, Utf8, family,
    partition,
};

partition! {
    /// The one galaxy of a prefix.
    pub struct Galaxy = "galaxy";
}

family! {
    /// The real-time state of a ship.
    pub SHIP = "ship:{ship_id}" {
        kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (ship_id: ShipId), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"],
    }
}

family! {
    /// The state of a station.
    pub STATION = "station:{station_id}" {
        kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (station_id: StationId), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"],
    }
}

family! {
    /// The state of a jump gate.
    pub JUMPGATE = "jumpgate:{jumpgate_id}" {
        kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (jumpgate_id: JumpgateId), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"],
    }
}

family! {
    /// The state of a celestial body.
    pub BODY = "body:{name}" {
        kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (name: BodyName), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"],
    }
}

family! {
    /// The present tick.
    pub TICK = "game:tick" {
        kind: Text<Number<i64>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
    }
}

family! {
    /// The present game time.
    pub TIME = "game:time" {
        kind: Text<GameTime>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
    }
}

family! {
    /// Ships that were ever spawned.
    pub TOTAL_SPAWNS = "game:total_spawns" {
        kind: Text<Number<i64>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "physics", readers: ["tick-engine"],
    }
}

family! {
    /// Whether ticks are paused. Absent = not.
    pub PAUSED = "game:paused" {
        kind: Text<TrueFalse>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
    }
}

family! {
    /// Ticks per second. Absent = 1.
    pub TICK_RATE = "game:tick_rate" {
        kind: Text<DecimalText>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
    }
}

family! {
    /// Speed of game time. Absent = 1.
    pub TIME_SCALE = "game:time_scale" {
        kind: Text<DecimalText>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
    }
}

family! {
    /// Whether game time is synchronized with UTC. Absent = it is.
    pub TIME_SYNC = "game:time_sync" {
        kind: Text<TrueFalse>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
    }
}

family! {
    /// Seconds by which game time is behind UTC.
    pub TIME_DRIFT = "game:time_drift" {
        kind: Text<DecimalText>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
    }
}

family! {
    /// Whether players may register. Absent = they may.
    pub REGISTRATION_OPEN = "game:registration_open" {
        kind: Text<TrueFalse>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "api-gateway", readers: ["tick-engine", "players"],
    }
}

family! {
    /// The maneuver of a ship.
    pub MANEUVER = "maneuver:{ship_id}" {
        kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (ship_id: ShipId), ttl: persistent,
        owner: "tick-engine", readers: ["api-gateway"],
    }
}

family! {
    /// An automation rule of a ship.
    pub RULE = "automation:{ship_id}:{rule_id}" {
        kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (ship_id: ShipId, rule_id: RuleId), ttl: persistent,
        owner: "api-gateway", readers: ["tick-engine"],
    }
}

family! {
    /// The automation rules of a ship.
    pub RULES = "automation:{ship_id}:rules" {
        kind: Set<Id<RuleId>>, partition: Galaxy, parts: (ship_id: ShipId), ttl: persistent,
        owner: "api-gateway", readers: ["tick-engine"], index_of: RULE,
    }
}

family! {
    /// Players with a live connection.
    pub ONLINE = "connections:online" {
        kind: Set<Id<PlayerId>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "api-gateway", readers: ["players", "tick-engine"],
        snapshot: never,
    }
}

family! {
    /// The bodies of a star system.
    pub SYSTEM_BODIES = "system:{system_id}:bodies" {
        kind: Set<Id<BodyName>>, partition: Galaxy, parts: (system_id: SystemId), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"], index_of: BODY,
    }
}

family! {
    /// The ships in a star system.
    pub SYSTEM_SHIPS = "system:{system_id}:ships" {
        kind: Set<Id<ShipId>>, partition: Galaxy, parts: (system_id: SystemId), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"], index_of: SHIP,
    }
}

family! {
    /// The stations of a star system.
    pub SYSTEM_STATIONS = "system:{system_id}:stations" {
        kind: Set<Id<StationId>>, partition: Galaxy, parts: (system_id: SystemId), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"], index_of: STATION,
    }
}

family! {
    /// The jump gates of a star system.
    pub SYSTEM_JUMPGATES = "system:{system_id}:jumpgates" {
        kind: Set<Id<JumpgateId>>, partition: Galaxy, parts: (system_id: SystemId), ttl: persistent,
        owner: "physics", readers: ["tick-engine", "api-gateway", "players"], index_of: JUMPGATE,
    }
}

family! {
    /// The ship that a player pilots.
    pub ACTIVE_SHIP = "player:{player_id}:active_ship" {
        kind: Text<Id<ShipId>>, partition: Galaxy, parts: (player_id: PlayerId), ttl: persistent,
        owner: "players", readers: ["api-gateway", "tick-engine", "physics"],
    }
}

family! {
    /// The ships of a player.
    pub FLEET = "player:{player_id}:ships" {
        kind: Set<Id<ShipId>>, partition: Galaxy, parts: (player_id: PlayerId), ttl: persistent,
        owner: "players", readers: ["api-gateway", "tick-engine", "physics"], index_of: SHIP,
    }
}

family! {
    /// Which process runs the ticks.
    pub TICK_LEASE = "ember:galaxy:lease" {
        kind: Text<Json<LeaseRecord>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["physics"],
        snapshot: never,
    }
}

family! {
    /// The generation, and whether a reset or a restore is under way.
    pub ERA = "ember:galaxy:era" {
        kind: Text<Json<Era>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
        snapshot: never,
    }
}

family! {
    /// The present tick with its generation, its exact time, and how many chunks it has.
    pub HEAD = "ember:galaxy:head" {
        kind: Text<Json<TickHead>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
        snapshot: never,
    }
}

family! {
    /// A tick whose chunks are complete and whose hashes are being written.
    pub STAGED = "ember:galaxy:staged" {
        kind: Text<Json<StagedTick>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["physics"],
        snapshot: never,
    }
}

family! {
    /// Ticks whose chunks exist, or may exist, as `generation-tick`: how many chunks each has.
    pub KEPT = "ember:galaxy:kept" {
        kind: Hash<Utf8, Number<i64>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["physics"],
        snapshot: never,
    }
}

family! {
    /// Ticks whose chunks are kept for longer, as `generation-tick-holder`: until when, in milliseconds since 1970.
    pub PINS = "ember:galaxy:pins" {
        kind: Hash<Utf8, Number<i64>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "tick-engine", readers: ["physics"],
        snapshot: never,
    }
}

family! {
    /// A part of the entities of a tick. It never changes.
    pub CHUNK = "ember:galaxy:chunk:{generation}:{tick}:{number}" {
        kind: Text<Chunk>, partition: Galaxy, parts: (generation: i64, tick: i64, number: i64), ttl: persistent,
        owner: "tick-engine", readers: ["*"],
        snapshot: never,
    }
}

family! {
    /// Changes that the next tick applies.
    pub CHANGES = "ember:log:galaxy:changes" {
        kind: Log<Json<Change>, RefuseAbove<CHANGES_MAX>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "physics", readers: ["tick-engine"],
    }
}

family! {
    /// Gateways by the end of their lease.
    pub GATEWAYS = "ember:galaxy:gateways" {
        kind: SortedSet<Id<Name>>, partition: Galaxy, parts: (), ttl: persistent, owner: "api-gateway",
        snapshot: never,
    }
}

family! {
    /// The connections of a gateway, with their players.
    pub GATEWAY_SOCKETS = "ember:galaxy:gateway:{gateway}" {
        kind: Hash<Id<Name>, Id<PlayerId>>, partition: Galaxy, parts: (gateway: Name), ttl: persistent,
        owner: "api-gateway",
        snapshot: never,
    }
}

family! {
    /// The connections of a player.
    pub PLAYER_SOCKETS = "ember:galaxy:sockets:{player_id}" {
        kind: Set<Socket>, partition: Galaxy, parts: (player_id: PlayerId), ttl: persistent,
        owner: "api-gateway", readers: ["players"],
        snapshot: never,
    }
}

family! {
    /// What gateways are to do, such as closing the connections of a player.
    pub GATEWAY_NOTICES = "ember:galaxy:notices" {
        kind: Channel<Json<GatewayNotice>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "players", readers: ["api-gateway"],
    }
}

family! {
    /// Players that were deleted, with the time in milliseconds since 1970.
    pub DELETED = "ember:galaxy:deleted" {
        kind: Hash<Id<PlayerId>, Number<i64>>, partition: Galaxy, parts: (), ttl: persistent,
        owner: "players", readers: ["physics", "api-gateway", "tick-engine"],
        snapshot: never,
    }
}

/// The key families of Galaxy, with its services.
pub fn schema() -> Schema {
    let families = emberkeep_schema::schema![
        SHIP,
        STATION,
        JUMPGATE,
        BODY,
        TICK,
        TIME,
        TOTAL_SPAWNS,
        PAUSED,
        TICK_RATE,
        TIME_SCALE,
        TIME_SYNC,
        TIME_DRIFT,
        REGISTRATION_OPEN,
        MANEUVER,
        RULE,
        RULES,
        ONLINE,
        SYSTEM_BODIES,
        SYSTEM_SHIPS,
        SYSTEM_STATIONS,
        SYSTEM_JUMPGATES,
        ACTIVE_SHIP,
        FLEET,
        TICK_LEASE,
        ERA,
        HEAD,
        STAGED,
        KEPT,
        PINS,
        CHUNK,
        CHANGES,
        GATEWAYS,
        GATEWAY_SOCKETS,
        PLAYER_SOCKETS,
        GATEWAY_NOTICES,
        DELETED,
    ];
    let services = [&PHYSICS, &TICK_ENGINE, &API_GATEWAY, &PLAYERS, &GALAXY];
    let schema = families.and_then(|schema| schema.with_services(&services));
    schema.expect("each key belongs to one family, and all services are declared; a test holds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Family, Key, KeyLayout};
    use uuid::Uuid;

    fn text<F: Family<Partition = Galaxy>>(key: Key<F>) -> String {
        key.to_text(&KeyLayout::single(), &Galaxy)
    }

    #[test]
    fn keys_are_those_of_the_document() {
        let id = Uuid::from_u128(7);
        let (ship, player, sol) = (ShipId(id), PlayerId(id), SystemId::sol());
        let earth = BodyName(Name::new("Earth").unwrap());
        assert_eq!(text(SHIP.key(ship)), format!("ship:{id}"));
        assert_eq!(text(STATION.key(StationId(id))), format!("station:{id}"));
        assert_eq!(text(JUMPGATE.key(JumpgateId(id))), format!("jumpgate:{id}"));
        assert_eq!(text(BODY.key(&earth)), "body:Earth");
        assert_eq!((text(TICK.key()), text(TIME.key())), ("game:tick".into(), "game:time".into()));
        assert_eq!(text(TOTAL_SPAWNS.key()), "game:total_spawns");
        assert_eq!(
            (text(PAUSED.key()), text(TICK_RATE.key())),
            ("game:paused".into(), "game:tick_rate".into())
        );
        assert_eq!(text(TIME_SCALE.key()), "game:time_scale");
        assert_eq!(text(TIME_SYNC.key()), "game:time_sync");
        assert_eq!(text(TIME_DRIFT.key()), "game:time_drift");
        assert_eq!(text(REGISTRATION_OPEN.key()), "game:registration_open");
        assert_eq!(text(MANEUVER.key(ship)), format!("maneuver:{id}"));
        assert_eq!(text(RULES.key(ship)), format!("automation:{id}:rules"));
        let rule = RuleId::new("low-fuel").unwrap();
        assert_eq!(text(RULE.key(ship, &rule)), format!("automation:{id}:low-fuel"));
        assert_eq!(text(ONLINE.key()), "connections:online");
        assert_eq!(text(SYSTEM_BODIES.key(&sol)), "system:sol:bodies");
        assert_eq!(text(SYSTEM_SHIPS.key(&sol)), "system:sol:ships");
        assert_eq!(text(SYSTEM_STATIONS.key(&sol)), "system:sol:stations");
        assert_eq!(text(SYSTEM_JUMPGATES.key(&sol)), "system:sol:jumpgates");
        assert_eq!(text(ACTIVE_SHIP.key(player)), format!("player:{id}:active_ship"));
        assert_eq!(text(FLEET.key(player)), format!("player:{id}:ships"));
    }

    #[test]
    fn what_belongs_to_processes_stays_out_of_snapshots() {
        let schema = schema();
        let out = schema.families().iter().filter(|family| !family.in_snapshots);
        let out: Vec<&str> = out.map(|family| family.name).collect();
        let processes = ["ONLINE", "TICK_LEASE", "ERA", "HEAD", "STAGED", "KEPT", "PINS", "CHUNK"];
        let connections = ["GATEWAYS", "GATEWAY_SOCKETS", "PLAYER_SOCKETS", "DELETED"];
        assert_eq!(out, [&processes[..], &connections].concat());
    }

    #[test]
    fn every_key_belongs_to_one_family_and_every_service_is_declared() {
        assert_eq!(schema().services().count(), 5);
    }
}
