//! Every limit of this crate. Units and qualifiers are last in the names. Relations between limits are
//! asserted at compile time.

use std::time::Duration;

/// Most rows of one write call.
pub const BATCH_ROWS_MAX: usize = 10_000;
/// Most bytes of one write call.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most bytes of one row.
pub const ROW_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of the encoded values of one row's key and its lookups; a zero byte counts twice. A CQL server takes
/// 64 KiB.
pub const KEY_BYTES_MAX: usize = 8 * 1024;
/// Most rows of one page.
pub const PAGE_ROWS_MAX: usize = 1_000;
/// Rows of a page if the caller names no number.
pub const PAGE_ROWS_DEFAULT: usize = 100;
/// Most bytes of a page; a larger one ends early and has a cursor.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Entries that one page reads at most, expired ones included; it ends early then and has a cursor.
pub const PAGE_ENTRIES_READ_MAX: usize = 50_000;
/// Rows that a store reads at most to return a lookup against its order, if its backend has one order only: a secondary
/// index on CQL. Beyond them the range is `TooLarge`.
pub const REVERSED_INDEX_ROWS_MAX: usize = 10_000;
/// Most partitions that one range reads: the days of a year and one.
pub const PARTITIONS_MAX: usize = emberkeep_schema::limits::DAYS_MAX;
/// How far in the future the time of a bucket or of a TTL may lie: clocks of servers differ, but a wrong unit
/// must not make a row that never ends.
pub const FUTURE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest text of a cursor.
pub const CURSOR_BYTES_MAX: usize = 16 * 1024;
/// Longest name of a totals' source.
pub const SOURCE_BYTES_MAX: usize = 200;
/// Longest name of a log, incarnation and mark in the state of a log.
pub const LOG_TEXT_BYTES_MAX: usize = 200;
/// Most entries of one fold of totals.
pub const FOLD_ENTRIES_MAX: usize = 100_000;

/// Rows that may wait for the embedded store's writer.
pub const QUEUE_ROWS_MAX: usize = 50_000;
/// Bytes of rows that may wait for the embedded store's writer.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a write waits for a place in the queue before the caller gets `Busy`.
pub const QUEUE_WAIT_DEFAULT: Duration = Duration::from_secs(5);
/// Rows that the writer of the embedded store commits at once.
pub const COMMIT_ROWS_MAX: usize = 4_000;
/// Time between two syncs of `Durability::EverySec`.
pub const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How long closing waits for memory to be written to files. The journal has everything before that.
pub const CLOSE_WAIT: Duration = Duration::from_secs(60);
/// How long opening a folder waits for another process to release it.
pub const LOCK_WAIT: Duration = Duration::from_millis(500);
/// Free space below which the embedded store refuses writes: a failed write of the store below is final until
/// it is opened again, so it must not come to that.
pub const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;
/// Time between two looks at the free space.
pub const FREE_CHECK_EVERY: Duration = Duration::from_secs(1);
/// The space that must stay free is looked at again after this part of it was written.
pub const FREE_CHECKS_PER_MIN: u64 = 8;
/// Journal of the store below. Measured: larger ones make opening slow, smaller ones stall writes.
pub const STORE_JOURNAL_BYTES: u64 = 64 * 1024 * 1024;
/// Memory of one table window before it is written to a file.
pub const STORE_MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;
/// Memory of the lookup entries of one window before it is written to a file.
pub const STORE_LOOKUPS_MEMTABLE_BYTES: u64 = 32 * 1024 * 1024;
/// Files of lookup entries that wait to be merged: fewer make reads quicker, more make writes cheaper.
pub const STORE_LOOKUPS_UNMERGED_FILES: u8 = 8;
/// Longest key of the store below.
pub const STORE_KEY_BYTES_MAX: usize = u16::MAX as usize;
/// Cache of the store below.
pub const STORE_CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of added entries of totals after which the changed rows are written. It bounds what opening reads again.
pub const FOLD_LOG_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Rows of one kind of totals in memory, after which they are written and forgotten.
pub const TOTALS_CACHE_ROWS_MAX: usize = 250_000;
/// Threads of the store below. Its first one only flushes, and spins while merges wait for another thread: with two
/// threads that was a tenth of all work.
pub const STORE_WORKER_THREADS: usize = 4;
/// Retention windows that a TTL is divided into at most.
pub const WINDOWS_PER_TTL_MAX: i64 = 32;
/// Expired rows without a window that one pass of retention removes at most.
pub const RETENTION_ROWS_PER_PASS_MAX: usize = 10_000;
/// How long the embedded store remembers at least that a versioned row was removed: a write of a lower version that
/// arrives within this time does not bring it back.
pub const REMOVED_FOR_MS_MIN: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Time between two passes of retention.
pub const RETENTION_EVERY: Duration = Duration::from_secs(60);

