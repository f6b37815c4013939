//! Every bound of the primitives, units and qualifiers last.

use std::time::Duration;

/// Markers that one transaction clears.
pub const CLEARED_PER_TRANSACTION_MAX: usize = 256;
/// Expired entries that a start removes from an index of cooldowns: more than it adds, so that the index
/// stays short.
pub const TIDIED_PER_START: usize = 4;

/// Due deadlines that one transaction reads at most.
pub const DUE_PER_TRANSACTION_MAX: usize = 256;

/// Due deadlines that a driver handles in one transaction.
pub const DUE_PER_TURN: usize = 64;
/// How long a driver does not notice a deadline that another process set, unless `poll_every` says otherwise.
pub const DUE_POLL_EVERY: Duration = Duration::from_secs(1);
/// When a driver reads the queue again after it was woken: the transaction that set the deadline may not have
/// committed.
pub const DUE_RECHECK_AFTER: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
    Duration::from_millis(64),
];
/// Pause of a driver after the first failure; it doubles with each further one.
pub const DUE_BACKOFF_MIN: Duration = Duration::from_millis(100);
/// Longest pause of a driver after a failure.
pub const DUE_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Failing entries whose failures a driver counts. Beyond them it starts to count anew.
pub const DUE_FAILING_MAX: usize = 1_024;

/// Ids that one transaction tries: keeps a transaction short where many ids in a row are in use.
pub const TRIES_PER_TRANSACTION_MAX: u64 = 64;
/// Ids that one search tries: a range of a thousand million would take hours. The next search continues
/// where this one stopped.
pub const SEARCHED_IDS_MAX: u64 = 1 << 20;
/// Rested ids that one transaction moves into the free list: more than it takes, so that the rest catches up.
pub const RESTED_PER_TRANSACTION: usize = 16;
/// Ids that are prefetched beside a missing read: those that the next transactions will get.
pub const PREFETCHED_IDS: usize = 31;
/// Elements of the free list that one read requests: the head for this transaction, the others for the next
/// ones.
pub const FREE_PREFETCHED: usize = 32;

/// Index entries, or records, of one read.
pub const LISTED_PER_READ: usize = 1_000;
/// Entries that one transaction removes from an index, or enters: it reads the record of each again.
pub const PRUNED_PER_TRANSACTION: usize = 64;
/// Entries or records that one turn of a sweep examines.
pub const SWEPT_PER_TURN: usize = 128;

/// Longest time of a lease without a renewal.
pub const LEASE_MS_MAX: i64 = 24 * 60 * 60 * 1_000;
/// Longest name of a lease's holder.
pub const HOLDER_BYTES_MAX: usize = 256;
/// Longest note of a lease.
pub const NOTE_BYTES_MAX: usize = 256;

/// Most events in the window of a rate limit: each is stored.
pub const RATE_EVENTS_MAX: usize = emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
/// Events beyond the limit that a rate limit reads at once, so that those which an earlier, higher limit left
/// are removed over time.
pub const RATE_TIDIED_PER_EVENT: usize = 4;

/// Reads of a rate limit that pass over events of the far future, which a clock that was set back left.
pub const RATE_PAGES_MAX: usize = 8;

/// Longest window of a rate limit.
pub const RATE_WINDOW_MS_MAX: i64 = 31 * 24 * 60 * 60 * 1_000;

/// Letters that one outbox holds at most.
pub const OUTBOX_LETTERS_MAX: usize = 10_000;
/// Dead letters of one receiver. More wait in their outboxes.
pub const DEAD_LETTERS_MAX: usize = 1_000;
/// Longest reason that is stored with a dead letter; longer ones are cut.
pub const REASON_BYTES_MAX: usize = 1_024;
/// Letters that a courier reads at once, and removes in one transaction.
pub const LETTERS_PER_PAGE: usize = 64;
/// Letters of one sender that a courier hands over before it turns to the next sender.
pub const LETTERS_PER_TURN: usize = 256;
/// Keys that one page of a scan for outboxes examines.
pub const SENDERS_PER_TURN: usize = 128;
/// Highest sequence of mail: exact as a score.
pub const SEQUENCE_MAX: i64 = 1 << 53;

/// Changes of a leaderboard that one call makes: their entries are read together.
pub const BOARD_CHANGES_MAX: usize = emberkeep_hot::limits::READS_TOGETHER_MAX;
/// Entries of a leaderboard that one transaction of a rebuild or a repair examines.
pub const BOARD_ENTRIES_PER_TURN: usize = 256;
/// Longest name of a source of a leaderboard.
pub const SOURCE_BYTES_MAX: usize = 1_024;

/// Entries of a log that a feed applies in one transaction.
pub const FEED_PAGE_ENTRIES: usize = 500;
/// Pause of a feed after it has applied what was there: what comes meanwhile is applied together.
pub const FEED_PAUSE: Duration = Duration::from_millis(20);
/// When a feed reads its log without a message, and again after another process was first.
pub const FEED_POLL_EVERY: Duration = Duration::from_millis(400);
/// Longest pause of a feed after a failure.
pub const FEED_ERROR_PAUSE_MAX: Duration = Duration::from_secs(2);
/// Pages of applied entries whose marks a feed remembers: at most 2 MB, and 20 s of a log with few entries.
pub const FEED_PAGES_REMEMBERED: usize = 1_000;

const _: () = assert!(BOARD_ENTRIES_PER_TURN <= BOARD_CHANGES_MAX);
const _: () = assert!(FEED_PAGE_ENTRIES <= BOARD_CHANGES_MAX);
const _: () = assert!(FEED_POLL_EVERY.as_millis() < 1_000, "an entry is applied within a second");
const _: () = assert!(BOARD_ENTRIES_PER_TURN <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(DUE_PER_TURN < DUE_PER_TRANSACTION_MAX);
const _: () = assert!(LETTERS_PER_PAGE <= LETTERS_PER_TURN);
const _: () = assert!(LISTED_PER_READ <= emberkeep_hot::limits::READS_TOGETHER_MAX);
const _: () = assert!(CLEARED_PER_TRANSACTION_MAX < emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(DUE_PER_TRANSACTION_MAX <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(TRIES_PER_TRANSACTION_MAX <= SEARCHED_IDS_MAX);
