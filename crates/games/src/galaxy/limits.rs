//! The limits of Galaxy. Units come last in a name.

use std::time::Duration;

/// Longest name of a ship, a station, a rule or a target.
pub const NAME_BYTES_MAX: usize = 64;
/// Ships of one player.
pub const SHIPS_PER_PLAYER_MAX: usize = 256;
/// Automation rules of one ship.
pub const RULES_PER_SHIP_MAX: usize = 100;
/// Conditions of a rule's trigger.
pub const CONDITIONS_MAX: usize = 5;
/// Actions of a rule.
pub const ACTIONS_MAX: usize = 5;
/// Highest priority number of a rule. Lower numbers come first.
pub const PRIORITY_MAX: u8 = 99;
/// Longest trigger, actions or parameters, as JSON.
pub const JSON_BYTES_MAX: usize = 16 * 1024;
/// Longest word of a condition, a maneuver's type, phase or status.
pub const WORD_BYTES_MAX: usize = 64;
/// Lowest tick rate and time scale.
pub const RATE_MIN: f64 = 0.1;
/// Highest tick rate (ticks per second) and time scale.
pub const RATE_MAX: f64 = 100.0;
/// How far a time scale may be from 1 to be synchronized with UTC.
pub const SYNC_SCALE_TOLERANCE: f64 = 1e-6;
/// How much the time scale is adjusted at most to meet UTC.
pub const SYNC_ADJUSTMENT_MAX: f64 = 0.05;
/// Longest time that one tick may last.
pub const TICK_STEP_MAX: Duration = Duration::from_secs(3_600);
/// Ticks whose chunks are kept, the present one included.
pub const TICKS_KEPT: i64 = 3;
/// Entities of one chunk of a tick.
pub const CHUNK_ENTITIES_MAX: usize = 250;
/// Chunks that one read of a tick fetches.
pub const CHUNKS_PER_READ: usize = 16;
/// Hashes that one commit of a tick updates.
pub const HASHES_PER_COMMIT: usize = 50;
/// Commits of a tick that are in flight. Those that wait share a call to the server, which must stay below 2 ms.
pub const COMMITS_AT_ONCE: usize = 3;
/// Entities of the galaxy, all kinds together.
pub const ENTITIES_MAX: usize = 200_000;
/// Queued changes that wait for the next tick.
pub const CHANGES_MAX: usize = 1_000_000;
/// Queued changes that one read fetches.
pub const CHANGES_PER_READ: usize = 500;
/// How often a reader follows the present tick, if its chunks were removed while it read them.
pub const READ_ATTEMPTS_MAX: usize = 64;
/// How long the tick engine's lease lasts unless it is renewed.
pub const TICK_LEASE: Duration = Duration::from_secs(10);
/// How long a pin lasts at most unless it is renewed.
pub const PIN_MAX: Duration = Duration::from_secs(3_600);
/// Longest name of the holder of a lease or a pin, and of a gateway.
pub const HOLDER_BYTES_MAX: usize = 64;
/// Pins at a time.
pub const PINS_MAX: usize = 64;
/// How long a gateway's lease lasts; it renews it every 10 s.
pub const GATEWAY_LEASE: Duration = Duration::from_secs(30);
/// How often a gateway renews its lease.
pub const GATEWAY_RENEW_EVERY: Duration = Duration::from_secs(10);
/// A connection without a message for so long is closed.
pub const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(60);
/// How often a client sends a ping.
pub const CLIENT_PING_EVERY: Duration = Duration::from_secs(30);
/// How long a client waits for a pong before it reconnects.
pub const CLIENT_PONG_WAIT: Duration = Duration::from_secs(10);
/// Connections of one player.
pub const CONNECTIONS_PER_PLAYER_MAX: usize = 64;
/// Gateways at a time.
pub const GATEWAYS_MAX: usize = 256;
/// Entities that one transaction checks or removes.
pub const ENTITIES_PER_TRANSACTION: usize = 50;
/// Keys that one page of a scan or of an index examines.
pub const KEYS_PER_PAGE: usize = 500;

const _: () = assert!(HASHES_PER_COMMIT <= 100);
const _: () = assert!(CHUNK_ENTITIES_MAX * 1_024 < emberkeep_hot::limits::REPLY_BYTES_MAX);
const _: () = assert!(KEYS_PER_PAGE <= emberkeep_hot::limits::SCAN_PAGE_MAX);
const _: () = assert!(SHIPS_PER_PLAYER_MAX < emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(RULES_PER_SHIP_MAX < emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(GATEWAY_LEASE.as_secs() >= 3 * GATEWAY_RENEW_EVERY.as_secs());
