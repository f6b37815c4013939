//! Every bound of the Redis engine. Units and qualifiers stand last.

use emberkeep_hot::limits::TRANSACTION_DEADLINE_DEFAULT;
use std::time::Duration;

/// Above this a digest stands for the reply that a body saw.
pub const DIGEST_ABOVE_BYTES: usize = 4 * 1024;
/// Most transactions in one commit.
pub const BATCH_TRANSACTIONS_MAX: usize = 256;
/// Most bytes of replies and writes in one commit.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Reads that transactions still miss, in one call; a single transaction may ask for more.
pub const BATCH_FETCHES_MAX: usize = 512;
/// Strings from which on a plain read asks for them by one command instead of a script. If one is not there the script is
/// asked after all, so it must be worth it.
pub const MGET_READS_MIN: usize = 256;
/// Most keys in one commit.
pub const BATCH_KEYS_MAX: usize = 256;
/// Commits of one partition in in_flight at a time, each on its own sequence.
pub const COMMITS_IN_FLIGHT_MAX: usize = 2;
/// Stale answers after which a transaction asks for the turn.
pub const STALE_BEFORE_LEASE: u32 = 2;
/// Stale answers after which a transaction runs alone, so that it holds up nobody who shares a key with it.
pub const STALE_BEFORE_OWN_GROUP: u32 = 6;
/// Runs of a body in a row that each miss a read after an answer: a passed deadline is the body's doing then, not the
/// backend's.
pub const MISSES_BEFORE_CONFLICT: u32 = 8;
/// Answers in a row after which a problem of the backend is no reason any more for a deadline that passes.
pub const ANSWERS_BEFORE_PROBLEM_IS_OVER: u32 = 3;
/// How long a lease keeps others from writing the key, beside the owner's round trip: its next commit comes that much later.
pub const LEASE_MIN: Duration = Duration::from_millis(30);
/// Longest round trip that leases and allowances follow. A lease of an owner that has gone blocks a key for no longer
/// than this and [`LEASE_MIN`].
pub const ROUND_TRIP_MAX: Duration = Duration::from_millis(1_000);
/// A round trip from which on a transaction asks for a lease with its first stale answer.
pub const FAR_ROUND_TRIP: Duration = Duration::from_millis(20);
/// Pause of a transaction that was told to wait for somebody else's turn; twice as long each time.
pub const LEASE_POLL: Duration = Duration::from_millis(1);
/// Longest such pause.
pub const LEASE_POLL_MAX: Duration = Duration::from_millis(16);
/// How long guesses for a key are not trusted after one proved stale.
pub const CONTENDED: Duration = Duration::from_millis(50);
/// How long it is trusted that our user may run a command.
pub const ACL_CHECK_VALID: Duration = Duration::from_secs(1);
/// Life of a receipt, and of a closed sequence.
pub const RECEIPT_TTL: Duration = Duration::from_secs(60);
/// Slots of a server that are tried for the write before a WAIT, when the partition's own is on its way elsewhere.
pub const WAIT_SLOTS_MAX: usize = 4;
/// Life of the small key that is written before a WAIT.
pub const WAIT_KEY_TTL: Duration = Duration::from_secs(60);
/// Largest difference between the time that a transaction used and the server's at its commit, beside the time that the
/// commit takes to get there.
pub const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_millis(100);
/// Largest such difference in all.
pub const CLOCK_ALLOWANCE_MAX: Duration = Duration::from_secs(3);
/// How far the time that bodies see may be ahead of their server's clock because another server's was shown before.
/// Servers that differ by more are each followed by themselves: lives would be wrong by as much.
pub const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(3);
/// Largest difference of a commit that used no time: a copy of it that comes later is refused.
pub const COMMIT_LATENESS_MAX: Duration = Duration::from_secs(20);
/// How often the server's time is asked for when no transaction needs it.
pub const CLOCK_REFRESH: Duration = Duration::from_secs(1);
/// A reply counts as lost when nothing arrives on its connection for so long; the sequence's receipt tells what happened.
pub const REPLY_WAIT: Duration = Duration::from_millis(700);
/// Time to open a connection.
pub const CONNECT_WAIT: Duration = Duration::from_millis(1_000);
/// Time for one server of a Cluster to tell the map of slots, before another is asked.
pub const MAP_WAIT: Duration = Duration::from_millis(300);
/// How often a subscription's connection is asked whether it is still there. Silence is no sign of life: a peer that
/// vanished without a word looks like one that has nothing to say.
pub const SUBSCRIPTION_PING: Duration = Duration::from_secs(1);
/// A subscription's connection that does not answer for this long is lost: with the above, a gap is noticed in 3 s.
pub const SUBSCRIPTION_PING_WAIT: Duration = Duration::from_secs(2);
/// Pause between two attempts after an answer that proves "not executed".
pub const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// Longest such pause.
pub const RETRY_PAUSE_MAX: Duration = Duration::from_millis(50);
/// Slots of a Cluster.
pub const SLOTS: usize = 16_384;
/// Redirects followed at once before the pause.
pub const REDIRECTS_MAX: u32 = 5;
/// What the engine remembers of a partition's replies, as guesses.
pub const CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What the engine remembers of all partitions together; those that were used least recently give back first.
pub const CACHE_BYTES_TOTAL_MAX: usize = 64 * 1024 * 1024;
/// What a key weighs in the table of those that are remembered, beside its replies.
pub const CACHE_KEY_BYTES: usize = 256;
/// Keys of a partition that the engine remembers anything of.
pub const CACHE_KEYS_MAX: usize = 65_536;
/// Different reads of one key that are remembered: each is carried over every own write of the key. More only if one
/// call brought them, and until the next one.
pub const CACHE_READS_PER_KEY_MAX: usize = 64;
/// Elements at the head of a list that are remembered when others were taken away.
pub const CACHE_LIST_HEAD_MAX: usize = 256;
/// Longest text that is remembered although nobody has read it, because we wrote it.
pub const CACHE_WRITTEN_TEXT_BYTES_MAX: usize = 4 * 1024;
/// A partition without work for this long gives its memory back.
pub const PARTITION_IDLE: Duration = Duration::from_secs(30);
/// Time a caller waits beyond its deadline for an answer that is on its way.
pub const DEADLINE_GRACE: Duration = Duration::from_millis(20);

