//! Bounds of the server, with their units.

use std::time::Duration;

/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Time for the head of a request, from the beginning of its connection or the answer before. So a connection may rest for as long
/// between two requests, and more than the minute after which balancers commonly let go of it.
pub const HEAD_WAIT: Duration = Duration::from_secs(75);
/// Time for the body of a request.
pub const BODY_WAIT: Duration = Duration::from_secs(30);
/// Time for the whole first head of a connection.
pub const FIRST_HEAD_WAIT: Duration = Duration::from_secs(15);
/// Time for the rest of a body whose request was answered before it arrived.
pub const DRAIN_WAIT: Duration = Duration::from_secs(2);
/// Bytes of a request's head, and of what a connection reads at once.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Requests of one HTTP/2 connection at the same time.
pub const HTTP2_STREAMS_MAX: u32 = 32;
/// Bytes that a request of an HTTP/2 connection may send before they are read.
pub const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// Bytes that all requests of an HTTP/2 connection may send before they are read.
pub const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// Bytes of unfinished bodies of all requests.
pub const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of unfinished bodies of one address, this machine's own apart.
pub const BODIES_BYTES_PER_ADDRESS_MAX: usize = 8 * 1024 * 1024;
/// Connections of all addresses, if the settings do not say.
pub const CONNECTIONS_MAX_DEFAULT: usize = 16_384;
/// Connections of one address, this machine's own apart, if the settings do not say: a whole house may be behind one address.
pub const CONNECTIONS_PER_ADDRESS_DEFAULT: usize = 4_096;
/// Time between two log lines about connections that cannot be accepted, or are too many.
pub const ACCEPT_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// Before a background task that ended or panicked is started again.
pub const TASK_RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Time after which `/healthz` says that a process whose journal has stopped for good needs a restart.
pub const JOURNAL_STOPPED_MAX: Duration = Duration::from_secs(60);
/// Characters of a request id that a caller may choose.
pub const REQUEST_ID_CHARS_MAX: usize = 64;
/// Entries of a page of a list, if the caller does not say.
pub const PAGE_ENTRIES_DEFAULT: usize = 100;
/// Entries of a page of a list, about.
pub const PAGE_ENTRIES_MAX: usize = 1_000;
/// Turns of a sweep that one call makes.
pub const SWEEP_TURNS_MAX: u16 = 1_000;
/// Entries that one call of something due handles.
pub const DUE_LIMIT_MAX: usize = 1_000;
/// Time for requests in flight to end after the server was told to.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// Time between two looks at files that may have been replaced: certificate, key, tokens.
pub const FILES_CHECKED_EVERY: Duration = Duration::from_secs(2);
/// Tokens in a file.
pub const TOKENS_MAX: usize = 1_000;
/// Characters of a token's name.
pub const TOKEN_NAME_CHARS_MAX: usize = 64;
/// Time between two counts of keys by family.
pub const CENSUS_EVERY: Duration = Duration::from_secs(60);
/// Keys that one page of the census looks at, about.
pub const CENSUS_PAGE_KEYS: usize = 500;
/// Time between two pages of the census.
pub const CENSUS_PAUSE: Duration = Duration::from_millis(5);

