//! Every limit of this crate. Units and qualifiers are last in the names. Relations between limits are
//! asserted at compile time.

use std::time::Duration;

/// Longest rendered key, prefix and partition tag included.
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest single value, member or field.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most elements in one reply to a read inside a transaction.
pub const REPLY_ELEMENTS_MAX: usize = 1_000;
/// Most bytes in one reply to a read inside a transaction.
pub const REPLY_BYTES_MAX: usize = 1024 * 1024;
/// Most keys that one call inside a transaction reads together.
pub const READS_TOGETHER_MAX: usize = 1_000;
/// Most bytes in the replies to keys that are read together.
pub const READS_TOGETHER_BYTES_MAX: usize = VALUE_BYTES_MAX;
/// Most arguments of one write command (Lua's `unpack` fails near 8,000).
pub const COMMAND_ARGUMENTS_MAX: usize = 1_000;
/// Most write commands and entries of logs of one transaction.
pub const TRANSACTION_WRITES_MAX: usize = 4_096;
/// Most bytes that one transaction writes, appends and publishes: while a server reads them, it serves no
/// other client.
pub const TRANSACTION_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX;
/// Furthest deadline that may be set, in milliseconds since 1970 (the year 10889; keeps sums far from
/// overflow).
pub const DEADLINE_MS_MAX: i64 = 1 << 48;
/// Largest magnitude of one increment: a Lua number holds it exactly.
pub const INCREMENT_MAX: i64 = 1 << 53;

/// How long a transaction may take before the caller gets `Conflict`.
pub const TRANSACTION_DEADLINE_DEFAULT: Duration = Duration::from_secs(2);
/// Longest deadline of a transaction; a longer one is shortened to this.
pub const TRANSACTION_DEADLINE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// A body that runs longer is logged, because it holds locks or a batch.
pub const BODY_WARN: Duration = Duration::from_millis(10);
/// Attempts of one transaction on the embedded engine before it takes every shard (locks are found by
/// running).
pub const EMBEDDED_ATTEMPTS_MAX: u32 = 16;

/// Busy time after which a thread's next transaction on the embedded engine lets other tasks run.
pub const YIELD_EVERY: Duration = Duration::from_micros(100);
/// Runs of one closure that `Options::check_closures` makes before it says that each run reads other keys.
pub const CHECKED_RUNS_MAX: u32 = 8_192;
/// Names of transactions that are counted each on its own; names beyond share one counter.
pub const OPERATION_NAMES_MAX: usize = 256;
/// Parts of a name's counters; threads beyond so many share one.
pub const OPERATION_STRIPES: usize = 4;

/// A thread's buffer for keys and values is kept up to this size.
pub const SCRATCH_BYTES_MAX: usize = 64 * 1024;

/// Largest entry of a log: several fit into one reply.
pub const LOG_ENTRY_BYTES_MAX: usize = 256 * 1024;
/// Largest sequence of a log: 15 digits, which a Lua number holds exactly.
pub const LOG_SEQUENCE_MAX: u64 = 999_999_999_999_999;
/// A log of which no element is an entry any more goes on from the time: so many numbers a millisecond.
pub(crate) const LOG_NUMBERS_PER_MS: u64 = 100;
/// Elements that are read together to find the entry nearest to the end of a log.
pub(crate) const LOG_SEARCH_ELEMENTS: i64 = 100;
/// Entries that a follower of a log reads at once.
pub const LOG_PAGE_ENTRIES: usize = 256;
/// Fewest and most entries of a block in which a log that drops its oldest entries is read.
pub(crate) const LOG_BLOCK_ENTRIES_MIN: u64 = 16;
pub(crate) const LOG_BLOCK_ENTRIES_MAX: u64 = 512;
/// A follower of a log reads again after this time without a wake-up.
pub const LOG_POLL_EVERY: Duration = Duration::from_secs(5);
/// Pauses of a follower while the store is unavailable: doubled from the first to the last.
pub const LOG_RETRY_PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest such pause; see [`LOG_RETRY_PAUSE_MIN`].
pub const LOG_RETRY_PAUSE_MAX: Duration = Duration::from_secs(2);
/// Messages a subscriber may lag behind before the oldest are dropped and counted.
pub const SUBSCRIBER_MESSAGES_MAX: usize = 1_024;

/// Strings that one transaction of [`Scope::put_each_if_greater`](crate::Scope::put_each_if_greater) sets: a call of
/// less than a millisecond.
pub const CONDITIONAL_WRITES_MAX: usize = 250;
/// Such transactions at a time.
pub const CONDITIONAL_TRANSACTIONS_AT_ONCE: usize = 4;

