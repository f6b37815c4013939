//! The key families of DarkAges: those of the storage document, and auxiliary ones.
//!
//! No documented key contains the shard: on one server all shards share them, on a Cluster they have the shard as a hash
//! tag. The documented keys define who is logged in and where; if shards are partitions of their own, the directory says in
//! which. Of our own keys the play record, and players on their way between shards, cannot be rebuilt.

use super::archive::recorder::HitRecord;
use super::boards::{
    BOARD_APPLIED, BOARD_BEGUN, BOARD_CHANGED, BOARD_FED, BOARD_NAMES, BOARD_POSITION, BOARDS_DRAINER,
    BOARDS_LOG, DAY_ORDER, DAY_PLAYERS, DAY_SOURCES, DAY_STORED, DAY_TAKEN, EVER_ORDER, EVER_PLAYERS,
    EVER_SOURCES, EVER_TAKEN,
};
use super::channel::ZoneMessage;
use super::events::{AuditRecord, PlayEnd};
use super::limits::{
    AUDIT_LOG_MAX, COMBAT_LOG_MAX, CONNECTION_LIFE, DIRECTORY_LIFE, LAST_LOGIN_LIFE, PLAYER_ZONE_LIFE,
    PLAYS_LOG_MAX, POSITION_LIFE, RATE_LIFE, SESSION_LIFE, SPATIAL_QUERY_LIFE, ZONE_LIFE,
};
use super::model::{EntityId, Play, PositionText, Session, SpatialQuery, ZoneId};
use super::passage::Passage;
use emberkeep_primitives::Indexed;
use emberkeep_primitives::directory::DirectoryEntry;
use emberkeep_primitives::lease::LeaseRecord;
use emberkeep_primitives::mail::{DeadLetter, Envelope, OutboxState};
use emberkeep_schema::{
    Channel, Hash, Id, Json, Key, List, Log, Name, Number, RefuseAbove, Schema, Set, SortedSet, Text, Utf8,
    family, partition,
};

partition! {
    /// A group of zones: all that a transaction can change together.
    #[derive(Copy, Default)]
    pub struct Shard(u16) as "shard";
}

partition! {
    /// One entity, for what is counted wherever it is.
    #[derive(Copy)]
    pub struct Entity(EntityId) as "entity_id";
}

family! {
    /// The session of a player who is logged in; it ends an hour after the last activity.
    pub SESSION = "session:{entity_id}" {
        kind: Text<Json<Session>>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: refresh(SESSION_LIFE), owner: "zone-server", readers: ["*"],
    }
}

family! {
    /// The players of a zone.
    pub ZONE_PLAYERS = "zone:{zone_id}:players" {
        kind: Set<Id<EntityId>>, partition: shared Shard, parts: (zone_id: ZoneId),
        ttl: refresh(ZONE_LIFE), owner: "zone-server", readers: ["*"], index_of: SESSION,
    }
}

family! {
    /// Where a player is.
    pub POSITION = "player:{entity_id}:pos" {
        kind: Text<PositionText>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: refresh(POSITION_LIFE), owner: "zone-server", readers: ["*"],
    }
}

family! {
    /// The zone of a player. It counts only while the player has a session.
    pub PLAYER_ZONE = "player:{entity_id}:zone" {
        kind: Text<Number<i32>>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: refresh(PLAYER_ZONE_LIFE), owner: "zone-server", readers: ["*"],
    }
}

family! {
    /// Messages between zones. They can be lost: what they are about is stored.
    pub ZONE_CHANNEL = "channel:zone:{zone_id}" {
        kind: Channel<Json<ZoneMessage>>, partition: shared Shard, parts: (zone_id: ZoneId),
        ttl: persistent, owner: "zone-server", readers: ["*"],
    }
}

family! {
    /// The connection of a client to a zone server, for an hour.
    pub CONNECTION = "internal:conn:{connection_id}" {
        kind: Hash<Utf8, Utf8>, partition: shared Shard, parts: (connection_id: Name),
        ttl: refresh(CONNECTION_LIFE), owner: "zone-server", readers: ["*"],
        snapshot: never,
    }
}

family! {
    /// The connections of an entity.
    pub CONNECTIONS = "ember:conns:{entity_id}" {
        kind: Set<Id<Name>>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: refresh(CONNECTION_LIFE), owner: "zone-server", index_of: CONNECTION,
        snapshot: never,
    }
}

family! {
    /// The players of a zone, by the end of their session as it is known.
    pub ZONE_UNTIL = "ember:zone:{zone_id}:until" {
        kind: SortedSet<Id<EntityId>>, partition: shared Shard, parts: (zone_id: ZoneId),
        ttl: refresh(ZONE_LIFE), owner: "zone-server", index_of: SESSION,
    }
}

