//! Limits of the server, with their units.

use std::time::Duration;

/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the body of a request with many entries.
pub const BULK_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Time for the head of a request, counted from the previous response. It is also how long a connection may
/// be idle, so it is longer than the minute after which load balancers commonly close one.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// Time for the body of a request.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for the TLS handshake of a connection.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the first head of a connection, after the TLS handshake.
pub const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for the rest of a body whose request was answered early.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a request's head, and of a connection's read buffer.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Bytes of partial bodies of all requests.
pub const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of partial bodies of one address; loopback is exempt.
pub const BODIES_BYTES_PER_ADDRESS_MAX: usize = 8 * 1024 * 1024;
/// `Retry-After` of a request that was refused because of too many partial bodies.
pub const BODY_RETRY: Duration = Duration::from_secs(1);
/// `Retry-After` of store errors: long enough for a failover to begin, short for a person who waits.
pub const STORE_RETRY: Duration = Duration::from_secs(1);
/// `Retry-After` of room creation and setup over the rate.
pub const ROOM_RATE_RETRY: Duration = Duration::from_secs(1);
/// Default maximum of open connections.
pub const CONNECTIONS_MAX_DEFAULT: usize = 16_384;
/// Default maximum of open connections of one address; loopback is exempt. Many clients may share one
/// address.
pub const CONNECTIONS_PER_ADDRESS_DEFAULT: usize = 4_096;
/// Pause after an accept that failed, for example without a free file descriptor.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// Minimum time between two log lines about refused or failed connections.
pub const ACCEPT_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// Pause before a background task that ended or panicked is restarted.
pub const TASK_RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Time after which `/healthz` asks for a restart of a process whose journal stopped for good.
pub const JOURNAL_STOPPED_MAX: Duration = Duration::from_secs(60);
/// Characters of a request id that a client sends.
pub const REQUEST_ID_CHARS_MAX: usize = 64;
/// Default name of a server in events and play sessions.
pub const SERVER_INSTANCE_DEFAULT: &str = "emberkeep";
/// Default number of entries of a page.
pub const PAGE_ENTRIES_DEFAULT: usize = 100;
/// Maximum number of entries of a page, approximately.
pub const PAGE_ENTRIES_MAX: usize = 1_000;
/// Turns of a sweep in one call.
pub const SWEEP_TURNS_MAX: u16 = 1_000;
/// Due entries that one call handles.
pub const DUE_LIMIT_MAX: usize = 1_000;
/// Default number of expired sessions of a list.
pub const SESSIONS_LISTED_DEFAULT: usize = 100;
/// Expired sessions that a list has at most.
pub const SESSIONS_LISTED_MAX: usize = 1_000;
/// Default number of players on each side of one on a leaderboard.
pub const BOARD_AROUND_DEFAULT: usize = 5;
/// The most players on each side.
pub const BOARD_AROUND_MAX: usize = 499;
/// Expired sessions that one call closes.
pub const SESSIONS_CLOSED_MAX: usize = 10_000;
/// Positions that one call sets.
pub const POSITIONS_SET_MAX: usize = 10_000;
/// Positions that one call reads.
pub const POSITIONS_READ_MAX: usize = 1_000;
/// Ticks of a zone that one call reports.
pub const ZONE_SAMPLES_MAX: usize = 2_000;
/// Pairs of zone and server whose ticks are collected in this process.
pub const ZONE_REPORTERS_MAX: usize = 1_024;
/// Pause between two passes over expired sessions of DarkAges.
pub const DARKAGES_SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Pause after a pass that had as many sessions as it may have.
pub const DARKAGES_SWEEP_PAUSE: Duration = Duration::from_millis(50);
/// Sessions of one pass.
pub const DARKAGES_SWEEP_SESSIONS_MAX: usize = 320;
/// How long a pass examines the directory of DarkAges, at most by one page.
pub const DARKAGES_DIRECTORY_BUDGET: Duration = Duration::from_millis(500);
/// Time from the beginning of one walk through the directory to that of the next one, at least.
pub const DARKAGES_DIRECTORY_EVERY: Duration = Duration::from_secs(30);
/// Minimum time between two log lines about the same trouble of DarkAges.
pub const DARKAGES_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// Time for requests in flight to finish during shutdown.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// How long a shutdown waits for the consumers of history to stop.
pub const HISTORY_STOP_GRACE: Duration = Duration::from_secs(5);
/// How long a shutdown delivers what is left in the logs.
pub const HISTORY_DRAIN_GRACE: Duration = Duration::from_secs(5);
/// Time between two checks of certificate, key and token file for changes.
pub const FILES_CHECKED_EVERY: Duration = Duration::from_secs(2);
/// Tokens in a file.
pub const TOKENS_MAX: usize = 1_000;
/// Characters of a token's name.
pub const TOKEN_NAME_CHARS_MAX: usize = 64;
/// Pause between two counts of keys by family.
pub const KEY_COUNT_EVERY: Duration = Duration::from_secs(60);
/// Keys per page of the count, approximately.
pub const KEY_COUNT_PAGE_KEYS: usize = 500;
/// Pause between two pages of the count.
pub const KEY_COUNT_PAUSE: Duration = Duration::from_millis(5);

