//! The reply to a read of an entry, or of an absent key.

use super::slab::{Entry, NEVER};
use super::sorted_blocks::Item;
use super::value::{Collection, Fields, Members, Scores, Value, copy};
use crate::command::*;
use crate::limits::REPLY_ELEMENTS_MAX;
use crate::tx::overlay::resolve;
use bytes::Bytes;

/// The reply to a read. `None` = the key is not there (or has ended).
pub(super) fn reply_to(entry: Option<&Entry>, read: &Read) -> Reply {
    let Some(entry) = entry else { return absent(read) };
    match read {
        Read::Exists => return Reply::Int(1),
        Read::ExpireTime => return Reply::Int(if entry.deadline == NEVER { -1 } else { entry.deadline }),
        _ => {}
    }
    match (&entry.value, read) {
        (Value::Text(text), Read::Get) => Reply::Blob(copy(text)),
        (Value::Many(collection), read) if read.kind() == Some(collection.kind()) => {
            members(collection, read)
        }
        (other, _) => Reply::WrongType(KindFound::Kind(other.kind())),
    }
}

fn absent(read: &Read) -> Reply {
    use Read::*;
    match read {
        Get | HGet(_) | ZScore(_) | ZRank(..) => Reply::Nil,
        ExpireTime => Reply::Int(-2),
        HGetAll => Reply::Pairs(vec![]),
        SMembers | LRange(..) => Reply::List(vec![]),
        ZRange(..) => Reply::Scored(vec![]),
        Exists | HLen | SIsMember(_) | SCard | ZCard | ZCount(..) | ZLexCount(..) | LLen => Reply::Int(0),
    }
}

fn members(collection: &Collection, read: &Read) -> Reply {
    match (collection, read) {
        (_, Read::HLen | Read::SCard | Read::ZCard | Read::LLen) => Reply::Int(collection.len() as i64),
        (Collection::Hash(fields), read) => of_hash(fields, read),
        (Collection::Set(members), read) => of_set(members, read),
        (Collection::SortedSet(scores), read) => of_sorted_set(scores, read),
        (Collection::List(elements), Read::LRange(start, stop)) => {
            let Some((from, to)) = resolve(*start, *stop, elements.list.len()) else {
                return Reply::List(vec![]);
            };
            bounded(to - from + 1, || Reply::List(elements.list.range(from..=to).map(|e| copy(e)).collect()))
        }
        (other, _) => Reply::WrongType(KindFound::Kind(other.kind())),
    }
}

fn bounded(len: usize, reply: impl FnOnce() -> Reply) -> Reply {
    if len > REPLY_ELEMENTS_MAX { Reply::TooMany(len) } else { reply() }
}

fn of_hash(fields: &Fields, read: &Read) -> Reply {
    match read {
        Read::HGet(field) => fields.map.get(&field[..]).map_or(Reply::Nil, |value| Reply::Blob(copy(value))),
        _ => bounded(fields.map.len(), || {
            Reply::Pairs(fields.map.iter().map(|(field, value)| (copy(field), copy(value))).collect())
        }),
    }
}

fn of_set(members: &Members, read: &Read) -> Reply {
    match read {
        Read::SIsMember(member) => Reply::Int(members.set.contains(&member[..]) as i64),
        _ => bounded(members.set.len(), || Reply::List(members.set.iter().map(|m| copy(m)).collect())),
    }
}

fn of_sorted_set(scores: &Scores, read: &Read) -> Reply {
    match read {
        Read::ZScore(member) => scores.of.get(&member[..]).map_or(Reply::Nil, |score| Reply::Score(*score)),
        Read::ZRank(member, reverse) => match scores.of.get(&member[..]) {
            Some(score) => {
                let before = |(held, bytes): &Item| (*held, &bytes[..]) < (*score, &member[..]);
                let rank = scores.order.rank(before);
                Reply::Int(if *reverse { scores.order.len() - 1 - rank } else { rank } as i64)
            }
            None => Reply::Nil,
        },
        Read::ZCount(min, max) => Reply::Int(by_score(scores, min, max).1 as i64),
        Read::ZLexCount(min, max) => Reply::Int(by_bytes(scores, min, max).1 as i64),
        Read::ZRange(ZSlice::Rank(start, stop), reverse) => {
            let len = scores.order.len();
            let Some((from, to)) = resolve(*start, *stop, len) else { return Reply::Scored(vec![]) };
            // From the highest, position 0 is the last one.
            let first = if *reverse { len - 1 - to } else { from };
            slice(scores, (first, to + 1 - from), usize::MAX, *reverse)
        }
        Read::ZRange(ZSlice::Score(min, max, limit), reverse) => {
            slice(scores, by_score(scores, min, max), *limit, *reverse)
        }
        Read::ZRange(ZSlice::Lex(min, max, limit), reverse) => {
            without_scores(slice(scores, by_bytes(scores, min, max), *limit, *reverse))
        }
        _ => Reply::WrongType(KindFound::Kind(Kind::SortedSet)),
    }
}

/// First position and length of a range of scores.
fn by_score(scores: &Scores, min: &ScoreBound, max: &ScoreBound) -> (usize, usize) {
    let before = |(score, _): &Item| match min {
        ScoreBound::Included(bound) => score < bound,
        ScoreBound::Excluded(bound) => score <= bound,
    };
    let not_after = |(score, _): &Item| match max {
        ScoreBound::Included(bound) => score <= bound,
        ScoreBound::Excluded(bound) => score < bound,
    };
    span(scores, before, not_after)
}

/// First position and length of a range of bytes, where all scores are equal.
fn by_bytes(scores: &Scores, min: &LexBound, max: &LexBound) -> (usize, usize) {
    let before = |(_, member): &Item| match min {
        LexBound::Min => false,
        LexBound::Max => true,
        LexBound::Included(bound) => member[..] < bound[..],
        LexBound::Excluded(bound) => member[..] <= bound[..],
    };
    let not_after = |(_, member): &Item| match max {
        LexBound::Min => false,
        LexBound::Max => true,
        LexBound::Included(bound) => member[..] <= bound[..],
        LexBound::Excluded(bound) => member[..] < bound[..],
    };
    span(scores, before, not_after)
}

fn span(
    scores: &Scores,
    before: impl Fn(&Item) -> bool,
    not_after: impl Fn(&Item) -> bool,
) -> (usize, usize) {
    let from = scores.order.rank(before);
    (from, scores.order.rank(not_after).saturating_sub(from))
}

/// `count` items from position `from`, at most `limit` of them, from the chosen end.
fn slice(scores: &Scores, (from, count): (usize, usize), limit: usize, reverse: bool) -> Reply {
    let take = count.min(limit);
    bounded(take, || {
        let scored = |(score, member): &Item| (copy(member), *score);
        let list: Vec<(Bytes, Score)> = if reverse {
            scores.order.descending(from + count).take(take).map(scored).collect()
        } else {
            scores.order.ascending(from).take(take).map(scored).collect()
        };
        Reply::Scored(list)
    })
}

/// A range by bytes gives no scores, as in Redis, so that an external score cannot make a transaction's
/// reply stale.
fn without_scores(reply: Reply) -> Reply {
    match reply {
        Reply::Scored(list) => {
            Reply::Scored(list.into_iter().map(|(member, _)| (member, Score::from_i64(0))).collect())
        }
        other => other,
    }
}
