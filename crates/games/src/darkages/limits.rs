//! The limits of DarkAges. Units come last in a name.

use std::time::Duration;

/// Life of a session since its last activity.
pub const SESSION_LIFE: Duration = Duration::from_secs(3_600);
/// Life of a zone's members since the last enter, leave or heartbeat.
pub const ZONE_LIFE: Duration = Duration::from_secs(1_800);
/// Life of a position since it was set.
pub const POSITION_LIFE: Duration = Duration::from_secs(120);
/// Life of a player's zone since it was set.
pub const PLAYER_ZONE_LIFE: Duration = Duration::from_secs(7_200);
/// How long the start of a player's last session is known: no two sessions of a player begin in the same millisecond.
pub const LAST_LOGIN_LIFE: Duration = Duration::from_secs(60);
/// Life of the events of a rate limit, unless its window is longer.
pub const RATE_LIFE: Duration = Duration::from_secs(60);
/// Hits that wait for history before a further one is refused: minutes of a large battle.
pub const COMBAT_LOG_MAX: usize = 1_000_000;
/// Play sessions that wait for history. Their log is their own: a full one of hits does not keep players from leaving.
pub const PLAYS_LOG_MAX: usize = 200_000;
/// Audit entries that wait for history: the login and the end of each play session that waits, and as many others. So this
/// log is not what keeps players from leaving, unless servers write more entries than players come and go.
pub const AUDIT_LOG_MAX: usize = 4 * PLAYS_LOG_MAX;
/// Longest name of a client, a player, a version and a server.
pub const TEXT_BYTES_MAX: usize = 128;
/// Longest status of a session.
pub const STATUS_BYTES_MAX: usize = 32;
/// Longest details of an audit entry, as JSON.
pub const DETAILS_BYTES_MAX: usize = 4 * 1024;
/// Highest health, and the most damage of one hit.
pub const HEALTH_MAX: i32 = 1_000_000_000;
/// Life of a directory entry since the sweep saw its session, and of what guards a shard against what comes late: longer than
/// a session lives, also one that is on its way.
pub const DIRECTORY_LIFE: Duration = Duration::from_secs(3 * 3_600);
/// How often the sweep compares a session with the directory, if shards are partitions of their own.
pub const DIRECTORY_CHECK_EVERY: Duration = Duration::from_secs(60);
/// Keys that one check of the directory examines, whatever they are.
pub const DIRECTORY_PER_CHECK: usize = 1_000;
/// How long a login that refuses to replace a session takes another one for one that is about to begin: a login takes
/// milliseconds, and a process that ended in the middle of one must not keep a player out.
pub const LOGIN_WAIT: Duration = Duration::from_secs(5);
/// How long an arrival waits for a zone server to accept it; then it goes back.
pub const ARRIVAL_WAIT: Duration = Duration::from_secs(30);
/// How long a hand-off waits until the player has arrived. What takes longer is delivered by the sweep.
pub const DELIVERY_WAIT: Duration = Duration::from_secs(2);
/// Arrivals that one call lists.
pub const ARRIVALS_MAX: usize = 1_000;
/// Shards of a game: each has outboxes and a sweep.
pub const SHARDS_MAX: usize = 256;
/// Ranges of zones that shards are declared by.
pub const SHARD_RANGES_MAX: usize = 4_096;
/// Life of a connection since it was opened or touched.
pub const CONNECTION_LIFE: Duration = Duration::from_secs(3_600);
/// Connections of one entity.
pub const CONNECTIONS_PER_ENTITY_MAX: usize = 64;
/// Life of the cached result of a spatial query.
pub const SPATIAL_QUERY_LIFE: Duration = Duration::from_secs(300);
/// Longest id of an event of a rate limit.
pub const EVENT_ID_BYTES_MAX: usize = 128;
/// Members of a zone that one read returns.
pub const MEMBERS_PER_READ: usize = 1_000;
/// Members of a zone that one transaction checks or changes.
pub const MEMBERS_PER_TRANSACTION: usize = 100;
/// Longest payload of a message between zones, as JSON.
pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// Zones of one subscription.
pub const SUBSCRIBED_ZONES_MAX: usize = 256;
/// Sessions that one transaction of the sweep closes.
pub const CLOSED_PER_TRANSACTION: usize = 32;
/// Expired sessions that one call lists.
pub const EXPIRED_MAX: usize = 1_000;
/// Sessions that were due of which one read finds out whether they have ended.
pub const EXPIRED_PER_READ: usize = 250;
/// Positions that one call reads at once.
pub const POSITIONS_PER_READ: usize = 1_000;
/// Entries of the directory that one call reads or checks at once.
pub const DIRECTORY_READS_AT_ONCE: usize = 64;
/// Positions of one call.
pub const POSITIONS_MAX: usize = 50_000;
/// Life of the leaderboard of a day, since its first score.
pub const DAY_BOARD_LIFE: Duration = Duration::from_secs(48 * 3_600);
/// How long is known what a board of a day took before it was restored: longer than the board lives.
pub const DAY_TAKEN_LIFE: Duration = Duration::from_secs(72 * 3_600);
/// How far the clock of a server that reports events may be ahead.
pub const BOARD_CLOCK_SKEW: Duration = Duration::from_secs(600);
/// Players of one answer about a leaderboard.
pub const BOARD_ROWS_MAX: usize = 1_000;
/// Updates of leaderboards that wait for history.
pub const BOARDS_LOG_MAX: usize = 200_000;
/// Scores of one update of a leaderboard.
pub const BOARD_MOVES_PER_UPDATE: usize = 250;
/// Updates of leaderboards that one pass sends to history.
pub const BOARD_UPDATES_PER_PASS: usize = 200;
/// How often changed scores are sent to history.
pub const BOARD_STORED_EVERY: Duration = Duration::from_secs(1);

const _: () = assert!(AUDIT_LOG_MAX >= 3 * PLAYS_LOG_MAX);
const _: () = assert!(DAY_TAKEN_LIFE.as_secs() > DAY_BOARD_LIFE.as_secs());
const _: () = assert!(DIRECTORY_LIFE.as_secs() > 2 * SESSION_LIFE.as_secs());
const _: () = assert!(MEMBERS_PER_READ <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(CONNECTIONS_PER_ENTITY_MAX < emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(BOARD_ROWS_MAX <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(BOARD_MOVES_PER_UPDATE < emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
