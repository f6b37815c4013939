//! The one vocabulary: reads, replies and writes in the words of Redis, with absolute deadlines.
//!
//! The embedded engine applies these, its journal stores them, the commit script replays them. All keys here
//! are raw: prefix, partition tag and seed name already put together.

use crate::error::{Error, Result, show};
use crate::limits::*;
use bytes::Bytes;
use std::fmt;

/// A rendered key.
pub type RawKey = Bytes;

/// A sorted-set score: a double that is never NaN, and for which -0 is 0.
#[derive(Debug, Clone, Copy)]
pub struct Score(f64);

impl Score {
    /// Accepts every double but NaN.
    pub fn new(value: f64) -> Result<Score> {
        if value.is_nan() {
            return Err(Error::invalid("score", "NaN is no score, expected a number or an infinity"));
        }
        Ok(Score(value + 0.0))
    }

    /// A time or count as a score; exact below 2^53.
    pub fn from_i64(value: i64) -> Score {
        Score(value as f64)
    }

    /// The double.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Score {}
impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
impl std::hash::Hash for Score {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
/// Redis' own text of a score (`%.17g` without noise): what `ZSCORE` prints and `ZADD` reads.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            x if x == f64::INFINITY => f.write_str("inf"),
            x if x == f64::NEG_INFINITY => f.write_str("-inf"),
            x if x.abs() < 1e17 && x.fract() == 0.0 => write!(f, "{}", x as i64),
            x => write!(f, "{x:e}"),
        }
    }
}

/// One end of a score range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScoreBound {
    /// The score belongs to the range.
    Included(Score),
    /// The score does not belong to it.
    Excluded(Score),
}

impl ScoreBound {
    /// No lower limit.
    pub const MIN: ScoreBound = ScoreBound::Included(Score(f64::NEG_INFINITY));
    /// No upper limit.
    pub const MAX: ScoreBound = ScoreBound::Included(Score(f64::INFINITY));
}

/// One end of a range over members of equal score, by bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LexBound {
    /// Before every member.
    Min,
    /// After every member.
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
    /// By bytes among members of equal score, at most `limit` members.
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
            ZScore(_) | ZRange(..) | ZCard | ZCount(..) | ZLexCount(..) => Some(Kind::SortedSet),
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
            ZRange(..) => "ZRANGE",
            ZCard => "ZCARD",
            ZCount(..) => "ZCOUNT",
            ZLexCount(..) => "ZLEXCOUNT",
            LLen => "LLEN",
            LRange(..) => "LRANGE",
        }
    }

    /// Refuses ranges that could never be answered within the limits.
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

/// What a read answered. Replies are compared at the commit, so refusals are replies too: a step that saw a
/// foreign type saw something true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing there.
    Nil,
    /// A number.
    Int(i64),
    /// A score.
    Score(Score),
    /// Bytes.
    Blob(Bytes),
    /// Members or elements. Sorted where the order has no meaning.
    List(Vec<Bytes>),
    /// Fields with values, sorted by field.
    Pairs(Vec<(Bytes, Bytes)>),
    /// Members with scores.
    Scored(Vec<(Bytes, Score)>),
    /// The key holds another type.
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

    /// Turns refusals and oversized replies into errors, so that what is left is an answer to `read`.
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

fn too_large(key: &[u8], read: &Read, found: usize, unit: &'static str, max: usize) -> Error {
    Error::TooLarge { key: show(key), what: read.name(), found, unit, max }
}

/// The five types of Redis that the seeds use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// string
    Text,
    /// hash
    Hash,
    /// set
    Set,
    /// zset
    SortedSet,
    /// list
    List,
}

impl Kind {
    /// Redis' word for the type, as `TYPE` answers it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::List => "list",
        }
    }

    /// The type of that name, if it is one of the five.
    pub fn from_name(name: &str) -> Option<Kind> {
        [Kind::Text, Kind::Hash, Kind::Set, Kind::SortedSet, Kind::List].into_iter().find(|k| k.name() == name)
    }
}

/// What was found at a key of the wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KindFound {
    /// One of the five.
    Kind(Kind),
    /// A string that is no integer, where one was expected.
    NotAnInteger,
    /// A stream or a module's type.
    Foreign,
}

impl fmt::Display for KindFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KindFound::Kind(kind) => kind.name(),
            KindFound::NotAnInteger => "string that is no 64-bit integer",
            KindFound::Foreign => "type that Emberkeep does not know",
        })
    }
}

/// What a SET does to the key's deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// The deadline stays as it is (KEEPTTL).
    Keep,
    /// The key lives until deleted.
    Never,
    /// The key ends at this millisecond since 1970 (PXAT).
    At(i64),
}

/// A write of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Replaces whatever is there by a string.
    Set(Bytes, Expiry),
    /// Removes the key.
    Del,
    /// Adds to an integer string; an absent key counts as 0. The deadline stays.
    IncrBy(i64),
    /// Sets fields.
    HSet(Vec<(Bytes, Bytes)>),
    /// Removes fields.
    HDel(Vec<Bytes>),
    /// Adds members.
    SAdd(Vec<Bytes>),
    /// Removes members.
    SRem(Vec<Bytes>),
    /// Adds or moves members.
    ZAdd(Vec<(Bytes, Score)>),
    /// Removes members.
    ZRem(Vec<Bytes>),
    /// Pushes at the head, one after the other: the last one is the new head.
    LPush(Vec<Bytes>),
    /// Pushes at the tail.
    RPush(Vec<Bytes>),
    /// Removes up to n elements from the head.
    LPop(usize),
    /// Removes up to n elements from the tail.
    RPop(usize),
    /// Keeps only this part, both ends included, negative from the end.
    LTrim(i64, i64),
    /// Sets the deadline of an existing key.
    ExpireAt(i64),
    /// Removes the deadline of an existing key.
    Persist,
}