/// Runs that missed a read before a transaction keeps its time: what it reads may depend on it.
pub const MISSES_BEFORE_TIME_IS_REUSED: u32 = 3;
/// How old a kept time may become, beside a round trip.
pub const REUSED_TIME_AGE_MAX: Duration = Duration::from_millis(50);

const _: () = assert!(REUSED_TIME_AGE_MAX.as_millis() < CLOCK_DIFFERENCE_MAX.as_millis());
// A table has up to twice as many places as keys.
const _: () = assert!(CACHE_BYTES_MAX + 2 * CACHE_KEYS_MAX * CACHE_KEY_BYTES < CACHE_BYTES_TOTAL_MAX);
const _: () = assert!(BATCH_KEYS_MAX * 2 < 8_000, "keys and turn keys are passed to Lua together");
const _: () = assert!(LEASE_MIN.as_millis() + ROUND_TRIP_MAX.as_millis() < RECEIPT_TTL.as_millis());
const _: () =
    assert!(LEASE_MIN.as_millis() + ROUND_TRIP_MAX.as_millis() < TRANSACTION_DEADLINE_DEFAULT.as_millis());
const _: () = assert!(CLOCK_DIFFERENCE_MAX.as_millis() < CLOCK_ALLOWANCE_MAX.as_millis());
const _: () = assert!(CLOCK_ALLOWANCE_MAX.as_millis() <= COMMIT_LATENESS_MAX.as_millis());
// While a copy of a commit may still be executed, the mark of its closed sequence is there, also if the estimate of the
// server's time was off by as much as is allowed.
const _: () = assert!(2 * COMMIT_LATENESS_MAX.as_millis() < RECEIPT_TTL.as_millis());
const _: () = assert!(LEASE_POLL_MAX.as_millis() < LEASE_MIN.as_millis());
const _: () = assert!(REPLY_WAIT.as_millis() < TRANSACTION_DEADLINE_DEFAULT.as_millis());