/// Bytes of a message through a socket.
pub const SOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Bytes that a socket reads at once. The library's own 128 KiB would be most of a connection's memory.
pub const SOCKET_READ_BUFFER_BYTES: usize = 4 * 1024;
/// Time for the first message of a connection.
pub const SOCKET_JOIN_WAIT: Duration = Duration::from_secs(5);
/// Messages until one of them joins a room.
pub const SOCKET_JOIN_ATTEMPTS_MAX: usize = 10;
/// Time between two pings of a socket.
pub const SOCKET_PING_EVERY: Duration = Duration::from_secs(20);
/// Time without a word from a client, pongs included, after which it is gone.
pub const SOCKET_IDLE_MAX: Duration = Duration::from_secs(60);
/// Time in which a socket must take a message.
pub const SOCKET_WRITE_WAIT: Duration = Duration::from_secs(10);
/// Time in which a socket that was ended takes its close frame and is still read from, so that its client hears why.
pub const SOCKET_DRAIN_WAIT: Duration = Duration::from_secs(1);
/// Messages that wait for a socket, but for the state; news beyond it are told by the state alone.
pub const SOCKET_QUEUE_MESSAGES_MAX: usize = 64;
/// Bytes of these messages. One state may wait besides.
pub const SOCKET_QUEUE_BYTES_MAX: usize = 256 * 1024;
/// Sockets of one address, this machine's own apart: a whole house may be behind one address.
pub const SOCKETS_PER_ADDRESS_MAX: usize = 4_096;
/// Sockets of one room on this server. In a full room a master or a device with a player takes the place of a socket that
/// has neither.
pub const ROOM_SOCKETS_MAX: usize = 256;
/// Time between two states of a room to the same socket. The first change goes out at once, later ones are merged.
pub const ROOM_STATE_EVERY: Duration = Duration::from_millis(100);
/// Bytes that a room's states and events make up per second, to all its sockets on this server; beyond it states come
/// less often.
pub const ROOM_BYTES_PER_SECOND: usize = 8 * 1024 * 1024;
/// Seats of a room that are told before others get their turn.
pub const SEATS_TOLD_AT_ONCE: usize = 16;
/// Messages of a connection per second, in the long run.
pub const SOCKET_MESSAGES_PER_SECOND: u32 = 20;
/// Messages of a connection at once, after it was silent for a while.
pub const SOCKET_MESSAGES_BURST: u32 = 40;
/// Messages beyond the pace after which a connection is ended.
pub const SOCKET_OVER_PACE_MAX: u32 = 100;
/// How many of these are forgiven in a second.
pub const SOCKET_OVER_PACE_FORGIVEN_PER_SECOND: u32 = 1;
/// Time between two looks at a room without a reason; every seat is told what it was sent last.
pub const LOOK_EVERY: Duration = Duration::from_secs(20);
/// Before the store is asked again about rooms, when it did not answer.
pub const ROOMS_RETRY: Duration = Duration::from_secs(1);
/// How often sockets that are about to end are counted.
pub const SOCKETS_COUNTED_EVERY: Duration = Duration::from_millis(10);

/// Rooms that an address may create or set up per second, if the settings do not say.
pub const ROOMS_PER_SECOND_DEFAULT: u32 = 5;
/// Seconds of that which an address may use at once, after it was quiet for as long.
pub const ROOMS_BURST_SECONDS: u32 = 60;
/// Addresses whose pace is known. Beyond it newcomers are refused until somebody has rested.
pub const CALLERS_PACED_MAX: usize = 100_000;
/// Time between two searches of a full table for addresses that have rested.
pub const CALLERS_PURGED_EVERY: Duration = Duration::from_secs(1);

/// Missing rooms that an address may name per minute, if the settings do not say.
pub const MISSING_ROOMS_PER_MINUTE_DEFAULT: u32 = 6;
/// Missing rooms that an address may name at once: a household that mistypes.
pub const MISSING_ROOMS_BURST: u32 = 30;
/// Rooms that addresses have found, of which each generation remembers so many. They pass when the address is limited.
pub const FOUND_ROOMS_REMEMBERED_MAX: usize = 50_000;

/// Wrong master keys of a caller that cost nothing.
pub const KEY_FAILURES_FREE: u32 = 3;
/// What the next one costs; each further one twice as much.
pub const KEY_WAIT_FIRST: Duration = Duration::from_millis(250);
/// What one costs at most.
pub const KEY_WAIT_MAX: Duration = Duration::from_secs(8);
/// Time after which a caller's wrong keys are forgotten.
pub const KEY_FAILURES_REMEMBERED: Duration = Duration::from_secs(600);
/// Rooms and addresses of which wrong keys are remembered; beyond it the oldest are forgotten.
pub const KEY_FAILURES_REMEMBERED_MAX: usize = 10_000;

const _: () = assert!(SOCKET_PING_EVERY.as_secs() * 2 < SOCKET_IDLE_MAX.as_secs());
const _: () = assert!(BODY_BYTES_MAX < BODIES_BYTES_PER_ADDRESS_MAX);
const _: () = assert!(BODIES_BYTES_PER_ADDRESS_MAX < BODIES_BYTES_MAX);
const _: () = assert!(CONNECTIONS_PER_ADDRESS_DEFAULT < CONNECTIONS_MAX_DEFAULT);
const _: () = assert!(FIRST_HEAD_WAIT.as_secs() < HEAD_WAIT.as_secs());
const _: () = assert!(HTTP2_STREAM_WINDOW_BYTES <= HTTP2_CONNECTION_WINDOW_BYTES);
// One connection alone cannot use up what an address may have.
const _: () = assert!(HTTP2_STREAMS_MAX as usize * BODY_BYTES_MAX <= BODIES_BYTES_PER_ADDRESS_MAX);