/// Entries of a log that a consumer delivers together. One more is read with them.
pub const DRAIN_PAGE_ENTRIES: usize = 999;
/// Entries that it delivers together at least, however slow history is.
pub const DRAIN_PAGE_ENTRIES_MIN: usize = 15;
/// How long a consumer waits until the other readers of its log say how far they are.
pub const READER_WAIT_MAX: Duration = Duration::from_millis(250);
/// Time after which readers are asked again that did not say it.
pub const READER_PAUSE: Duration = Duration::from_secs(1);
/// Time after which a consumer reads its log without a message.
pub const DRAIN_POLL_EVERY: Duration = Duration::from_millis(500);
/// First pause of a consumer after an error; each one is twice as long as the one before.
pub const DRAIN_PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest such pause; see [`DRAIN_PAUSE_MIN`].
pub const DRAIN_PAUSE_MAX: Duration = Duration::from_secs(5);
/// Pause before a consumer that panicked is started again.
pub const CONSUMER_RESTART_PAUSE: Duration = Duration::from_secs(1);
/// First pause after a store could not be opened; each one is twice as long as the one before.
pub const OPEN_PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest such pause; see [`OPEN_PAUSE_MIN`].
pub const OPEN_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a consumer's lease lasts without renewal. It is renewed after a third of it.
pub const LEASE_TTL: Duration = Duration::from_secs(10);
/// Time between two tries of a consumer that does not have the lease.
pub const LEASE_POLL_EVERY: Duration = Duration::from_secs(1);
/// Sequences of a log whose claims are in one row: those of a page, so that a page that begins with them is one claim.
pub const CLAIM_SLOT_SEQUENCES: u64 = DRAIN_PAGE_ENTRIES as u64;
/// How often the claims of a slot are compared and set in one round.
pub const CLAIM_TRIES_MAX: usize = 8;
/// How long history may be away, or take for a page, before entries are moved into the spool of their consumer.
pub const SPOOL_AFTER: Duration = Duration::from_secs(2);
/// Longest name of an incarnation: a sequence, a mark, and what tells it from a closed one.
pub const INCARNATION_BYTES_MAX: usize = 32;
/// Longest event of a spool.
pub const SPOOL_EVENT_BYTES_MAX: usize = 256 * 1024;
/// Longest record of a spool: an entry of a log has a head there.
pub const SPOOL_RECORD_BYTES_MAX: usize = SPOOL_EVENT_BYTES_MAX + 64;
/// Bytes of a spool if the caller names no number.
pub const SPOOL_BYTES_DEFAULT: u64 = 1024 * 1024 * 1024;
/// Size at which a segment of a spool is followed by the next one.
pub const SPOOL_SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of events that a spool delivers together, about.
pub const SPOOL_PAGE_BYTES: usize = 1024 * 1024;
/// Longest reason of a dead letter.
pub const REASON_BYTES_MAX: usize = 1_024;
/// Moments that a consumer remembers to tell how long the oldest entry has waited.
pub const LAG_SAMPLES_MAX: usize = 256;

const _: () = assert!(ROW_BYTES_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(ROW_BYTES_MAX <= PAGE_BYTES_MAX, "every row fits into a page");
const _: () = assert!(BATCH_ROWS_MAX <= QUEUE_ROWS_MAX, "the largest batch fits into an empty queue");
const _: () = assert!(BATCH_BYTES_MAX <= QUEUE_BYTES_MAX && QUEUE_BYTES_MAX <= u32::MAX as usize);
const _: () = assert!(PAGE_ROWS_DEFAULT <= PAGE_ROWS_MAX && PAGE_ROWS_MAX <= PAGE_ENTRIES_READ_MAX);
const _: () = assert!(KEY_BYTES_MAX < CURSOR_BYTES_MAX, "a cursor holds a key in base64");
const _: () =
    assert!(2 * KEY_BYTES_MAX + 3 * SOURCE_BYTES_MAX < STORE_KEY_BYTES_MAX, "every checked key is stored");
const _: () = assert!(STORE_MEMTABLE_BYTES + STORE_LOOKUPS_MEMTABLE_BYTES < STORE_JOURNAL_BYTES);
const _: () = assert!(emberkeep_hot::limits::LOG_ENTRY_BYTES_MAX <= SPOOL_EVENT_BYTES_MAX);
const _: () = assert!(DRAIN_PAGE_ENTRIES < emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(
    DRAIN_POLL_EVERY.as_millis() < 1_000,
    "without any message an event is in history within a second"
);
