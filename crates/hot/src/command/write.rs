//! Writes and the checks of their arguments.

use super::{Kind, Score, number_after_comma};
use crate::error::{Error, Result};
use crate::limits::*;
use bytes::Bytes;

/// What a SET does to the key's deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// The deadline stays as it is (KEEPTTL).
    Keep,
    /// The key loses its deadline, or never had one.
    Never,
    /// The key expires at this millisecond since 1970 (PXAT).
    At(i64),
}

/// A write of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Replaces the value, of any type, by a string.
    Set(Bytes, Expiry),
    /// Replaces the value by a string if the [`number_after_comma`](super::number_after_comma) of that is greater than the
    /// stored one. A value without such a number, of any type, is replaced. What is stored stays as it is otherwise, with
    /// its deadline. An increment of the same key after it, in the same transaction, is refused.
    SetIfGreater(Bytes, Expiry),
    /// Removes the key with everything in it.
    Del,
    /// Adds to an integer string; an absent key counts as 0. The deadline stays.
    IncrBy(i64),
    /// Sets fields of a hash; the others stay.
    HSet(Vec<(Bytes, Bytes)>),
    /// Adds to the integer in a field; an absent one counts as 0.
    HIncrBy(Bytes, i64),
    /// Removes fields; a hash without fields is gone.
    HDel(Vec<Bytes>),
    /// Adds members; those that are there stay.
    SAdd(Vec<Bytes>),
    /// Removes members; a set without members is gone.
    SRem(Vec<Bytes>),
    /// Adds or moves members.
    ZAdd(Vec<(Bytes, Score)>),
    /// Adds a finite number to a member's score; an absent one counts as 0.
    ZIncrBy(Bytes, Score),
    /// Removes members; a sorted set without members is gone.
    ZRem(Vec<Bytes>),
    /// Pushes at the head, one after the other: the last one is the new head.
    LPush(Vec<Bytes>),
    /// Pushes at the tail.
    RPush(Vec<Bytes>),
    /// Removes up to n elements from the head.
    LPop(usize),
    /// Removes up to n elements from the tail.
    RPop(usize),
    /// Replaces the element at this position, negative from the end. Refused if there is none.
    LSet(i64, Bytes),
    /// Keeps only this part, both ends included, negative from the end.
    LTrim(i64, i64),
    /// Sets the deadline of an existing key.
    ExpireAt(i64),
    /// Sets the deadline of an existing key that has none.
    ExpireAtIfNone(i64),
    /// Removes the deadline of an existing key.
    Persist,
}

impl Write {
    /// The type that the key must have (or be absent); `None` where any type will do.
    pub fn kind(&self) -> Option<Kind> {
        use Write::*;
        match self {
            Set(..) | SetIfGreater(..) | Del | ExpireAt(_) | ExpireAtIfNone(_) | Persist => None,
            IncrBy(_) => Some(Kind::Text),
            HSet(_) | HIncrBy(..) | HDel(_) => Some(Kind::Hash),
            SAdd(_) | SRem(_) => Some(Kind::Set),
            ZAdd(_) | ZIncrBy(..) | ZRem(_) => Some(Kind::SortedSet),
            LPush(_) | RPush(_) | LPop(_) | RPop(_) | LSet(..) | LTrim(..) => Some(Kind::List),
        }
    }

    /// The deadline that the write sets, perhaps only under a condition.
    pub fn deadline(&self) -> Option<i64> {
        match self {
            Write::Set(_, Expiry::At(at)) | Write::SetIfGreater(_, Expiry::At(at)) => Some(*at),
            Write::ExpireAt(at) | Write::ExpireAtIfNone(at) => Some(*at),
            _ => None,
        }
    }

    /// Whether the key certainly exists after it, whatever was there.
    pub fn leaves_key(&self) -> bool {
        use Write::*;
        match self {
            Set(..) | SetIfGreater(..) | IncrBy(_) | HSet(_) | HIncrBy(..) | SAdd(_) | ZAdd(_)
            | ZIncrBy(..) => true,
            LPush(_) | RPush(_) => true,
            Del | HDel(_) | SRem(_) | ZRem(_) | LPop(_) | RPop(_) | LSet(..) | LTrim(..) => false,
            ExpireAt(_) | ExpireAtIfNone(_) | Persist => false,
        }
    }