impl Write {
    /// The type that the key must have (or be absent); `None` where any type will do.
    pub fn kind(&self) -> Option<Kind> {
        use Write::*;
        match self {
            Set(..) | Del | ExpireAt(_) | Persist => None,
            IncrBy(_) => Some(Kind::Text),
            HSet(_) | HDel(_) => Some(Kind::Hash),
            SAdd(_) | SRem(_) => Some(Kind::Set),
            ZAdd(_) | ZRem(_) => Some(Kind::SortedSet),
            LPush(_) | RPush(_) | LPop(_) | RPop(_) | LTrim(..) => Some(Kind::List),
        }
    }

    /// Refuses what Redis would refuse or misread after other writes of the step were made.
    pub fn check(&self) -> Result<()> {
        use Write::*;
        let (arguments, longest) = self.extent();
        if arguments > COMMAND_ARGUMENTS_MAX {
            return Err(Error::invalid("write", format!("{arguments} arguments, at most {COMMAND_ARGUMENTS_MAX}; split it")));
        }
        if longest > VALUE_BYTES_MAX {
            return Err(Error::invalid("value", format!("{longest} bytes, at most {VALUE_BYTES_MAX}")));
        }
        match self {
            Set(_, Expiry::At(at)) | ExpireAt(at) if !(1..=DEADLINE_MS_MAX).contains(at) => {
                Err(Error::invalid("deadline", format!("{at}, expected 1..={DEADLINE_MS_MAX} ms since 1970")))
            }
            IncrBy(by) if by.unsigned_abs() > INCREMENT_MAX as u64 => {
                Err(Error::invalid("increment", format!("{by}, expected at most ±{INCREMENT_MAX}")))
            }
            HSet(p) if p.is_empty() => Err(empty()),
            ZAdd(p) if p.is_empty() => Err(empty()),
            HDel(v) | SAdd(v) | SRem(v) | ZRem(v) | LPush(v) | RPush(v) if v.is_empty() => Err(empty()),
            LPop(0) | RPop(0) => Err(empty()),
            _ => Ok(()),
        }
    }

    /// Number of arguments and length of the longest.
    fn extent(&self) -> (usize, usize) {
        use Write::*;
        let longest = |v: &[Bytes]| v.iter().map(|x| x.len()).max().unwrap_or(0);
        match self {
            Set(value, _) => (1, value.len()),
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
            Set(value, _) => value.len(),
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

/// Refuses keys over the limit.
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Error::invalid("key", format!("{} bytes, expected 1..={KEY_BYTES_MAX}", key.len())));
    }
    Ok(())
}

/// What happens when a partition's log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest entries go; readers notice the gap by the sequence.
    DropOldest,
    /// The step is refused with `LogFull`; nothing is lost.
    Refuse,
}

/// Everything one step does when it commits, in this order: writes, log entries, messages.
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
    /// What happens beyond.
    pub overflow: Overflow,
}

impl Effects {
    /// Whether the step changes nothing and tells nobody.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.log.is_empty() && self.messages.is_empty()
    }

    /// Forgets everything, keeps the allocations.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.log.clear();
        self.messages.clear();
    }
}

/// What a step's typed writes ask of one key before the first write: the key is absent or of this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The key.
    pub key: RawKey,
    /// Its type.
    pub kind: Kind,
    /// The string must be an integer, and the sum of the increments is this.
    pub increment: Option<i64>,
}

/// Which types must the keys have so that no write of the list can fail? Checked by every engine before the
/// first write, because Redis does not undo a script. A list that contradicts itself (SET, then SADD of the
/// same key) is an error here.
pub fn requirements(writes: &[(RawKey, Write)]) -> Result<Vec<Requirement>> {
    // Per key: what the writes so far make of it. `None` = any type, as after DEL.
    let mut seen: Vec<(&RawKey, Option<Kind>)> = Vec::new();
    let mut required: Vec<Requirement> = Vec::new();
    for (key, write) in writes {
        let known = seen.iter().position(|(k, _)| *k == key);
        let after = match write {
            Write::Set(..) => Some(Some(Kind::Text)),
            Write::Del => Some(None),
            _ => None,
        };
        match (write.kind(), known) {
            (Some(kind), None) => {
                required.push(Requirement { key: key.clone(), kind, increment: increment(write) });
                seen.push((key, Some(kind)));
            }
            (Some(kind), Some(at)) => match seen[at].1 {
                Some(held) if held != kind => return Err(wrong_type(key, kind, KindFound::Kind(held))),
                _ => {
                    seen[at].1 = Some(kind);
                    add_increment(&mut required, key, write);
                }
            },
            (None, Some(at)) => {
                if let Some(kind) = after {
                    seen[at].1 = kind;
                }
            }
            (None, None) => {
                if let Some(kind) = after {
                    seen.push((key, kind));
                }
            }
        }
    }
    Ok(required)
}

fn increment(write: &Write) -> Option<i64> {
    if let Write::IncrBy(by) = write { Some(*by) } else { None }
}

fn add_increment(required: &mut [Requirement], key: &RawKey, write: &Write) {
    if let (Some(by), Some(found)) = (increment(write), required.iter_mut().find(|r| r.key == key)) {
        found.increment = found.increment.map(|sum| sum.saturating_add(by));
    }
}
