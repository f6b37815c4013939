//! Event logs: how they are stored, and pages of them. `typed/log.rs` has the operations.
//!
//! A log is one key, a list of `<sequence>:<mark>:<event>`. Sequences start at 1 and have no gaps; the last
//! element carries the last one, so there is no counter that could disagree with the list. Trimming leaves
//! the entry that the consumer stands at, so a log that was written once is never empty.
//!
//! An element that an external client overwrote has the number of its place beside the nearest entry, and stays in
//! its place as an error. If no element is an entry any more, the list has no numbers until the next entry is
//! appended: that one is numbered by the time, so that numbers still grow.
//!
//! The mark is random, eight hexadecimal digits. It tells whether the entry of a sequence is still the one
//! that a reader has read: a failover or a restore can set a log back, and the sequences after it are given
//! again, to other events.

use crate::command::{Read, Reply};
use crate::error::{Error, Result, show};
use crate::limits::{LOG_NUMBERS_PER_MS, LOG_SEARCH_ELEMENTS, LOG_SEQUENCE_MAX};
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;

/// Where a reader of a log stands: at the entry that it has read last.
///
/// As text, to be stored: `17:9f3c21ab`. A sequence alone ([`From<u64>`]) is a position too; then a log that
/// was set back and has grown past it since is not recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct LogPosition {
    /// The sequence; 0 = before the first entry.
    pub sequence: u64,
    /// The entry's mark; `None` = not known.
    pub mark: Option<u32>,
}

impl LogPosition {
    /// Before the first entry.
    pub const START: LogPosition = LogPosition { sequence: 0, mark: None };
}

impl From<u64> for LogPosition {
    fn from(sequence: u64) -> LogPosition {
        LogPosition { sequence, mark: None }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mark {
            Some(mark) => write!(f, "{}:{mark:08x}", self.sequence),
            None => write!(f, "{}", self.sequence),
        }
    }
}

impl FromStr for LogPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<LogPosition> {
        let parsed = match text.split_once(':') {
            Some((sequence, mark)) => sequence.parse().ok().zip(parse_mark(mark.as_bytes()).map(Some)),
            None => text.parse().ok().map(|sequence| (sequence, None)),
        };
        let (sequence, mark) = parsed.ok_or_else(|| {
            Error::invalid("log position", format!("{text:?}, expected a sequence such as 17 or 17:9f3c21ab"))
        })?;
        Ok(LogPosition { sequence, mark })
    }
}

/// One entry of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry<E> {
    /// The sequence number; the first entry of a log has 1.
    pub sequence: u64,
    /// The entry's mark; `None` = an external client overwrote it.
    pub mark: Option<u32>,
    /// The event, or why it cannot be read: its bytes do not decode, or an external client wrote them.
    pub event: Result<E>,
}

impl<E> LogEntry<E> {
    /// The position of a reader that has read this entry.
    pub fn position(&self) -> LogPosition {
        LogPosition { sequence: self.sequence, mark: self.mark }
    }
}

/// Entries of a log after a position.
#[derive(Debug, Clone, PartialEq)]
pub struct LogPage<E> {
    /// In order, without gaps.
    pub entries: Vec<LogEntry<E>>,
    /// The newest sequence of the log, whether or not it is on this page. 0 = there is no log.
    pub last: u64,
    /// Entries after the position that were dropped or trimmed before the first one of this page.
    pub missed: u64,
    /// The position is not one of this log: it ends before the position, or another entry stands there. The
    /// log was set back, by a failover or a restore, or removed and begun anew. The page is empty then; go on
    /// from [`LogPosition::START`].
    pub is_reset: bool,
}

impl<E> Default for LogPage<E> {
    fn default() -> Self {
        LogPage { entries: vec![], last: 0, missed: 0, is_reset: false }
    }
}

/// An element of the list, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredEntry {
    pub(crate) sequence: u64,
    pub(crate) mark: u32,
    pub(crate) event: Bytes,
}

impl StoredEntry {
    pub(crate) fn position(&self) -> LogPosition {
        LogPosition { sequence: self.sequence, mark: Some(self.mark) }
    }
}

/// An entry before it has a sequence: its mark and its event.
pub(crate) fn marked(mark: u32, event: &[u8]) -> Bytes {
    let mut entry = Vec::with_capacity(9 + event.len());
    for shift in (0..8).rev() {
        entry.push(b"0123456789abcdef"[(mark >> (4 * shift)) as usize & 15]);
    }
    entry.push(b':');
    entry.extend_from_slice(event);
    Bytes::from(entry)
}

/// An entry as it is stored. For engines.
#[doc(hidden)]
pub fn numbered(sequence: u64, entry: &[u8]) -> Bytes {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(sequence).as_bytes();
    Bytes::from([digits, b":", entry].concat())
}

/// The sequence at the start of an element; `None` if it is not an entry of a log.
fn sequence_of(stored: &[u8]) -> Option<u64> {
    let colon = stored.iter().take(16).position(|byte| *byte == b':')?;
    let digits = &stored[..colon];
    if digits.is_empty() || digits[0] == b'0' {
        return None;
    }
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    digits.iter().try_fold(0, |sum, byte| Some(sum * 10 + digit(byte)?)).filter(|n| *n <= LOG_SEQUENCE_MAX)
}

fn parse_mark(text: &[u8]) -> Option<u32> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    (text.len() == 8).then_some(())?;
    text.iter().try_fold(0, |mark, byte| Some(mark << 4 | digit(byte)?))
}

