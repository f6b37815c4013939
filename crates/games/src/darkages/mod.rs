//! DarkAges, an MMO with zones: sessions, zones, positions and fights in hot state, and all that happened in history.
//!
//! Promises:
//! 1. A player has one session and is in at most one zone. Of many logins at once one session is left.
//! 2. A hit changes both players and is in history once, whatever fails: state and event are one commit.
//! 3. Exactly one hit kills.
//! 4. A session that ends, by logout or by its TTL, becomes one play session of history.
//! 5. An older position never replaces a newer one.
//! 6. A hit is on the [leaderboards](boards) within a second, once.
//! 7. A player who is handed off, also between shards of a Cluster, exists once, wherever a process ends.

pub mod archive;
pub mod boards;
pub mod channel;
mod error;
pub mod events;
pub mod history;
pub mod limits;
pub mod model;
mod passage;
mod realm;
mod schema;
mod service;
mod shards;

pub use channel::{EntityNotice, MessageType, Payload, ZoneEvent, ZoneMessage, ZoneSubscription};
pub use error::{Error, Result};
pub use events::consumers;
pub use model::{EntityId, Play, Point, Position, Session, ZoneId};
pub use passage::Passage;
pub use realm::{BanRequest, Banned, LoggedIn, Realm, RealmError};
pub use schema::{
    ADMITTED, ARRIVAL, ARRIVALS_DUE, AUDIT_LOG, COMBAT_LOG, CONNECTION, CONNECTIONS, DEPARTED, DIRECTORY,
    DRAINER, Entity, HANDOFFS_DEAD, HANDOFFS_OUT, HANDOFFS_RECEIVED, HANDOFFS_STATE, InZone, LAST_LOGIN,
    PLAY, PLAYER_ZONE, PLAYS_LOG, POSITION, RATE, SESSION, SESSIONS_DUE, SPATIAL_QUERY, Shard, ZONE_ARRIVALS,
    ZONE_CHANNEL, ZONE_PLAYERS, ZONE_UNTIL, schema,
};
pub use service::{
    Connection, ConnectionRequest, Damage, DamageRequest, DarkAges, DirectoryChecked, Fighter, HandOff,
    HandOffRequest, HandOffsSwept, Heartbeat, LoginPolicy, LoginRequest, Nearby, NearbyRequest,
    PositionsReport, RateCheck, SessionChange, SessionSweep,
};
pub use shards::Shards;
