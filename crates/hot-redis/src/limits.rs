//! Every bound of the Redis engine. Units and qualifiers stand last.

use emberkeep_hot::limits::TRANSACTION_DEADLINE_DEFAULT;
use std::time::Duration;

/// Longer replies are compared by their digest.
pub const DIGEST_ABOVE_BYTES: usize = 4 * 1024;
/// Most transactions in one commit.
pub const BATCH_TRANSACTIONS_MAX: usize = 256;
/// Most bytes of replies and writes in one commit.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Most reads that transactions miss, in one call; a single transaction may miss more.
pub const BATCH_FETCHES_MAX: usize = 512;
/// Strings from which on a plain read uses MGET instead of a script. If one is absent the script is called
/// after all, so the gain must be worth the risk.
pub const MGET_READS_MIN: usize = 256;
/// Most keys in one commit.
pub const BATCH_KEYS_MAX: usize = 256;
/// Commits of one partition in flight at a time, each with a sequence of its own.
pub const COMMITS_IN_FLIGHT_MAX: usize = 2;
/// Stale answers after which a transaction asks for a fairness lease.
pub const STALE_BEFORE_LEASE: u32 = 2;
/// Stale answers after which a transaction has a group of its own, so that it does not hold up those that
/// share a key.
pub const STALE_BEFORE_OWN_GROUP: u32 = 6;
/// Runs in a row that each miss a read after an answer. Beyond that, a deadline that passes is reported as a
/// conflict and not as a problem of the backend.
pub const MISSES_BEFORE_CONFLICT: u32 = 8;
/// Answers in a row after which an earlier problem of the backend is not reported any more.
pub const ANSWERS_BEFORE_PROBLEM_IS_OVER: u32 = 3;
/// Length of a fairness lease beside the owner's round trip, after which its next commit arrives.
pub const LEASE_MIN: Duration = Duration::from_millis(30);
/// Longest round trip that leases and allowances follow. The lease of a process that has died blocks a key
/// for no longer than this and [`LEASE_MIN`].
pub const ROUND_TRIP_MAX: Duration = Duration::from_millis(1_000);
/// A round trip from which on a transaction asks for a lease with its first stale answer.
pub const FAR_ROUND_TRIP: Duration = Duration::from_millis(20);
/// First pause of a transaction on a key that is leased to another process; twice as long each time.
pub const LEASE_POLL: Duration = Duration::from_millis(1);
/// Longest pause of a transaction on a leased key.
pub const LEASE_POLL_MAX: Duration = Duration::from_millis(16);
/// How long the cached replies of a key are not trusted after one proved stale, unless they are fresh.
pub const CONTENDED: Duration = Duration::from_millis(50);
/// How long a passed ACL check of a command counts.
pub const ACL_CHECK_VALID: Duration = Duration::from_secs(1);
/// Time to live of a receipt, and of the mark of a closed sequence.
pub const RECEIPT_TTL: Duration = Duration::from_secs(60);
/// Other slots of a server that are tried for the write before a WAIT, when the partition's own is moving.
pub const WAIT_SLOTS_MAX: usize = 4;
/// Time to live of the key that is written before a WAIT.
pub const WAIT_KEY_TTL: Duration = Duration::from_secs(60);
/// Largest difference between the time that a transaction used and the server's at its commit, beside the
/// time that the commit takes to get there.
pub const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_millis(100);
/// Largest such difference in all.
pub const CLOCK_ALLOWANCE_MAX: Duration = Duration::from_secs(3);
/// How far the time that bodies see may be ahead of their server's clock because another server's was shown
/// before. Servers that differ by more are each followed by themselves: otherwise TTLs would be wrong by as
/// much.
pub const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(3);
/// Largest difference of a commit that used no time: a copy of it that comes later is refused.
pub const COMMIT_LATENESS_MAX: Duration = Duration::from_secs(20);
/// How often the server's time is asked for when no transaction uses it.
pub const CLOCK_REFRESH: Duration = Duration::from_secs(1);
/// A reply counts as lost when nothing arrives on its connection for so long. Then the receipt is asked.
pub const REPLY_WAIT: Duration = Duration::from_millis(700);
/// Time to open a connection.
pub const CONNECT_WAIT: Duration = Duration::from_millis(1_000);
/// Time for one server of a Cluster to send the map of slots, before another is asked.
pub const MAP_WAIT: Duration = Duration::from_millis(300);
/// How often a subscription's connection is pinged: a peer that vanished looks like one that has no messages.
pub const SUBSCRIPTION_PING: Duration = Duration::from_secs(1);
/// A subscription's connection that does not answer a ping for this long is lost: a gap is noticed within 3
/// s.
pub const SUBSCRIPTION_PING_WAIT: Duration = Duration::from_secs(2);
/// First pause after an answer that proves "not executed"; twice as long each time.
pub const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// Longest pause after an answer that proves "not executed".
pub const RETRY_PAUSE_MAX: Duration = Duration::from_millis(50);
/// Slots of a Cluster.
pub const SLOTS: usize = 16_384;
/// Redirects followed at once before the pause.
pub const REDIRECTS_MAX: u32 = 5;
/// Size of a partition's read cache.
pub const CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Size of all read caches together; the least recently used ones are emptied first.
pub const CACHE_BYTES_TOTAL_MAX: usize = 64 * 1024 * 1024;
/// Estimated memory of a cached key, beside its replies.
pub const CACHE_KEY_BYTES: usize = 256;
/// Keys in a partition's read cache.
pub const CACHE_KEYS_MAX: usize = 65_536;
/// Cached reads of one key: each is derived again after every own write of the key. More only if one call
/// brought them, until the next one.
pub const CACHE_READS_PER_KEY_MAX: usize = 64;
/// Elements of a range that follows from a cached whole sorted set, up to which the commit compares that range
/// and not the set.
pub const COMPARED_PART_MAX: usize = 8;
/// Reads of one sorted set in a transaction, from which on the commit compares the set, if it is small.
pub const PARTS_BEFORE_SET: usize = 3;
/// Members of such a set: to compare more of them takes longer than to compare the reads.
pub const JOINED_SET_MAX: usize = 32;
/// Elements at the head of a list that stay cached when others were taken from it.
pub const CACHE_LIST_HEAD_MAX: usize = 256;
/// Longest text that is cached because we wrote it, although no transaction has read it.
pub const CACHE_WRITTEN_TEXT_BYTES_MAX: usize = 4 * 1024;
/// The task of a partition without work ends after this time.
pub const PARTITION_IDLE: Duration = Duration::from_secs(30);
/// Time a caller waits beyond its deadline for an answer that is on its way.
pub const DEADLINE_GRACE: Duration = Duration::from_millis(20);

