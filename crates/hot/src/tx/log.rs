//! The partition log: events that are appended in the same commit as the state (a transactional outbox).
//!
//! Keys: `ember:log:<partition>` is a list of `<sequence>:<entry>`, `ember:log:<partition>:seq` is the last
//! sequence. Promises: sequences start at 1 and have no gaps. An entry exists exactly if its transaction
//! committed. A reader whose first entry has a higher sequence than requested has missed the entries between.
//!
//! There are two ways to write it; a partition uses one of them. [`Tx::record`] never reads the log, so
//! transactions that only record do not conflict. The commit appends its entries, and the transaction itself
//! cannot read them. [`Tx::record_until`] is for a log that expires with its partition: plain reads and
//! writes of both keys, so that a transaction can begin, continue, read and drop the log like any other key.

use super::{Tx, raw::check_log_bound};
use crate::command::{Expiry, RawKey, Read, Reply, Write, parse_integer};
use crate::error::{Error, Result, show};
use crate::limits::REPLY_ELEMENTS_MAX;
use bytes::Bytes;
use emberkeep_schema::{KeyLayout, Partition};

/// One entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The sequence number; the first of a partition is 1.
    pub sequence: u64,
    /// The bytes that were recorded.
    pub entry: Bytes,
}

/// Entries of a log after a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// In order, without gaps.
    pub entries: Vec<LogEntry>,
    /// The newest sequence of the log, whether or not it is on this page. 0 = the log is empty.
    pub last: u64,
    /// Entries after the requested sequence that were dropped or trimmed.
    pub missed: u64,
}

/// The keys of a partition's log: the list and its counter. For engines and tests.
#[doc(hidden)]
pub fn log_keys(layout: &KeyLayout, partition: &[u8]) -> (RawKey, RawKey) {
    let mut list = Vec::new();
    let name = [b"log:", partition].concat();
    layout.write_own(partition, &name, &mut list);
    let counter = [&list[..], b":seq"].concat();
    (Bytes::from(list), Bytes::from(counter))
}

/// An entry as it is stored. For engines.
#[doc(hidden)]
pub fn stored_entry(sequence: i64, entry: &[u8]) -> Bytes {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(sequence).as_bytes();
    Bytes::from([digits, b":", entry].concat())
}

fn parse_entry(key: &[u8], stored: &Bytes) -> Result<LogEntry> {
    let parsed = stored.iter().position(|b| *b == b':').and_then(|colon| {
        let sequence = std::str::from_utf8(&stored[..colon]).ok()?.parse().ok()?;
        Some(LogEntry { sequence, entry: stored.slice(colon + 1..) })
    });
    parsed.ok_or_else(|| Error::Corrupt {
        key: show(key),
        reason: "a log entry without its sequence; an external client wrote it".into(),
    })
}

/// A log with a deadline: it expires together with its partition.
impl<P: Partition> Tx<'_, P> {
    /// Replaces the partition's log by one with this entry as number 1, which expires at `until_ms`
    /// (milliseconds since 1970).
    pub fn begin_log(&mut self, entry: impl Into<Bytes>, until_ms: i64) -> Result<()> {
        self.drop_log()?;
        self.record_until(entry, 1, until_ms).map(|_| ())
    }

    /// Appends an entry, sets the deadline of the whole log and returns the entry's sequence. The log keeps
    /// the newest `entries_max` entries.
    pub fn record_until(
        &mut self,
        entry: impl Into<Bytes>,
        entries_max: usize,
        until_ms: i64,
    ) -> Result<u64> {
        check_log_bound(entries_max)?;
        let (list, counter) = self.log_keys();
        let sequence = last_sequence(self, &counter)?.saturating_add(1);
        let number = i64::try_from(sequence).unwrap_or(i64::MAX);
        let digits = Bytes::from(number.to_string());
        self.raw_write(counter, Write::Set(digits, Expiry::At(until_ms)))?;
        self.raw_write(list.clone(), Write::RPush(vec![stored_entry(number, &entry.into())]))?;
        let kept = i64::try_from(entries_max).unwrap_or(i64::MAX);
        self.raw_write(list.clone(), Write::LTrim(-kept, -1))?;
        self.raw_write(list, Write::ExpireAt(until_ms))?;
        Ok(sequence)
    }

    /// Sets the deadline of the log, if there is one.
    pub fn log_expire_at(&mut self, at_ms: i64) -> Result<()> {
        let (list, counter) = self.log_keys();
        self.raw_write(list, Write::ExpireAt(at_ms))?;
        self.raw_write(counter, Write::ExpireAt(at_ms))
    }

    /// Removes the log with its counter: the next entry gets number 1.
    pub fn drop_log(&mut self) -> Result<()> {
        let (list, counter) = self.log_keys();
        self.raw_write(list, Write::Del)?;
        self.raw_write(counter, Write::Del)
    }

    /// Up to `limit` entries after a sequence; 0 = from the start.
    pub fn log_after(&mut self, sequence: u64, limit: usize) -> Result<LogPage> {
        let (list, counter) = self.log_keys();
        read_after(self, &list, &counter, sequence, limit.clamp(1, REPLY_ELEMENTS_MAX))
    }

    /// The newest sequence of the log, [`Tx::record_until`] of this transaction included. 0 = the log is
    /// empty.
    pub fn log_last(&mut self) -> Result<u64> {
        let (_, counter) = self.log_keys();
        last_sequence(self, &counter)
    }
}

fn last_sequence<P: Partition>(tx: &mut Tx<'_, P>, counter: &RawKey) -> Result<u64> {
    match tx.raw_read(counter, Read::Get)? {
        Reply::Blob(text) => count_of(counter, &text),
        _ => Ok(0),
    }
}

fn count_of(key: &[u8], text: &[u8]) -> Result<u64> {
    let count = parse_integer(text).and_then(|count| u64::try_from(count).ok());
    count.ok_or_else(|| Error::Corrupt {
        key: show(key),
        reason: "the last sequence of a log is not a number; an external client wrote it".into(),
    })
}

pub(crate) fn first_sequence<P: Partition>(tx: &mut Tx<'_, P>, list: &RawKey) -> Result<Option<u64>> {
    let Reply::List(head) = tx.raw_read(list, Read::LRange(0, 0))? else { return Ok(None) };
    head.first().map(|stored| Ok(parse_entry(list, stored)?.sequence)).transpose()
}

fn read_after<P: Partition>(
    tx: &mut Tx<'_, P>,
    list: &RawKey,
    counter: &RawKey,
    sequence: u64,
    limit: usize,
) -> Result<LogPage> {
    let last = last_sequence(tx, counter)?;
    let Some(first) = first_sequence(tx, list)? else {
        return Ok(LogPage { last, missed: last.saturating_sub(sequence), entries: vec![] });
    };
    let start = sequence.saturating_add(1).max(first);
    // Any index beyond the list reads nothing; clamped, the sum below does not overflow.
    let from = i64::try_from(start - first).unwrap_or(i64::MAX).min(i64::MAX - limit as i64);
    let Reply::List(stored) = tx.raw_read(list, Read::LRange(from, from + limit as i64 - 1))? else {
        return Ok(LogPage { last, ..Default::default() });
    };
    let entries = stored.iter().map(|entry| parse_entry(list, entry)).collect::<Result<_>>()?;
    Ok(LogPage { entries, last, missed: start.saturating_sub(sequence).saturating_sub(1) })
}