/// Shards of the embedded engine: those of logs come after those of all other keys.
pub const SHARDS: usize = SHARDS_OF_STATE + SHARDS_OF_LOGS;
/// Shards of keys that are not named like a log. A power of two.
pub const SHARDS_OF_STATE: usize = 64;
/// Shards of logs. A power of two.
pub const SHARDS_OF_LOGS: usize = 32;
/// Entries that the expiry sweep visits under one shard lock.
pub const SWEEP_SLOTS_PER_LOCK: usize = 256;
/// Bytes of expired keys in one journal record: as small as other records, so that it needs no more space
/// than they do.
pub const SWEEP_RECORD_BYTES_MAX: usize = 16 * 1024;
/// Time the sweep may spend in one cycle.
pub const SWEEP_BUDGET: Duration = Duration::from_millis(5);
/// Pause between two sweep cycles.
pub const SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// Most keys one scan page returns.
pub const SCAN_PAGE_MAX: usize = 1_000;

/// Keys that a dump reads in one transaction, where the engine has no moment of all keys.
pub const DUMP_KEYS_TOGETHER: usize = 64;
/// How often such a dump scans anew after a server restarted or slots moved.
pub const DUMP_RESTARTS_MAX: usize = 16;

/// Bytes that the journal reserves at a time while it is small.
pub const JOURNAL_RESERVE_BYTES_MIN: usize = 64 * 1024;
/// Bytes that the journal reserves at a time at most; a larger transaction reserves what it needs.
pub const JOURNAL_RESERVE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Time between two tries to reserve space on a full disk.
pub const JOURNAL_RETRY_EVERY: Duration = Duration::from_secs(1);
/// How long opening a folder waits for another process to release it.
pub const JOURNAL_LOCK_WAIT: Duration = Duration::from_millis(500);
/// Time between two syncs of `Durability::EverySec`.
pub const JOURNAL_SYNC_EVERY: Duration = Duration::from_secs(1);
/// Time between two syncs of `Durability::No`. They let the next start distinguish damage from a torn end.
pub const JOURNAL_SYNC_WITHOUT_PROMISE_EVERY: Duration = Duration::from_secs(60);
/// Bytes read at once when the journal is loaded.
pub const JOURNAL_READ_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of commands under one checksum of a base file.
pub const JOURNAL_BASE_RECORD_BYTES: usize = 64 * 1024;
/// Bytes of a base that are written between two syncs of it.
pub const JOURNAL_BASE_SYNC_BYTES: usize = 32 * 1024 * 1024;
/// Encoding space that a thread keeps between two transactions.
pub const JOURNAL_SCRATCH_BYTES_MAX: usize = 1024 * 1024;
/// Size of the journal below which it is not rewritten.
pub const JOURNAL_REWRITE_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// The journal is rewritten when it is this many times as large as its base.
pub const JOURNAL_REWRITE_GROWTH: u64 = 2;

const _: () = assert!(TRANSACTION_DEADLINE_DEFAULT.as_millis() < TRANSACTION_DEADLINE_MAX.as_millis());
const _: () = assert!(SHARDS_OF_STATE.is_power_of_two() && SHARDS_OF_LOGS.is_power_of_two());
const _: () = assert!(SHARDS <= 128, "held shards are a 128-bit mask");
const _: () =
    assert!(2 * LOG_ENTRY_BYTES_MAX < REPLY_BYTES_MAX, "an entry and the one before it fit into a reply");
const _: () = assert!(LOG_PAGE_ENTRIES < REPLY_ELEMENTS_MAX);
const _: () = assert!(KEY_BYTES_MAX < VALUE_BYTES_MAX);
const _: () = assert!(READS_TOGETHER_BYTES_MAX >= VALUE_BYTES_MAX, "one value is always readable");
const _: () = assert!(REPLY_ELEMENTS_MAX <= COMMAND_ARGUMENTS_MAX);
const _: () = assert!(COMMAND_ARGUMENTS_MAX < 8_000);
const _: () = assert!(JOURNAL_RESERVE_BYTES_MIN <= JOURNAL_RESERVE_BYTES_MAX);
const _: () = assert!(SWEEP_RECORD_BYTES_MAX >= KEY_BYTES_MAX);
// A DEL takes less than 32 bytes beside its key, so even many short keys stay far below.
const _: () = assert!(SWEEP_RECORD_BYTES_MAX + SWEEP_SLOTS_PER_LOCK * 32 <= JOURNAL_RESERVE_BYTES_MIN / 2);
const _: () = assert!(JOURNAL_SYNC_EVERY.as_millis() <= JOURNAL_SYNC_WITHOUT_PROMISE_EVERY.as_millis());
const _: () = assert!(JOURNAL_BASE_RECORD_BYTES <= JOURNAL_READ_BYTES);
