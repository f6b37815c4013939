//! Every bound of the primitives, units and qualifiers last.

/// Markers that one transaction clears.
pub const CLEARED_PER_TRANSACTION_MAX: usize = 256;
/// Ended entries that a start takes out of an index of cooldowns: more than it puts in, so that the index stays short.
pub const TIDIED_PER_START: usize = 4;

/// Due deadlines that one look reads at most.
pub const DUE_PER_TRANSACTION_MAX: usize = 256;

/// Ids that one transaction looks at: keeps a transaction short where a long run of ids lives.
pub const TRIES_PER_TRANSACTION_MAX: u64 = 64;
/// Ids that one search looks at: a range of a thousand million would keep a caller for hours. The next search goes on
/// where this one came to.
pub const SEARCHED_IDS_MAX: u64 = 1 << 20;
/// Rested ids that one transaction moves into the free list: more than it takes, so that none stays behind for long.
pub const RESTED_PER_TRANSACTION: usize = 16;
/// Ids that are asked about beside one about which nothing is known: those that the transactions behind this one will be given.
pub const FORESEEN_IDS: usize = 31;
/// Elements of the free list that are asked for at once: the head for this transaction, the others for those behind it.
pub const FREE_ANNOUNCED: usize = 32;

/// Entries of an index, and records, that one read asks for.
pub const LISTED_PER_READ: usize = 1_000;
/// Entries that one transaction removes from an index, or enters: each is a record that it looks at once more.
pub const PRUNED_PER_TRANSACTION: usize = 64;
/// Entries or records that one turn of a sweep looks at.
pub const SWEPT_PER_TURN: usize = 128;

const _: () = assert!(LISTED_PER_READ <= emberkeep_hot::limits::READS_TOGETHER_MAX);
const _: () = assert!(CLEARED_PER_TRANSACTION_MAX < emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(DUE_PER_TRANSACTION_MAX <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(TRIES_PER_TRANSACTION_MAX <= SEARCHED_IDS_MAX);