/// Runs that missed a read before a transaction reuses its time: the keys that it reads may depend on it.
pub const MISSES_BEFORE_TIME_IS_REUSED: u32 = 3;
/// Age up to which a time is reused, beside a round trip.
pub const REUSED_TIME_AGE_MAX: Duration = Duration::from_millis(50);

const _: () = assert!(REUSED_TIME_AGE_MAX.as_millis() < CLOCK_DIFFERENCE_MAX.as_millis());
// A table has up to twice as many places as keys.
const _: () = assert!(CACHE_BYTES_MAX + 2 * CACHE_KEYS_MAX * CACHE_KEY_BYTES < CACHE_BYTES_TOTAL_MAX);
const _: () = assert!(BATCH_KEYS_MAX * 2 < 8_000, "keys and lease keys are passed to Lua together");
const _: () = assert!(LEASE_MIN.as_millis() + ROUND_TRIP_MAX.as_millis() < RECEIPT_TTL.as_millis());
const _: () =
    assert!(LEASE_MIN.as_millis() + ROUND_TRIP_MAX.as_millis() < TRANSACTION_DEADLINE_DEFAULT.as_millis());
const _: () = assert!(CLOCK_DIFFERENCE_MAX.as_millis() < CLOCK_ALLOWANCE_MAX.as_millis());
const _: () = assert!(CLOCK_ALLOWANCE_MAX.as_millis() <= COMMIT_LATENESS_MAX.as_millis());
// The mark of a closed sequence outlives the time in which a late copy of its commit could be executed, also
// if the estimate of the server's time was off by as much as is allowed.
const _: () = assert!(2 * COMMIT_LATENESS_MAX.as_millis() < RECEIPT_TTL.as_millis());
const _: () = assert!(LEASE_POLL_MAX.as_millis() < LEASE_MIN.as_millis());
const _: () = assert!(REPLY_WAIT.as_millis() < TRANSACTION_DEADLINE_DEFAULT.as_millis());