family! {
    /// The result of a spatial query.
    pub SPATIAL_QUERY = "temp:spatial:query:{query_id}" {
        kind: Text<Json<SpatialQuery>>, partition: shared Shard, parts: (query_id: Name),
        ttl: refresh(SPATIAL_QUERY_LIFE), owner: "zone-server", readers: ["*"],
    }
}

family! {
    /// What an entity did lately, by action: ids of events by their time.
    pub RATE = "ratelimit:{entity_id}:{action}" {
        kind: SortedSet<Utf8>, partition: Entity, parts: (action: Name),
        ttl: refresh(RATE_LIFE), owner: "zone-server", readers: ["*"],
    }
}

family! {
    /// What becomes a play session of history when the session ends.
    pub PLAY = "ember:play:{entity_id}" {
        kind: Text<Json<Play>>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: persistent, owner: "zone-server",
    }
}

family! {
    /// The start of a player's last session, whatever its entity: the next one begins later.
    pub LAST_LOGIN = "ember:login:{player_id}" {
        kind: Text<Number<i64>>, partition: shared Shard, parts: (player_id: EntityId),
        ttl: refresh(LAST_LOGIN_LIFE), owner: "zone-server",
    }
}

family! {
    /// When each session is checked again: it may have expired by then.
    pub SESSIONS_DUE = "ember:sessions:due" {
        kind: SortedSet<Id<EntityId>>, partition: shared Shard, parts: (),
        ttl: persistent, owner: "zone-server", index_of: PLAY,
    }
}

family! {
    /// Where an entity is, if shards are partitions of their own: the authority for who is logged in.
    pub DIRECTORY = "ember:directory:{entity_id}" {
        kind: Text<Json<DirectoryEntry>>, partition: Entity, parts: (),
        ttl: refresh(DIRECTORY_LIFE), owner: "zone-server",
    }
}

family! {
    /// The highest number of an entity that a shard admitted: what carries a lower one comes too late.
    pub ADMITTED = "ember:admitted:{entity_id}" {
        kind: Text<Number<i64>>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: refresh(DIRECTORY_LIFE), owner: "zone-server",
        snapshot: never,
    }
}

family! {
    /// Players on their way to other shards.
    pub HANDOFFS_OUT = "ember:handoffs:{shard}:out" {
        kind: SortedSet<Envelope<Shard>>, partition: Shard, parts: (), ttl: persistent, owner: "zone-server",
        snapshot: never,
    }
}

family! {
    /// The last letter of a shard, and how many wait.
    pub HANDOFFS_STATE = "ember:handoffs:{shard}:state" {
        kind: Text<Json<OutboxState>>, partition: Shard, parts: (), ttl: persistent, owner: "zone-server",
        snapshot: never,
    }
}

family! {
    /// The last letter that came from a shard.
    pub HANDOFFS_RECEIVED = "ember:handoffs:{shard}:from:{sender}" {
        kind: Text<Number<i64>>, partition: Shard, parts: (sender: u16), ttl: persistent, owner: "zone-server",
        snapshot: never,
    }
}

family! {
    /// Letters that were refused. None is, unless another program changed the outbox.
    pub HANDOFFS_DEAD = "ember:handoffs:{shard}:dead" {
        kind: List<Json<DeadLetter>>, partition: Shard, parts: (), ttl: persistent, owner: "zone-server",
        snapshot: never,
    }
}

family! {
    /// A player who arrived from another shard, until a zone server accepts it.
    pub ARRIVAL = "ember:arrival:{entity_id}" {
        kind: Text<Json<Passage>>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: persistent, owner: "zone-server",
    }
}

family! {
    /// A player who left a shard, as it left. A copy for as long as its session lives at least: should the target lose what came
    /// there, the player comes back from it.
    pub DEPARTED = "ember:departed:{entity_id}" {
        kind: Text<Json<Passage>>, partition: shared Shard, parts: (entity_id: EntityId),
        ttl: refresh(SESSION_LIFE), owner: "zone-server",
    }
}

family! {
    /// The arrivals of a zone.
    pub ZONE_ARRIVALS = "ember:zone:{zone_id}:arrivals" {
        kind: Set<Id<EntityId>>, partition: shared Shard, parts: (zone_id: ZoneId),
        ttl: persistent, owner: "zone-server", index_of: ARRIVAL,
    }
}

family! {
    /// When each arrival goes back, or ends.
    pub ARRIVALS_DUE = "ember:arrivals:due" {
        kind: SortedSet<Id<EntityId>>, partition: shared Shard, parts: (),
        ttl: persistent, owner: "zone-server", index_of: ARRIVAL,
    }
}

