//! What the consumers of logs and of spools report.

use std::time::Duration;

/// Counters of a consumer since it was made, and how far it is behind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsumerStats {
    /// The log: partition and key.
    pub log: String,
    /// Whether this consumer has the lease of the log. The others do not know how far it is behind.
    pub is_holder: bool,
    /// Entries that are in the log, or in the spool of this consumer, and not acknowledged in history.
    pub lag_entries: u64,
    /// Those of them that are in its spool.
    pub spooled_entries: u64,
    /// Bytes in use by its spool.
    pub spool_bytes: u64,
    /// How long the oldest of them has waited since this consumer first saw it; zero if there is none.
    pub oldest_age: Duration,
    /// Entries that were delivered, dead letters included.
    pub delivered: u64,
    /// Entries that became dead letters.
    pub dead_letters: u64,
    /// How often the log was found set back, an entry of it overwritten by an external client, or its source closed.
    pub alarms: u64,
    /// How often it panicked and was started again, by `Consumers`.
    pub restarts: u64,
    /// Rounds that failed and were, or will be, repeated.
    pub errors: u64,
    /// The last of those errors; `None` once a round succeeded.
    pub last_error: Option<String>,
}
