//! Short constructors of writes and replies, so that a case reads as a list of commands and answers.

use bytes::Bytes;
use emberkeep_hot::command::{Expiry, LexBound, Reply, Score, ScoreBound, Write, ZSlice};

/// The bytes of a text, for arguments and replies.
pub fn b(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The bytes of each text, in order.
pub fn bs(texts: &[&str]) -> Vec<Bytes> {
    texts.iter().map(|text| b(text)).collect()
}

/// A score that commands take.
pub fn score(value: f64) -> Score {
    Score::new(value).expect("a case gives no NaN")
}

/// SET without a deadline.
pub fn set(text: &str) -> Write {
    Write::Set(b(text), Expiry::Never)
}

/// SET with a deadline.
pub fn set_at(text: &str, at: i64) -> Write {
    Write::Set(b(text), Expiry::At(at))
}

/// SET that keeps the deadline.
pub fn set_keep(text: &str) -> Write {
    Write::Set(b(text), Expiry::Keep)
}

/// A string that is set if it is greater.
pub fn set_if_greater(text: &str, expiry: Expiry) -> Write {
    Write::SetIfGreater(b(text), expiry)
}

/// Sets fields of a hash.
pub fn hset(pairs: &[(&str, &str)]) -> Write {
    Write::HSet(pairs.iter().map(|(field, value)| (b(field), b(value))).collect())
}

/// Removes fields of a hash.
pub fn hdel(fields: &[&str]) -> Write {
    Write::HDel(bs(fields))
}

/// Adds members to a set.
pub fn sadd(members: &[&str]) -> Write {
    Write::SAdd(bs(members))
}

/// Removes members of a set.
pub fn srem(members: &[&str]) -> Write {
    Write::SRem(bs(members))
}

/// Adds or moves members of a sorted set.
pub fn zadd(pairs: &[(&str, f64)]) -> Write {
    Write::ZAdd(pairs.iter().map(|(member, value)| (b(member), score(*value))).collect())
}

/// Removes members of a sorted set.
pub fn zrem(members: &[&str]) -> Write {
    Write::ZRem(bs(members))
}

/// Pushes elements at the head of a list.
pub fn lpush(elements: &[&str]) -> Write {
    Write::LPush(bs(elements))
}

/// Pushes elements at the tail of a list.
pub fn rpush(elements: &[&str]) -> Write {
    Write::RPush(bs(elements))
}

/// A string as a reply.
pub fn blob(text: &str) -> Reply {
    Reply::Blob(b(text))
}

/// A number as a reply.
pub fn int(number: i64) -> Reply {
    Reply::Int(number)
}

/// A list as a reply.
pub fn list(elements: &[&str]) -> Reply {
    Reply::List(bs(elements))
}

/// Fields with values as a reply.
pub fn pairs(pairs: &[(&str, &str)]) -> Reply {
    Reply::Pairs(pairs.iter().map(|(field, value)| (b(field), b(value))).collect())
}

/// Members with scores as a reply.
pub fn scored(pairs: &[(&str, f64)]) -> Reply {
    Reply::Scored(pairs.iter().map(|(member, value)| (b(member), score(*value))).collect())
}

/// A score range's end that belongs to it.
pub fn incl(value: f64) -> ScoreBound {
    ScoreBound::Included(score(value))
}

/// A score range's end that does not belong to it.
pub fn excl(value: f64) -> ScoreBound {
    ScoreBound::Excluded(score(value))
}

/// A byte range's end that belongs to it.
pub fn lex_incl(text: &str) -> LexBound {
    LexBound::Included(b(text))
}

/// A byte range's end that does not belong to it.
pub fn lex_excl(text: &str) -> LexBound {
    LexBound::Excluded(b(text))
}

/// All of a sorted set by rank.
pub fn all_ranks() -> ZSlice {
    ZSlice::Rank(0, -1)
}

/// Elements `0..n` as text, padded so that their order is that of the numbers.
pub fn numbered(count: usize) -> Vec<Bytes> {
    (0..count).map(|n| Bytes::from(format!("{n:06}"))).collect()
}
