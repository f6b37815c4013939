//! Galaxy, a space simulation of several services: moving ships, whole ticks, and an owner for each key.
//!
//! Promises:
//! 1. A reader of several entities sees one whole tick, wherever a tick engine is stopped; a tick that was staged is
//!    completed by the next engine.
//! 2. One tick engine at a time: one that was stalled changes nothing after another took over. `game:tick` never goes
//!    back within a generation.
//! 3. An entity and its index entries change together; stale entries are not returned.
//! 4. A ship that was removed does not come back, and a change of position or fuel by another service is in the next tick.
//! 5. A service writes what it owns, and in named operations what these need; anything else is
//!    [`Forbidden`](emberkeep_hot::Error::Forbidden).

mod error;
pub mod limits;
pub mod model;
mod rules;
mod schema;
mod service;
mod services;
mod tick;

pub use error::{Error, Result};
pub use model::{
    AttitudeMode, Body, BodyName, Controls, EntityKind, GameTime, Jumpgate, JumpgateId, Motion, NewShip,
    PlayerId, Quaternion, RuleId, RuleMode, Ship, ShipClass, ShipId, Station, StationId, SystemId,
    TargetType, Vector,
};
pub use rules::{Condition, Trigger};
pub use schema::{
    ACTIVE_SHIP, BODY, CHANGES, CHUNK, DELETED, ERA, FLEET, GATEWAY_NOTICES, GATEWAY_SOCKETS, GATEWAYS,
    Galaxy, HEAD, JUMPGATE, KEPT, MANEUVER, ONLINE, PAUSED, PINS, PLAYER_SOCKETS, REGISTRATION_OPEN, RULE,
    RULES, SHIP, STAGED, STATION, SYSTEM_BODIES, SYSTEM_JUMPGATES, SYSTEM_SHIPS, SYSTEM_STATIONS, TICK,
    TICK_LEASE, TICK_RATE, TIME, TIME_DRIFT, TIME_SCALE, TIME_SYNC, TOTAL_SPAWNS, schema,
};
pub use service::*;
pub use services::{
    API_GATEWAY, CREATE_BODY, DELETE_PLAYER, DISABLE_RULE, GALAXY, PHYSICS, PLAYERS, REMOVE_SHIP, RENAME,
    RESET, RESTORE, ROLL_FORWARD, SPAWN, STAGE, SWITCH, TICK_ENGINE,
};
pub use tick::*;
