//! Derives replies from cached ones of the same key, also across our own pending writes. The commit validates
//! every one of them.

use super::sorted_set::WholeSet;
use crate::limits::{CACHE_LIST_HEAD_MAX, CACHE_WRITTEN_TEXT_BYTES_MAX};
use emberkeep_hot::command::{Kind, RawKey, Read, Reply, Write, ZSlice};
use emberkeep_hot::tx::{ReadSource, absent, read_through};
use emberkeep_hot::{Error, Result};

type Replies = [(Read, Reply)];

/// The reply to a read, if these replies determine it.
pub(super) fn derive(replies: &Replies, read: &Read) -> Option<Reply> {
    if let Some((_, reply)) = replies.iter().find(|(r, _)| r == read) {
        return Some(reply.clone());
    }
    if is_absent(replies) {
        return Some(absent(read));
    }
    match read {
        Read::Exists if is_string(replies) => Some(Reply::Int(1)),
        Read::LRange(start, stop) => list_part(replies, *start, *stop),
        _ => from_whole_set(replies, read).map(|(reply, _)| reply),
    }
}

/// The reply to a read of a sorted set of which all members are cached, and the cached reply that has them.
pub(super) fn from_whole_set<'a>(replies: &'a Replies, read: &Read) -> Option<(Reply, &'a (Read, Reply))> {
    if !matches!(read, Read::Exists) && read.kind() != Some(Kind::SortedSet) {
        return None;
    }
    // The latest one.
    replies.iter().rev().find_map(|cached| {
        let reply = WholeSet::of(&cached.0, &cached.1)?.reply(read)?;
        Some((reply, cached))
    })
}

/// The latest reply that has all members of a sorted set.
pub(super) fn latest_whole_set(replies: &Replies) -> Option<&(Read, Reply)> {
    replies.iter().rev().find(|(read, reply)| WholeSet::of(read, reply).is_some())
}

fn is_absent(replies: &Replies) -> bool {
    replies.iter().any(|(read, reply)| shows_absence(read, reply))
}

/// Whether a reply proves that the key is absent.
pub(crate) fn shows_absence(read: &Read, reply: &Reply) -> bool {
    match (read, reply) {
        (Read::Get, Reply::Nil) | (Read::ExpireTime, Reply::Int(-2)) => true,
        (Read::Exists | Read::HLen | Read::SCard | Read::ZCard | Read::LLen, Reply::Int(0)) => true,
        (Read::HGetAll, Reply::Pairs(pairs)) => pairs.is_empty(),
        (Read::SMembers | Read::LRange(0, 0..) | Read::LRange(-1, -1), Reply::List(list)) => list.is_empty(),
        (Read::ZRange(ZSlice::Rank(0, 0..), _), Reply::Scored(list)) => list.is_empty(),
        _ => false,
    }
}

fn is_string(replies: &Replies) -> bool {
    replies.iter().any(|reply| matches!(reply, (Read::Get, Reply::Blob(_))))
}

/// A part of a list whose head is cached.
fn list_part(replies: &Replies, start: i64, stop: i64) -> Option<Reply> {
    let (from, to) = (usize::try_from(start).ok()?, usize::try_from(stop).ok()?);
    replies.iter().find_map(|(read, reply)| {
        let (Read::LRange(0, last), Reply::List(list)) = (read, reply) else { return None };
        let whole = *last >= 0 && list.len() as i64 <= *last;
        let is_cached = from <= to && (to < list.len() || whole);
        is_cached.then(|| Reply::List(list.iter().take(to.saturating_add(1)).skip(from).cloned().collect()))
    })
}

/// The replies as they are after these writes, where that can be derived.
pub(super) fn derive_after(key: &RawKey, before: &Replies, writes: &[&Write]) -> Vec<(Read, Reply)> {
    let after = |read: &Read| read_through(&mut CachedSource(before), key, writes, read).ok();
    let mut replies: Vec<(Read, Reply)> = Vec::with_capacity(before.len() + 1);
    if writes.iter().any(|write| matches!(write, Write::Set(..) | Write::Del)) {
        match after(&Read::Get) {
            Some(Reply::Nil) => return vec![(Read::Exists, Reply::Int(0))],
            // A text that we wrote is worth caching although no transaction has read it, unless it is long.
            Some(reply) if reply.bytes() <= CACHE_WRITTEN_TEXT_BYTES_MAX => replies.push((Read::Get, reply)),
            _ => {}
        }
    }
    for (read, reply) in before {
        let (read, reply) = match (after(read), read, reply) {
            (Some(reply), read, _) => (read.clone(), reply),
            (None, Read::LRange(0, _), Reply::List(list)) => match remaining_head(list.len(), writes, &after)
            {
                Some(head) => head,
                None => continue,
            },
            _ => continue,
        };
        if !replies.iter().any(|(cached, _)| *cached == read) {
            replies.push((read, reply));
        }
    }
    replies
}