/// Sequence and mark of an element, and where its event begins; `None` if it is not an entry of a log.
fn parts(stored: &[u8]) -> Option<(u64, u32, usize)> {
    let sequence = sequence_of(stored)?;
    let rest = stored.iter().position(|byte| *byte == b':')? + 1;
    let mark = parse_mark(stored.get(rest..rest + 8)?)?;
    (stored.get(rest + 8) == Some(&b':')).then_some((sequence, mark, rest + 9))
}

/// Takes an element apart; `None` if it is not an entry of a log.
pub(crate) fn parse_entry(stored: &Bytes) -> Option<StoredEntry> {
    let (sequence, mark, event) = parts(stored)?;
    Some(StoredEntry { sequence, mark, event: stored.slice(event..) })
}

/// The error of an element that is not an entry of this log, or not the one of its place.
pub(crate) fn not_an_entry(key: &[u8]) -> Error {
    let reason =
        "an element of the log that is not `<sequence>:<mark>:<event>` in order; an external client wrote it";
    Error::Corrupt { key: show(key), reason: reason.into() }
}

/// The read of the last element.
pub(crate) const LAST: Read = Read::LRange(-1, -1);

/// What stands at one place of a list.
pub(crate) enum Place {
    /// Nothing: the list ends before it.
    Empty,
    Entry(StoredEntry),
    /// An element that is not an entry: an external client wrote it.
    Other,
}

impl Place {
    /// Of the reply to a read of one element.
    pub(crate) fn of(reply: Result<Reply>) -> Result<Place> {
        match reply {
            Ok(Reply::List(list)) => Ok(list
                .first()
                .map_or(Place::Empty, |stored| parse_entry(stored).map_or(Place::Other, Place::Entry))),
            Ok(_) => Ok(Place::Empty),
            // No entry is as large.
            Err(Error::TooLarge { .. }) => Ok(Place::Other),
            Err(error) => Err(error),
        }
    }
}

/// What is known of the number of a log's last element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastNumber {
    /// There is no log: the first entry has 1.
    NoLog,
    Known(u64),
    /// No element is an entry.
    Lost,
}

impl LastNumber {
    /// The number after which the next entry comes. `now_ms` is asked for only if all numbers are lost: time goes faster
    /// than a log grows, so what it gives is above all that were there.
    pub(crate) fn or_by_time(self, now_ms: impl FnOnce() -> i64) -> u64 {
        match self {
            LastNumber::NoLog => 0,
            LastNumber::Known(number) => number,
            LastNumber::Lost => now_ms().max(1) as u64 * LOG_NUMBERS_PER_MS,
        }
    }
}

/// The number of the last element, by the nearest entry before it, if it is not one itself. `read` answers reads of the log.
pub(crate) fn last_number(mut read: impl FnMut(Read) -> Result<Reply>) -> Result<LastNumber> {
    // Elements at the end that are not entries.
    let mut others: i64 = 0;
    let mut count = 1;
    loop {
        match read(Read::LRange(-others - count, -others - 1)) {
            Ok(Reply::List(stored)) if !stored.is_empty() => {
                if let Some(number) = number_of_last(stored.iter().rev().map(|stored| &stored[..])) {
                    return Ok(LastNumber::Known(number + others as u64));
                }
                (others, count) = (others + stored.len() as i64, LOG_SEARCH_ELEMENTS);
            }
            Ok(_) if others == 0 => return Ok(LastNumber::NoLog),
            Ok(_) => return Ok(LastNumber::Lost),
            // What is too large for a reply is not an entry.
            Err(Error::TooLarge { .. }) if count == 1 => others += 1,
            Err(Error::TooLarge { .. }) => count = 1,
            Err(error) => return Err(error),
        }
    }
}

/// The number of the first of some elements, from the end of a list backwards, by the nearest entry among them.
pub(crate) fn number_of_last<'b>(backwards: impl Iterator<Item = &'b [u8]>) -> Option<u64> {
    (0..).zip(backwards).find_map(|(distance, stored)| Some(parts(stored)?.0 + distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_taken_apart_as_it_was_put_together() {
        let stored = numbered(17, &marked(0x9f3c_21ab, b"a:b"));
        assert_eq!(stored, "17:9f3c21ab:a:b");
        let entry = parse_entry(&stored).unwrap();
        assert_eq!((entry.sequence, entry.mark, &entry.event[..]), (17, 0x9f3c_21ab, &b"a:b"[..]));
        let last = numbered(LOG_SEQUENCE_MAX, &marked(0, b""));
        assert_eq!(parse_entry(&last).map(|entry| entry.sequence), Some(LOG_SEQUENCE_MAX));
    }

    #[test]
    fn what_no_transaction_of_ours_wrote_is_not_an_entry() {
        let strange =
            ["", "17", "17:", ":", "0:00000000:", "x:00000000:", "-1:00000000:", "1:0000000:", "1:0000000g:"];
        for text in strange.into_iter().chain(["1:00000000", "1000000000000000:00000000:", "01:00000000:"]) {
            assert_eq!(parse_entry(&Bytes::from_static(text.as_bytes())), None, "{text}");
        }
    }

    #[test]
    fn a_position_is_stored_as_text() {
        for position in [LogPosition::START, 5.into(), LogPosition { sequence: 7, mark: Some(0xab) }] {
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        assert_eq!(LogPosition { sequence: 7, mark: Some(0xab) }.to_string(), "7:000000ab");
        assert!("7:ab".parse::<LogPosition>().is_err() && "".parse::<LogPosition>().is_err());
    }
}
