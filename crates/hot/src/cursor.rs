//! Cursors of scans.

use crate::error::{Error, Result};
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;

/// A position in a scan. Opaque; it can be printed and parsed, so that another caller can continue the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cursor {
    /// Which node or shard.
    pub place: u32,
    /// Where in it. Its meaning is the engine's: an index of entries, or a cursor of `SCAN`.
    pub position: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.place, self.position)
    }
}

impl FromStr for Cursor {
    type Err = Error;
    fn from_str(text: &str) -> Result<Cursor> {
        let parsed = text.split_once('-').and_then(|(place, position)| {
            Some(Cursor { place: place.parse().ok()?, position: position.parse().ok()? })
        });
        parsed.ok_or_else(|| wrong(text))
    }
}

fn wrong(text: &str) -> Error {
    Error::invalid("cursor", format!("{text:?}, expected the text of an earlier page's cursor"))
}

/// A position in a scan of a set's members. Opaque; it can be printed and parsed, so that another caller can
/// continue.
///
/// ```
/// use emberkeep_hot::engine::MemberCursor;
///
/// let after = MemberCursor::After("a:1".into());
/// assert_eq!(after.to_string(), "x613a31");
/// assert_eq!("x613a31".parse(), Ok(after));
/// assert!("anything else".parse::<MemberCursor>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MemberCursor {
    /// A server and its own cursor.
    At(Cursor),
    /// Every member up to this one was returned.
    After(Bytes),
}

impl MemberCursor {
    /// The position on a server; without a cursor, the start.
    pub fn at(from: Option<MemberCursor>) -> Result<Cursor> {
        match from {
            None => Ok(Cursor::default()),
            Some(MemberCursor::At(cursor)) => Ok(cursor),
            Some(other) => Err(of_another_engine(&other)),
        }
    }

    /// The member after which an ordered scan continues; without a cursor, the start.
    pub fn after(from: Option<MemberCursor>) -> Result<Option<Bytes>> {
        match from {
            None => Ok(None),
            Some(MemberCursor::After(member)) => Ok(Some(member)),
            Some(other) => Err(of_another_engine(&other)),
        }
    }
}

fn of_another_engine(cursor: &MemberCursor) -> Error {
    Error::invalid("cursor", format!("{cursor} belongs to another engine; start again without a cursor"))
}

impl fmt::Display for MemberCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberCursor::At(cursor) => cursor.fmt(f),
            MemberCursor::After(member) => {
                f.write_str("x")?;
                member.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl FromStr for MemberCursor {
    type Err = Error;
    fn from_str(text: &str) -> Result<MemberCursor> {
        match text.strip_prefix('x') {
            Some(digits) => unhex(digits.as_bytes()).map(MemberCursor::After).ok_or_else(|| wrong(text)),
            None => text.parse().map(MemberCursor::At),
        }
    }
}

fn unhex(digits: &[u8]) -> Option<Bytes> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| (byte as char).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? * 16 + digit(*low)?) as u8);
    rest.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}