/// The part of a list's cached head that is left after elements were taken from it.
fn remaining_head(
    cached: usize,
    writes: &[&Write],
    after: &impl Fn(&Read) -> Option<Reply>,
) -> Option<(Read, Reply)> {
    let left = writes.iter().fold(cached, |left, write| match write {
        Write::LPush(values) => left + values.len(),
        Write::LPop(count) => left.saturating_sub(*count),
        _ => left,
    });
    let last = left.min(CACHE_LIST_HEAD_MAX).checked_sub(1)?;
    let read = Read::LRange(0, last as i64);
    let reply = after(&read)?;
    Some((read, reply))
}

/// Cached replies as the state below our own writes.
struct CachedSource<'a>(&'a Replies);

impl ReadSource for CachedSource<'_> {
    fn read(&mut self, _key: &RawKey, read: &Read) -> Result<Reply> {
        derive(self.0, read).ok_or(Error::Suspended)
    }

    fn now(&mut self) -> i64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use emberkeep_hot::command::Expiry;

    fn list(elements: &[&'static str]) -> Reply {
        Reply::List(elements.iter().map(|e| Bytes::from_static(e.as_bytes())).collect())
    }

    #[test]
    fn an_absent_key_answers_every_read() {
        let nothing = [(Read::Get, Reply::Nil)];
        assert_eq!(derive(&nothing, &Read::Exists), Some(Reply::Int(0)));
        let slice = Read::ZRange(ZSlice::Rank(0, 9), false);
        assert_eq!(derive(&nothing, &slice), Some(Reply::Scored(vec![])));
        let text = [(Read::Get, Reply::Blob(Bytes::from_static(b"x")))];
        assert_eq!(derive(&text, &Read::Exists), Some(Reply::Int(1)));
        assert_eq!(derive(&text, &slice), None);
    }

    #[test]
    fn the_head_of_a_list_answers_its_parts() {
        let cut = [(Read::LRange(0, 1), list(&["a", "b"]))];
        assert_eq!(derive(&cut, &Read::LRange(1, 1)), Some(list(&["b"])));
        assert_eq!(derive(&cut, &Read::LRange(1, 2)), None, "there may be more");
        assert_eq!(derive(&cut, &Read::LRange(-1, -1)), None);
        let whole = [(Read::LRange(0, 7), list(&["a", "b"]))];
        assert_eq!(derive(&whole, &Read::LRange(1, 9)), Some(list(&["b"])));
        assert_eq!(derive(&whole, &Read::LRange(2, 2)), Some(list(&[])));
    }

    #[test]
    fn what_was_taken_and_pushed_is_carried_over() {
        let key = RawKey::from_static(b"k");
        let (pop, push) = (Write::LPop(2), Write::LPush(vec![Bytes::from_static(b"z")]));
        let cut = [(Read::LRange(0, 2), list(&["a", "b", "c"]))];
        assert_eq!(derive_after(&key, &cut, &[&pop, &push]), [(Read::LRange(0, 1), list(&["z", "c"]))]);
        assert_eq!(derive_after(&key, &cut[..], &[&Write::LPop(3)]), [], "the fourth is not cached");
        let whole = [(Read::LRange(0, 7), list(&["a"]))];
        assert_eq!(derive_after(&key, &whole, &[&pop, &push]), [(Read::LRange(0, 7), list(&["z"]))]);
    }

    #[test]
    fn what_was_written_is_cached_without_having_been_read() {
        let key = RawKey::from_static(b"k");
        let text = Bytes::from_static(b"1");
        let set = Write::Set(text.clone(), Expiry::Never);
        assert_eq!(derive_after(&key, &[], &[&set]), [(Read::Get, Reply::Blob(text))]);
        assert_eq!(derive_after(&key, &[], &[&Write::Del]), [(Read::Exists, Reply::Int(0))]);
        let long = Write::Set(Bytes::from(vec![0; CACHE_WRITTEN_TEXT_BYTES_MAX + 1]), Expiry::Never);
        assert_eq!(derive_after(&key, &[], &[&long]), []);
    }
}
