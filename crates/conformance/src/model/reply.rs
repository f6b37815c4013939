//! What a read answers.

use super::{Entry, kind_of, part};
use crate::external::StoredValue;
use bytes::Bytes;
use emberkeep_hot::command::{LexBound, Read, Reply, Score, ScoreBound, ZSlice};
use std::collections::{BTreeMap, BTreeSet};

/// The reply; `None` if the key is of another type.
pub(super) fn reply_to(entry: Option<&Entry>, read: &Read) -> Option<Reply> {
    match read {
        Read::Exists => return Some(Reply::Int(entry.is_some() as i64)),
        Read::ExpireTime => {
            let at = entry.map_or(-2, |entry| entry.deadline.unwrap_or(-1));
            return Some(Reply::Int(at));
        }
        _ => {}
    }
    if entry.is_some_and(|entry| Some(kind_of(&entry.stored)) != read.kind()) {
        return None;
    }
    let stored = entry.map(|entry| &entry.stored);
    Some(match read {
        Read::Get => match stored {
            Some(StoredValue::Text(text)) => Reply::Blob(text.clone()),
            _ => Reply::Nil,
        },
        Read::HGet(_) | Read::HGetAll | Read::HLen => of_hash(stored, read),
        Read::SIsMember(_) | Read::SMembers | Read::SCard => of_set(stored, read),
        Read::LLen | Read::LRange(..) => of_list(stored, read),
        _ => of_scores(stored, read),
    })
}

fn of_hash(stored: Option<&StoredValue>, read: &Read) -> Reply {
    let none = BTreeMap::new();
    let hash = if let Some(StoredValue::Hash(hash)) = stored { hash } else { &none };
    match read {
        Read::HGet(field) => hash.get(field).cloned().map_or(Reply::Nil, Reply::Blob),
        Read::HLen => Reply::Int(hash.len() as i64),
        _ => Reply::Pairs(hash.iter().map(|(field, value)| (field.clone(), value.clone())).collect()),
    }
}

fn of_set(stored: Option<&StoredValue>, read: &Read) -> Reply {
    let none = BTreeSet::new();
    let set = if let Some(StoredValue::Set(set)) = stored { set } else { &none };
    match read {
        Read::SIsMember(member) => Reply::Int(set.contains(member) as i64),
        Read::SCard => Reply::Int(set.len() as i64),
        _ => Reply::List(set.iter().cloned().collect()),
    }
}

fn of_list(stored: Option<&StoredValue>, read: &Read) -> Reply {
    let list = if let Some(StoredValue::List(list)) = stored { &list[..] } else { &[] };
    match read {
        Read::LRange(start, stop) => Reply::List(list[part(*start, *stop, list.len())].to_vec()),
        _ => Reply::Int(list.len() as i64),
    }
}

fn of_scores(stored: Option<&StoredValue>, read: &Read) -> Reply {
    let none = BTreeMap::new();
    let scores = if let Some(StoredValue::SortedSet(scores)) = stored { scores } else { &none };
    let mut ranked: Vec<(Bytes, Score)> = scores.iter().map(|(m, s)| (m.clone(), *s)).collect();
    ranked.sort_by(|a, b| a.1.get().total_cmp(&b.1.get()).then_with(|| a.0.cmp(&b.0)));
    match read {
        Read::ZScore(member) => scores.get(member).map_or(Reply::Nil, |score| Reply::Score(*score)),
        Read::ZRank(member, reverse) => {
            if *reverse {
                ranked.reverse();
            }
            let place = ranked.iter().position(|(stored, _)| stored == member);
            place.map_or(Reply::Nil, |place| Reply::Int(place as i64))
        }
        Read::ZCard => Reply::Int(ranked.len() as i64),
        Read::ZCount(min, max) => {
            Reply::Int(ranked.iter().filter(|(_, score)| scored_within(*score, min, max)).count() as i64)
        }
        Read::ZLexCount(min, max) => {
            Reply::Int(ranked.iter().filter(|(member, _)| named_within(member, min, max)).count() as i64)
        }
        Read::ZRange(slice, reverse) => {
            if *reverse {
                ranked.reverse();
            }
            Reply::Scored(slice_of(ranked, slice))
        }
        other => panic!("{other:?} is not a read of a sorted set"),
    }
}

fn slice_of(ranked: Vec<(Bytes, Score)>, slice: &ZSlice) -> Vec<(Bytes, Score)> {
    match slice {
        ZSlice::Rank(start, stop) => ranked[part(*start, *stop, ranked.len())].to_vec(),
        ZSlice::Score(min, max, limit) => {
            ranked.into_iter().filter(|(_, score)| scored_within(*score, min, max)).take(*limit).collect()
        }
        ZSlice::Lex(min, max, limit) => {
            let named = ranked.into_iter().filter(|(member, _)| named_within(member, min, max)).take(*limit);
            named.map(|(member, _)| (member, Score::from_i64(0))).collect()
        }
    }
}

fn scored_within(score: Score, min: &ScoreBound, max: &ScoreBound) -> bool {
    let value = score.get();
    let high_enough = match min {
        ScoreBound::Included(bound) => value >= bound.get(),
        ScoreBound::Excluded(bound) => value > bound.get(),
    };
    let low_enough = match max {
        ScoreBound::Included(bound) => value <= bound.get(),
        ScoreBound::Excluded(bound) => value < bound.get(),
    };
    high_enough && low_enough
}

fn named_within(member: &Bytes, min: &LexBound, max: &LexBound) -> bool {
    let high_enough = match min {
        LexBound::Min => true,
        LexBound::Max => false,
        LexBound::Included(bound) => member >= bound,
        LexBound::Excluded(bound) => member > bound,
    };
    let low_enough = match max {
        LexBound::Min => false,
        LexBound::Max => true,
        LexBound::Included(bound) => member <= bound,
        LexBound::Excluded(bound) => member < bound,
    };
    high_enough && low_enough
}
