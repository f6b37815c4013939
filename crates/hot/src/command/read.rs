//! Reads and the limits of their ranges.

use super::reply::too_large;
use super::{Kind, Score};
use crate::error::Result;
use crate::limits::REPLY_ELEMENTS_MAX;
use bytes::Bytes;

/// One end of a score range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScoreBound {
    /// The score belongs to the range.
    Included(Score),
    /// The score does not belong to it.
    Excluded(Score),
}

impl ScoreBound {
    /// The range begins at the lowest score.
    pub const MIN: ScoreBound = ScoreBound::Included(Score(f64::NEG_INFINITY));
    /// The range ends at the highest score.
    pub const MAX: ScoreBound = ScoreBound::Included(Score(f64::INFINITY));
}

/// One end of a range over members of equal score, by bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LexBound {
    /// Below every member: the range has no lower end.
    Min,
    /// Above every member: the range has no upper end.
    Max,
    /// The member belongs to the range.
    Included(Bytes),
    /// The member does not belong to it.
    Excluded(Bytes),
}

/// Which part of a sorted set, in which direction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ZSlice {
    /// By position, both ends included, negative from the end (as ZRANGE).
    Rank(i64, i64),
    /// By score, at most `limit` members.
    Score(ScoreBound, ScoreBound, usize),
    /// By bytes among members of equal score, at most `limit` members; the scores are given as 0.
    Lex(LexBound, LexBound, usize),
}

/// A read: a point or a bounded range of one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Read {
    /// The string. `Nil` or `Blob`.
    Get,
    /// Whether the key exists, of any type. `Int` 0 or 1.
    Exists,
    /// The deadline. `Int`: -2 absent, -1 none, otherwise milliseconds since 1970.
    ExpireTime,
    /// One field of a hash. `Nil` or `Blob`.
    HGet(Bytes),
    /// All fields of a hash. `Pairs`, sorted by field.
    HGetAll,
    /// How many fields. `Int`.
    HLen,
    /// Whether a set has the member. `Int` 0 or 1.
    SIsMember(Bytes),
    /// All members of a set. `List`, sorted.
    SMembers,
    /// How many members. `Int`.
    SCard,
    /// A member's score. `Nil` or `Score`.
    ZScore(Bytes),
    /// A member's position, from 0. `Nil` or `Int`. `true` = from the highest.
    ZRank(Bytes, bool),
    /// Members with scores. `Scored`, in the order asked for. `true` = from the highest.
    ZRange(ZSlice, bool),
    /// How many members. `Int`.
    ZCard,
    /// How many members in a score range. `Int`.
    ZCount(ScoreBound, ScoreBound),
    /// How many members in a byte range. `Int`.
    ZLexCount(LexBound, LexBound),
    /// Length of a list. `Int`.
    LLen,
    /// Part of a list, both ends included, negative from the end. `List`.
    LRange(i64, i64),
}

impl Read {
    /// The Redis type that this read expects; `None` where any type will do.
    pub fn kind(&self) -> Option<Kind> {
        use Read::*;
        match self {
            Get => Some(Kind::Text),
            Exists | ExpireTime => None,
            HGet(_) | HGetAll | HLen => Some(Kind::Hash),
            SIsMember(_) | SMembers | SCard => Some(Kind::Set),
            ZScore(_) | ZRank(..) | ZRange(..) | ZCard | ZCount(..) | ZLexCount(..) => Some(Kind::SortedSet),
            LLen | LRange(..) => Some(Kind::List),
        }
    }

    /// The read's Redis name, for messages.
    pub fn name(&self) -> &'static str {
        use Read::*;
        match self {
            Get => "GET",
            Exists => "EXISTS",
            ExpireTime => "PEXPIRETIME",
            HGet(_) => "HGET",
            HGetAll => "HGETALL",
            HLen => "HLEN",
            SIsMember(_) => "SISMEMBER",
            SMembers => "SMEMBERS",
            SCard => "SCARD",
            ZScore(_) => "ZSCORE",
            ZRank(_, false) => "ZRANK",
            ZRank(_, true) => "ZREVRANK",
            ZRange(..) => "ZRANGE",
            ZCard => "ZCARD",
            ZCount(..) => "ZCOUNT",
            ZLexCount(..) => "ZLEXCOUNT",
            LLen => "LLEN",
            LRange(..) => "LRANGE",
        }
    }

    /// Refuses ranges that can never be answered within the limits.
    pub fn check(&self, key: &[u8]) -> Result<()> {
        let span = match self {
            Read::LRange(start, stop) | Read::ZRange(ZSlice::Rank(start, stop), _)
                if (*start < 0) == (*stop < 0) =>
            {
                stop.saturating_sub(*start).saturating_add(1).max(0) as usize
            }
            Read::ZRange(ZSlice::Score(_, _, limit) | ZSlice::Lex(_, _, limit), _) => *limit,
            _ => 0,
        };
        if span > REPLY_ELEMENTS_MAX {
            return Err(too_large(key, self, span, "elements", REPLY_ELEMENTS_MAX));
        }
        Ok(())
    }
}
