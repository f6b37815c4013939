//! The partition's log: what was recorded in the same commits as the state it speaks of.
//!
//! Keys: `ember:log:<partition>` is a list of `<sequence>:<entry>`, `ember:log:<partition>:seq` the last sequence.
//! Promises: sequences are continuous and start at 1; an entry is there exactly if its transaction committed; who finds
//! a first sequence above the one it asked for has missed what was dropped in between.
//!
//! Two ways to write it, and a partition keeps to one of them. [`Tx::record`] never reads the log, so that transactions which
//! only record do not conflict; its entries are appended when the transaction has committed, and no transaction sees them in its own
//! run. [`Tx::record_until`] is for a log that ends with the rest of its partition: plain reads and writes of both
//! keys, so that a transaction may begin, continue, read and drop the log like any other key.

use super::{Scope, Tx};
use crate::command::{Expiry, RawKey, Read, Reply, Write};
use crate::error::{Error, Result, show};
use crate::limits::REPLY_ELEMENTS_MAX;
use crate::tx::overlay::parse_integer;
use bytes::Bytes;
use emberkeep_schema::{KeyLayout, Partition};

/// One entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place; the first of a partition is 1.
    pub sequence: u64,
    /// What was recorded.
    pub entry: Bytes,
}

/// Entries of a log from a place on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// In order, without holes.
    pub entries: Vec<LogEntry>,
    /// The newest sequence of the log, whether or not it is on this page. 0 = nothing was ever recorded.
    pub last: u64,
    /// Entries between the asked place and the first one that is still there: they were dropped or trimmed.
    pub missed: u64,
}

/// The keys of a partition's log: the list and its counter.
pub fn log_keys(layout: &KeyLayout, partition: &[u8]) -> (RawKey, RawKey) {
    let mut list = Vec::new();
    let name = [b"log:", partition].concat();
    layout.write_own(partition, &name, &mut list);
    let counter = [&list[..], b":seq"].concat();
    (Bytes::from(list), Bytes::from(counter))
}

/// An entry as it is stored.
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

impl<P: Partition> Scope<P> {
    /// Up to `limit` entries after a sequence (0 = from the start), as of one moment.
    pub async fn log_after(&self, sequence: u64, limit: usize) -> Result<LogPage> {
        self.transact(move |tx| tx.log_after(sequence, limit)).await
    }

    /// Removes entries up to and including a sequence: they were taken over elsewhere.
    pub async fn log_trim(&self, through: u64) -> Result<()> {
        let (list, _) = log_keys(&self.store.layout, &self.text);
        self.transact(move |tx| {
            let Some(first) = first_sequence(tx, &list)? else { return Ok(()) };
            if through >= first {
                let gone = i64::try_from(through - first).unwrap_or(i64::MAX).saturating_add(1);
                tx.raw_write(list.clone(), Write::LTrim(gone, -1))?;
            }
            Ok::<_, Error>(())
        })
        .await
    }
}

impl<P: Partition> Scope<P> {
    /// The same scope, whose transactions will probably ask for the log's last sequence, see [`Scope::prefetch`].
    pub fn prefetch_log(mut self) -> Self {
        let (_, counter) = log_keys(&self.store.layout, &self.text);
        self.prefetched.push((counter, Read::Get));
        self
    }
}

/// A log with an end: it lives as long as what it speaks of.
impl<P: Partition> Tx<'_, P> {
    /// Begins the partition's log: what was there goes, the entry becomes number 1, and the log ends at a time that
    /// the caller gives, in milliseconds since 1970.
    pub fn begin_log(&mut self, entry: impl Into<Bytes>, until_ms: i64) -> Result<()> {
        self.drop_log()?;
        self.record_until(entry, 1, until_ms).map(|_| ())
    }

    /// Appends an entry and moves the end of the whole log; its sequence. Beyond `entries_max` the oldest go.
    pub fn record_until(
        &mut self,
        entry: impl Into<Bytes>,
        entries_max: usize,
        until_ms: i64,
    ) -> Result<u64> {
        crate::tx::check_log_bound(entries_max)?;
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

    /// Moves the end of the log, if there is one.
    pub fn log_expire_at(&mut self, at_ms: i64) -> Result<()> {
        let (list, counter) = self.log_keys();
        self.raw_write(list, Write::ExpireAt(at_ms))?;
        self.raw_write(counter, Write::ExpireAt(at_ms))
    }

    /// Removes the log with its counter: the next entry is number 1 again.
    pub fn drop_log(&mut self) -> Result<()> {
        let (list, counter) = self.log_keys();
        self.raw_write(list, Write::Del)?;
        self.raw_write(counter, Write::Del)
    }

    /// Up to `limit` entries after a sequence, as [`Scope::log_after`] gives them, together with what else the transaction reads.
    pub fn log_after(&mut self, sequence: u64, limit: usize) -> Result<LogPage> {
        let (list, counter) = self.log_keys();
        read_after(self, &list, &counter, sequence, limit.clamp(1, REPLY_ELEMENTS_MAX))
    }

    /// The newest sequence of the log, those of [`Tx::record_until`] in this transaction included; 0 = nothing was recorded.
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
        reason: "the last sequence of a log is no number; an external client wrote it".into(),
    })
}

fn first_sequence<P: Partition>(tx: &mut Tx<'_, P>, list: &RawKey) -> Result<Option<u64>> {
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
    // A place beyond every list is as good as the true one, and the sum below stays in range.
    let from = i64::try_from(start - first).unwrap_or(i64::MAX).min(i64::MAX - limit as i64);
    let Reply::List(stored) = tx.raw_read(list, Read::LRange(from, from + limit as i64 - 1))? else {
        return Ok(LogPage { last, ..Default::default() });
    };
    let entries = stored.iter().map(|entry| parse_entry(list, entry)).collect::<Result<_>>()?;
    Ok(LogPage { entries, last, missed: start.saturating_sub(sequence).saturating_sub(1) })
}
