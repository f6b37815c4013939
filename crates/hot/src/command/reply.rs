//! Replies, refusals included.

use super::{Kind, KindFound, Read, Score};
use crate::error::{Error, Result, show};
use crate::limits::*;
use bytes::Bytes;

/// The reply to a read. Replies are compared at the commit, so refusals are replies too: a transaction may
/// depend on a wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The key, field or member does not exist.
    Nil,
    /// A count, a position, a deadline in milliseconds since 1970, or 1 and 0 for yes and no.
    Int(i64),
    /// The score of a member that exists.
    Score(Score),
    /// A string, or the value of a hash field.
    Blob(Bytes),
    /// Members or elements. Sorted where the order has no meaning.
    List(Vec<Bytes>),
    /// Fields with values, sorted by field.
    Pairs(Vec<(Bytes, Bytes)>),
    /// Members with their scores, in the order of the read.
    Scored(Vec<(Bytes, Score)>),
    /// The key has another type.
    WrongType(KindFound),
    /// The reply would have this many elements.
    TooMany(usize),
}

impl Reply {
    /// Rough bytes of the reply, against [`REPLY_BYTES_MAX`].
    pub fn bytes(&self) -> usize {
        match self {
            Reply::Blob(blob) => blob.len(),
            Reply::List(list) => list.iter().map(|x| x.len()).sum(),
            Reply::Pairs(pairs) => pairs.iter().map(|(a, b)| a.len() + b.len()).sum(),
            Reply::Scored(list) => list.iter().map(|(m, _)| m.len() + 8).sum(),
            _ => 8,
        }
    }

    /// Turns refusals and oversized replies into errors.
    pub fn checked(self, key: &[u8], read: &Read) -> Result<Reply> {
        match self {
            Reply::WrongType(found) => Err(wrong_type(key, read.kind().unwrap_or(Kind::Text), found)),
            Reply::TooMany(found) => Err(too_large(key, read, found, "elements", REPLY_ELEMENTS_MAX)),
            reply if reply.bytes() > REPLY_BYTES_MAX && !matches!(reply, Reply::Blob(_)) => {
                Err(too_large(key, read, reply.bytes(), "bytes", REPLY_BYTES_MAX))
            }
            Reply::Blob(ref blob) if blob.len() > VALUE_BYTES_MAX => {
                Err(too_large(key, read, blob.len(), "bytes", VALUE_BYTES_MAX))
            }
            reply => Ok(reply),
        }
    }
}

/// The error for a key of another type.
pub fn wrong_type(key: &[u8], expected: Kind, found: KindFound) -> Error {
    Error::WrongType { key: show(key), expected: expected.name(), found }
}

pub(crate) fn too_large(key: &[u8], read: &Read, found: usize, unit: &'static str, max: usize) -> Error {
    Error::TooLarge { key: show(key), what: read.name(), found, unit, max }
}
