//! Everything a transaction does when it commits.

use super::{RawKey, Write};
use bytes::Bytes;

/// What happens when a partition's log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest entries are dropped; readers notice the gap in the sequence.
    DropOldest,
    /// The transaction is refused with `LogFull`; nothing is lost.
    Refuse,
}

/// Everything one transaction does when it commits, in this order: writes, log entries, messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Writes, in the order of the body.
    pub writes: Vec<(RawKey, Write)>,
    /// Entries for the partition's log.
    pub log: Vec<LogAppend>,
    /// Channel and payload of messages.
    pub messages: Vec<(Bytes, Bytes)>,
}

/// One entry for a partition's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogAppend {
    /// The entry.
    pub entry: Bytes,
    /// Entries that the log keeps.
    pub entries_max: usize,
    /// What to do when the log is full.
    pub overflow: Overflow,
}

impl Effects {
    /// Whether there are no writes, log entries or messages.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.log.is_empty() && self.messages.is_empty()
    }

    /// Clears everything and keeps the allocations.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.log.clear();
        self.messages.clear();
    }
}
