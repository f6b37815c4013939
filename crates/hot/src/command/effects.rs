//! Everything a transaction does when it commits.

use super::{RawKey, Write};
use bytes::Bytes;

/// What happens when a log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest entries are dropped; readers notice the gap in the sequence.
    DropOldest,
    /// The transaction is refused with `LogFull`; nothing is lost.
    Refuse,
}

/// What an appended entry does to the deadline of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogExpiry {
    /// The deadline stays as it is; a new log has none.
    Keep,
    /// Sets it, in milliseconds since 1970, unless the log has one.
    IfNone(i64),
    /// Sets it, in milliseconds since 1970.
    At(i64),
}

/// Everything one transaction does when it commits, in this order: writes, log entries, messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Writes, in the order of the body.
    pub writes: Vec<(RawKey, Write)>,
    /// Entries that are appended without a read; the commit numbers them.
    pub log: Vec<LogAppend>,
    /// Logs that the writes append to: their followers are woken, as by an entry of `log`.
    pub woken: Vec<RawKey>,
    /// Channel and payload of messages.
    pub messages: Vec<(Bytes, Bytes)>,
}

/// One entry for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogAppend {
    /// The key of the log.
    pub log: RawKey,
    /// The entry, without its sequence.
    pub entry: Bytes,
    /// Entries that the log keeps; at least 1.
    pub entries_max: usize,
    /// What to do when the log is full.
    pub overflow: Overflow,
    /// What it does to the deadline.
    pub expiry: LogExpiry,
}

impl Effects {
    /// Whether there are no writes, log entries or messages. `woken` does not count: it names logs that the
    /// writes append to, so it is never there without a write.
    pub fn is_empty(&self) -> bool {
        debug_assert!(self.woken.is_empty() || !self.writes.is_empty(), "woken for what is not written");
        self.writes.is_empty() && self.log.is_empty() && self.messages.is_empty()
    }

    /// Clears everything and keeps the allocations.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.log.clear();
        self.woken.clear();
        self.messages.clear();
    }
}