/// Bytes of a WebSocket message.
pub const SOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Read buffer of a WebSocket. The library's default of 128 KiB would be most of a connection's memory.
pub const SOCKET_READ_BUFFER_BYTES: usize = 4 * 1024;
/// Time for JOIN_ROOM after the handshake.
pub const SOCKET_JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Messages before which a connection must have joined a room.
pub const SOCKET_JOIN_ATTEMPTS_MAX: usize = 10;
/// Interval of WebSocket pings.
pub const SOCKET_PING_EVERY: Duration = Duration::from_secs(20);
/// Time without any frame, pongs included, after which a connection is closed.
pub const SOCKET_IDLE_MAX: Duration = Duration::from_secs(60);
/// Time for a WebSocket write.
pub const SOCKET_WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the closing handshake, in which the client receives the close reason.
pub const SOCKET_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Messages in a send queue, without the state. Beyond it events are dropped in favour of the state.
pub const SOCKET_QUEUE_MESSAGES_MAX: usize = 64;
/// Bytes of these messages. One state may be queued besides.
pub const SOCKET_QUEUE_BYTES_MAX: usize = 256 * 1024;
/// WebSockets of one address; loopback is exempt. Many clients may share one address.
pub const SOCKETS_PER_ADDRESS_MAX: usize = 4_096;
/// WebSockets of one room on this server. In a full room, a master or a device with a player replaces a
/// connection that has neither.
pub const ROOM_SOCKETS_MAX: usize = 256;
/// Minimum time between two states to the same connection. The first change is sent at once, later ones are
/// merged.
pub const ROOM_STATE_EVERY: Duration = Duration::from_millis(100);
/// Bytes per second that one room sends to all its connections on this server. Beyond it states are sent less
/// often.
pub const ROOM_BYTES_PER_SECOND: usize = 8 * 1024 * 1024;
/// Subscribers that a hub serves before it yields to other tasks.
pub const SUBSCRIBERS_PER_YIELD: usize = 16;
/// Sustained messages per second of a connection.
pub const SOCKET_MESSAGES_PER_SECOND: u32 = 20;
/// Burst of messages of a connection.
pub const SOCKET_MESSAGES_BURST: u32 = 40;
/// Dropped messages after which a connection is closed.
pub const SOCKET_DROPS_MAX: u32 = 100;
/// Dropped messages that are forgiven per second.
pub const SOCKET_DROPS_FORGIVEN_PER_SECOND: u32 = 1;
/// Interval in which a hub reads its room without a signal and sends every subscriber its sequence.
pub const ROOM_POLL_EVERY: Duration = Duration::from_secs(20);
/// Pause before a failed read of a room is repeated.
pub const ROOMS_RETRY: Duration = Duration::from_secs(1);
/// Interval in which a shutdown checks for open WebSockets.
pub const SOCKETS_COUNTED_EVERY: Duration = Duration::from_millis(10);

/// Interval of the comments that keep a stream of events open.
pub const STREAM_HEARTBEAT_EVERY: Duration = Duration::from_secs(15);

/// Interval in which the present tick of Galaxy is looked for while there are watchers.
pub const TICK_POLL_EVERY: Duration = Duration::from_millis(20);
/// Minimum time between two ticks that a watcher of Galaxy is sent, in the long run.
pub const TICK_FRAME_EVERY: Duration = Duration::from_millis(100);
/// Pause before a failed read of the present tick, or a failed subscription, is repeated.
pub const TICK_RETRY: Duration = Duration::from_secs(1);
/// Star systems that are watched at a time on this server.
pub const SYSTEMS_WATCHED_MAX: usize = 1_024;

/// Default rate of room creation and setup per address and second.
pub const ROOMS_PER_SECOND_DEFAULT: u32 = 5;
/// Burst of room creation and setup, in seconds of the rate.
pub const ROOMS_BURST_SECONDS: u32 = 60;
/// Addresses with a token bucket. Beyond it new addresses are refused until a bucket is full again.
pub const RATE_LIMITED_ADDRESSES_MAX: usize = 100_000;
/// Minimum time between two scans of a full table for full buckets.
pub const RATE_LIMITS_PURGED_EVERY: Duration = Duration::from_secs(1);

/// Default rate of missing rooms that an address may name per minute.
pub const MISSING_ROOMS_PER_MINUTE_DEFAULT: u32 = 6;
/// Burst of missing rooms: a household that mistypes.
pub const MISSING_ROOMS_BURST: u32 = 30;
/// Pairs of address and found room per generation. They pass while the address is limited.
pub const FOUND_ROOMS_REMEMBERED_MAX: usize = 50_000;

/// Wrong master keys that are answered at once.
pub const KEY_FAILURES_FREE: u32 = 3;
/// Delay of the next one; it doubles with each further one.
pub const KEY_DELAY_FIRST: Duration = Duration::from_millis(250);
/// The longest delay before a wrong key is answered.
pub const KEY_DELAY_MAX: Duration = Duration::from_secs(8);
/// Time after which wrong keys are forgotten.
pub const KEY_FAILURES_REMEMBERED: Duration = Duration::from_secs(600);
/// Pairs of room and address with wrong keys; beyond it the oldest are forgotten.
pub const KEY_FAILURES_REMEMBERED_MAX: usize = 10_000;

const _: () = assert!(SOCKET_PING_EVERY.as_secs() * 2 < SOCKET_IDLE_MAX.as_secs());
const _: () = assert!(BODY_BYTES_MAX < BULK_BODY_BYTES_MAX);
const _: () = assert!(BULK_BODY_BYTES_MAX < BODIES_BYTES_PER_ADDRESS_MAX);
const _: () = assert!(BODIES_BYTES_PER_ADDRESS_MAX < BODIES_BYTES_MAX);
const _: () = assert!(CONNECTIONS_PER_ADDRESS_DEFAULT < CONNECTIONS_MAX_DEFAULT);
const _: () = assert!(FIRST_HEAD_TIMEOUT.as_secs() < HEAD_TIMEOUT.as_secs());