family! {
    /// Hits that wait for history.
    pub COMBAT_LOG = "ember:log:combat" {
        kind: Log<Json<HitRecord>, RefuseAbove<COMBAT_LOG_MAX>>, partition: shared Shard, parts: (),
        ttl: persistent, owner: "zone-server",
    }
}

family! {
    /// Outbox of play sessions that have ended.
    pub PLAYS_LOG = "ember:log:plays" {
        kind: Log<Json<PlayEnd>, RefuseAbove<PLAYS_LOG_MAX>>, partition: shared Shard, parts: (),
        ttl: persistent, owner: "zone-server",
    }
}

family! {
    /// Outbox of audit entries.
    pub AUDIT_LOG = "ember:log:audit" {
        kind: Log<Json<AuditRecord>, RefuseAbove<AUDIT_LOG_MAX>>, partition: shared Shard, parts: (),
        ttl: persistent, owner: "zone-server",
    }
}

family! {
    /// Which process brings an outbox into history.
    pub DRAINER = "ember:drainer:{log}" {
        kind: Text<Json<LeaseRecord>>, partition: shared Shard, parts: (log: Name),
        ttl: persistent, owner: "zone-server",
        snapshot: never,
    }
}

/// The sessions of a zone.
pub struct InZone;

impl Indexed for InZone {
    type Partition = Shard;
    type Member = EntityId;
    type Value = Session;
    type Codec = Json<Session>;
    type Record = SESSION;
    type Index = ZONE_PLAYERS;

    fn record(entity: &EntityId) -> Key<SESSION> {
        SESSION.key(entity)
    }

    fn member(key: &Key<SESSION>) -> EntityId {
        SESSION.parts(key).0
    }

    fn home(session: &Session) -> Key<ZONE_PLAYERS> {
        ZONE_PLAYERS.key(ZoneId(session.zone_id))
    }

    fn anywhere() -> Option<Shard> {
        Some(Shard::default())
    }
}

/// The key families of DarkAges.
pub fn schema() -> Schema {
    emberkeep_schema::schema![
        SESSION,
        ZONE_PLAYERS,
        POSITION,
        PLAYER_ZONE,
        ZONE_CHANNEL,
        CONNECTION,
        CONNECTIONS,
        ZONE_UNTIL,
        SPATIAL_QUERY,
        RATE,
        PLAY,
        LAST_LOGIN,
        SESSIONS_DUE,
        DIRECTORY,
        ADMITTED,
        HANDOFFS_OUT,
        HANDOFFS_STATE,
        HANDOFFS_RECEIVED,
        HANDOFFS_DEAD,
        ARRIVAL,
        DEPARTED,
        ZONE_ARRIVALS,
        ARRIVALS_DUE,
        COMBAT_LOG,
        PLAYS_LOG,
        AUDIT_LOG,
        DRAINER,
        DAY_ORDER,
        DAY_PLAYERS,
        DAY_SOURCES,
        DAY_STORED,
        DAY_TAKEN,
        EVER_ORDER,
        EVER_PLAYERS,
        EVER_SOURCES,
        EVER_TAKEN,
        BOARD_NAMES,
        BOARD_CHANGED,
        BOARD_BEGUN,
        BOARD_POSITION,
        BOARD_FED,
        BOARD_APPLIED,
        BOARDS_LOG,
        BOARDS_DRAINER
    ]
    .expect("no key belongs to two families, a test holds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{KeyLayout, Topology};

    #[test]
    fn keys_are_those_of_the_document() {
        let layout = KeyLayout::new("", Topology::Single).unwrap();
        let (entity, shard) = (EntityId(12_345), Shard::default());
        let texts = [
            SESSION.key(entity).to_text(&layout, &shard),
            ZONE_PLAYERS.key(ZoneId(42)).to_text(&layout, &shard),
            POSITION.key(entity).to_text(&layout, &shard),
            PLAYER_ZONE.key(entity).to_text(&layout, &shard),
            ZONE_CHANNEL.key(ZoneId(42)).to_text(&layout, &shard),
            CONNECTION.key(Name::new("c-1").unwrap()).to_text(&layout, &shard),
            SPATIAL_QUERY.key(Name::new("q-1").unwrap()).to_text(&layout, &shard),
            RATE.key(Name::new("attack").unwrap()).to_text(&layout, &Entity(entity)),
        ];
        let document = [
            "session:12345",
            "zone:42:players",
            "player:12345:pos",
            "player:12345:zone",
            "channel:zone:42",
            "internal:conn:c-1",
            "temp:spatial:query:q-1",
            "ratelimit:12345:attack",
        ];
        assert_eq!(texts, document);
        assert!(!schema().families().is_empty());
    }
}