    /// Whether it changes nothing but the deadline.
    pub fn is_of_deadline(&self) -> bool {
        matches!(self, Write::ExpireAt(_) | Write::ExpireAtIfNone(_) | Write::Persist)
    }

    /// Checks everything that Redis could refuse or misread: it would do so after other writes of the
    /// transaction.
    pub fn check(&self) -> Result<()> {
        use Write::*;
        let (arguments, longest) = self.extent();
        if arguments > COMMAND_ARGUMENTS_MAX {
            return Err(Error::invalid(
                "write",
                format!("{arguments} arguments, at most {COMMAND_ARGUMENTS_MAX}; split it"),
            ));
        }
        if longest > VALUE_BYTES_MAX {
            return Err(Error::invalid("value", format!("{longest} bytes, at most {VALUE_BYTES_MAX}")));
        }
        match self {
            Set(_, Expiry::At(at)) | SetIfGreater(_, Expiry::At(at)) | ExpireAt(at) | ExpireAtIfNone(at)
                if !(1..=DEADLINE_MS_MAX).contains(at) =>
            {
                Err(Error::invalid("deadline", format!("{at}, expected 1..={DEADLINE_MS_MAX} ms since 1970")))
            }
            SetIfGreater(value, _) if number_after_comma(value).is_none() => {
                Err(Error::invalid("value", "no integer after its last comma, by which it could be greater"))
            }
            IncrBy(by) | HIncrBy(_, by) if by.unsigned_abs() > INCREMENT_MAX as u64 => {
                Err(Error::invalid("increment", format!("{by}, expected at most ±{INCREMENT_MAX}")))
            }
            ZIncrBy(_, by) if !by.get().is_finite() => {
                Err(Error::invalid("increment", format!("{by}, expected a finite number")))
            }
            HSet(p) if p.is_empty() => Err(empty()),
            ZAdd(p) if p.is_empty() => Err(empty()),
            HDel(v) | SAdd(v) | SRem(v) | ZRem(v) | LPush(v) | RPush(v) if v.is_empty() => Err(empty()),
            LPop(0) | RPop(0) => Err(empty()),
            LPop(count) | RPop(count) if i64::try_from(*count).is_err() => {
                Err(Error::invalid("count", format!("{count}, expected at most {}", i64::MAX)))
            }
            _ => Ok(()),
        }
    }

    /// Number of arguments and length of the longest.
    fn extent(&self) -> (usize, usize) {
        use Write::*;
        let longest = |v: &[Bytes]| v.iter().map(|x| x.len()).max().unwrap_or(0);
        match self {
            Set(value, _) | SetIfGreater(value, _) | LSet(_, value) => (1, value.len()),
            HIncrBy(name, _) | ZIncrBy(name, _) => (2, name.len()),
            HSet(p) => (p.len() * 2, p.iter().map(|(f, v)| f.len().max(v.len())).max().unwrap_or(0)),
            ZAdd(p) => (p.len() * 2, p.iter().map(|(m, _)| m.len()).max().unwrap_or(0)),
            HDel(v) | SAdd(v) | SRem(v) | ZRem(v) | LPush(v) | RPush(v) => (v.len(), longest(v)),
            _ => (1, 0),
        }
    }

    /// Rough bytes of the write, for batch and memory bounds.
    pub fn bytes(&self) -> usize {
        use Write::*;
        match self {
            Set(value, _) | SetIfGreater(value, _) | LSet(_, value) => value.len(),
            HIncrBy(name, _) | ZIncrBy(name, _) => name.len() + 16,
            HSet(p) => p.iter().map(|(f, v)| f.len() + v.len()).sum(),
            ZAdd(p) => p.iter().map(|(m, _)| m.len() + 16).sum(),
            HDel(v) | SAdd(v) | SRem(v) | ZRem(v) | LPush(v) | RPush(v) => v.iter().map(|x| x.len()).sum(),
            _ => 16,
        }
    }
}

fn empty() -> Error {
    Error::invalid("write", "no elements, expected at least one")
}
