//! Replies to reads, in the one form in which they are compared.

use super::answer::{array, text};
use super::layout::reply as special_reply;
use super::spelling::kind_found;
use bytes::Bytes;
use emberkeep_hot::command::*;
use redis::Value;

/// A reply of the script to `read`, or the server's error text.
pub(crate) fn reply(read: &Read, value: Value) -> Result<Reply, String> {
    if let Value::Array(special) = &value {
        match &special[..] {
            [Value::Int(special_reply::WRONG_TYPE), found] => {
                return Ok(Reply::WrongType(kind_found(text(found).as_bytes())));
            }
            [Value::Int(special_reply::TOO_MANY), Value::Int(n)] => return Ok(Reply::TooMany(*n as usize)),
            [Value::Int(special_reply::ERROR), words] => return Err(text(words)),
            _ => {}
        }
    }
    fitting(read, value).ok_or_else(|| format!("ERR the reply to {} was not understood", read.name()))
}

/// `None` when the value has not the shape of a reply to this read.
fn fitting(read: &Read, value: Value) -> Option<Reply> {
    Some(match (read, value) {
        (Read::Get | Read::HGet(_) | Read::ZScore(_) | Read::ZRank(..), Value::Nil) => Reply::Nil,
        (Read::Get | Read::HGet(_), Value::BulkString(bytes)) => Reply::Blob(Bytes::from(bytes)),
        (Read::ZScore(_), Value::BulkString(bytes)) => Reply::Score(score(&bytes)?),
        (Read::HGetAll, value) => {
            let mut pairs = pairs(array(value)?)?;
            pairs.sort();
            Reply::Pairs(pairs)
        }
        (Read::SMembers, value) => {
            let mut list = blobs(array(value)?)?;
            list.sort();
            Reply::List(list)
        }
        (Read::LRange(..), value) => Reply::List(blobs(array(value)?)?),
        (Read::ZRange(ZSlice::Lex(..), _), value) => {
            Reply::Scored(blobs(array(value)?)?.into_iter().map(|m| (m, Score::from_i64(0))).collect())
        }
        (Read::ZRange(..), value) => {
            let scored = |(member, text): (Bytes, Bytes)| Some((member, score(&text)?));
            Reply::Scored(pairs(array(value)?)?.into_iter().map(scored).collect::<Option<_>>()?)
        }
        (_, Value::Int(n)) => Reply::Int(n),
        _ => return None,
    })
}

fn score(text: &[u8]) -> Option<Score> {
    Score::new(std::str::from_utf8(text).ok()?.parse().ok()?).ok()
}

fn blobs(values: Vec<Value>) -> Option<Vec<Bytes>> {
    let blob = |value| match value {
        Value::BulkString(bytes) => Some(Bytes::from(bytes)),
        _ => None,
    };
    values.into_iter().map(blob).collect()
}

fn pairs(values: Vec<Value>) -> Option<Vec<(Bytes, Bytes)>> {
    let mut words = blobs(values)?.into_iter();
    let mut pairs = Vec::with_capacity(words.len() / 2);
    while let (Some(first), Some(second)) = (words.next(), words.next()) {
        pairs.push((first, second));
    }
    Some(pairs)
}
