//! The cached replies of one key. A newer one drops those that it repeats or contradicts.

use super::derive::{derive, from_whole_set, shows_absence};
use super::sorted_set::WholeSet;
use crate::limits::CACHE_READS_PER_KEY_MAX;
use emberkeep_hot::command::{Read, Reply};
use emberkeep_hot::tx::absent;

/// Estimated memory of a reply beside its bytes.
pub(super) const READ_BYTES: usize = 64;

/// Replies to different reads of one key, the latest last.
#[derive(Default)]
pub(crate) struct CachedKey {
    replies: Vec<(Read, Reply)>,
    bytes: usize,
    /// The call that brought the latest replies, and how many it brought: they are the last ones.
    latest_tick: u64,
    latest: usize,
}

impl CachedKey {
    pub(crate) fn replies(&self) -> &[(Read, Reply)] {
        &self.replies
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The reply to this read, cached or derived from others.
    pub(crate) fn get(&self, read: &Read) -> Option<Reply> {
        derive(&self.replies, read)
    }

    /// The same, with the cached reply that it follows from, if it follows from one and is not that one.
    pub(crate) fn get_with_basis(&self, read: &Read) -> Option<(Reply, Option<&(Read, Reply)>)> {
        if !self.replies.iter().any(|(cached, _)| cached == read)
            && let Some((reply, basis)) = from_whole_set(&self.replies, read)
        {
            return Some((reply, Some(basis)));
        }
        self.get(read).map(|reply| (reply, None))
    }

    /// Whether [`CachedKey::get`] has a reply; cheaper where the very read is cached.
    pub(crate) fn can_answer(&self, read: &Read) -> bool {
        self.replies.iter().any(|(cached, _)| cached == read) || self.get(read).is_some()
    }

    /// Caches a reply of the call of this tick, and drops older ones that it repeats or contradicts.
    pub(crate) fn insert(&mut self, read: Read, reply: Reply, tick: u64) {
        let is_present = reply != absent(&read);
        let is_absent = shows_absence(&read, &reply);
        let set = WholeSet::of(&read, &reply);
        let replaced = |old: &Read, cached: &Reply| {
            *old == read
                || (is_present && shows_absence(old, cached))
                || (is_absent && *cached != absent(old))
                || covers((&read, &reply), old)
                || disagree((&read, &reply), (old, cached))
                || set.is_some_and(|set| set.reply(old).is_some())
                || is_refuted_set((old, cached), (&read, &reply))
        };
        let (bytes, latest) = (&mut self.bytes, &mut self.latest);
        let (first_of_latest, mut place) = (self.replies.len() - *latest, 0);
        self.replies.retain(|(old, cached)| {
            let stays = !replaced(old, cached);
            if !stays {
                *bytes -= weight(cached);
                *latest -= (place >= first_of_latest) as usize;
            }
            place += 1;
            stays
        });
        self.insert_beside(read, reply, tick);
    }

    /// Caches a reply and drops no other.
    pub(crate) fn insert_beside(&mut self, read: Read, reply: Reply, tick: u64) {
        if self.latest_tick != tick {
            (self.latest_tick, self.latest) = (tick, 0);
        }
        // A transaction that reads more than the bound in one call needs all of the replies at once.
        self.trim(CACHE_READS_PER_KEY_MAX.max(self.latest + 1) - 1);
        self.bytes += weight(&reply);
        self.replies.push((read, reply));
        self.latest += 1;
    }

    /// Drops the oldest replies beyond so many.
    pub(crate) fn trim(&mut self, max: usize) {
        let surplus = self.replies.len().saturating_sub(max);
        self.bytes -= self.replies.drain(..surplus).map(|(_, reply)| weight(&reply)).sum::<usize>();
        self.latest = self.latest.min(self.replies.len());
    }

    /// Replaces all replies. None of them counts as the latest.
    pub(crate) fn replace(&mut self, replies: Vec<(Read, Reply)>) {
        self.bytes = replies.iter().map(|(_, reply)| weight(reply)).sum();
        self.replies = replies;
        self.latest = 0;
    }
}

fn weight(reply: &Reply) -> usize {
    reply.bytes() + READ_BYTES
}

/// Whether this reply answers the other read. `derive` must be able to answer it: otherwise a transaction
/// that fetches both in one call would miss one of them again and again.
fn covers(wide: (&Read, &Reply), narrow: &Read) -> bool {
    match (wide, narrow) {
        ((Read::LRange(0, last), Reply::List(_)), Read::LRange(start @ 0.., stop)) => {
            start <= stop && stop <= last
        }
        _ => false,
    }
}

/// Whether the first is a whole sorted set that would give another reply to the read of the second.
fn is_refuted_set((old, cached): (&Read, &Reply), (read, reply): (&Read, &Reply)) -> bool {
    let derived = WholeSet::of(old, cached).and_then(|set| set.reply(read));
    derived.is_some_and(|derived| derived != *reply)
}

/// Whether two ranges of a list cannot both be true.
fn disagree(one: (&Read, &Reply), two: (&Read, &Reply)) -> bool {
    let (Read::LRange(first @ 0.., last @ 0..), Reply::List(list)) = one else { return false };
    let (Read::LRange(from @ 0.., to @ 0..), Reply::List(other)) = two else { return false };
    let at = |list: &[bytes::Bytes], first: i64, place: i64| list.get((place - first) as usize).cloned();
    let longest = first.saturating_add(list.len() as i64).max(from.saturating_add(other.len() as i64));
    let (begin, end) = (*first.max(from), *last.min(to).min(&longest));
    (begin..=end).any(|place| at(list, *first, place) != at(other, *from, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use emberkeep_hot::command::{Score, ZSlice};

    fn list(elements: &[&'static str]) -> Reply {
        Reply::List(elements.iter().map(|e| Bytes::from_static(e.as_bytes())).collect())
    }

    fn cached(replies: impl IntoIterator<Item = (Read, Reply)>) -> Vec<(Read, Reply)> {
        let mut key = CachedKey::default();
        (0..).zip(replies).for_each(|(tick, (read, reply))| key.insert(read, reply, tick));
        let bytes: usize = key.replies.iter().map(|(_, reply)| weight(reply)).sum();
        assert_eq!(key.bytes(), bytes);
        key.replies
    }

    #[test]
    fn a_wider_range_takes_the_place_of_its_parts() {
        let len = (Read::LLen, Reply::Int(1));
        let wide = (Read::LRange(0, 15), list(&["a"]));
        let part = (Read::LRange(0, 0), list(&["a"]));
        assert_eq!(cached([part.clone(), len.clone(), wide.clone()]), [len, wide.clone()]);
        assert_eq!(cached([wide.clone(), part, wide.clone()]), [wide], "also where it is read again");
    }

    #[test]
    fn ranges_that_agree_stay_and_others_go() {
        let head = (Read::LRange(0, 2), list(&["a", "b", "c"]));
        let next = (Read::LRange(2, 3), list(&["c"]));
        assert_eq!(cached([head.clone(), next.clone()]), [head.clone(), next]);
        let other = (Read::LRange(2, 3), list(&["d"]));
        assert_eq!(cached([head.clone(), other.clone()]), [other]);
        let ended = (Read::LRange(2, i64::MAX), list(&[]));
        assert_eq!(cached([head, ended.clone()]), [ended]);
    }

    /// The reply to a read of this list.
    fn reply(elements: &[Bytes], read: &Read) -> Reply {
        match read {
            Read::LLen => Reply::Int(elements.len() as i64),
            Read::Exists => Reply::Int(!elements.is_empty() as i64),
            Read::LRange(first, last) => {
                let at = |place: i64| if place < 0 { place + elements.len() as i64 } else { place };
                let range = at(*first).max(0)..=at(*last);
                let places = (0..).zip(elements).filter(|(place, _)| range.contains(place));
                Reply::List(places.map(|(_, element)| element.clone()).collect())
            }
            other => panic!("{other:?} is not made"),
        }
    }

    proptest::proptest! {
        /// Otherwise a transaction would ask for the same replies for ever.
        #[test]
        fn what_one_call_brings_is_all_answered(
            length in 0..5u8,
            ranges in proptest::collection::vec((-3..7i64, -3..7i64), 1..6),
        ) {
            let elements: Vec<Bytes> = (0..length).map(|n| Bytes::from(n.to_string())).collect();
            let reads = ranges.into_iter().map(|(first, last)| Read::LRange(first, last));
            let reads: Vec<Read> = reads.chain([Read::LLen, Read::Exists]).collect();
            let mut key = CachedKey::default();
            reads.iter().for_each(|read| key.insert(read.clone(), reply(&elements, read), 1));
            for read in &reads {
                proptest::prop_assert_eq!(key.get(read), Some(reply(&elements, read)), "{:?}", read);
            }
        }
    }

    #[test]
    fn a_whole_sorted_set_takes_the_place_of_its_parts_until_a_newer_one_refutes_it() {
        let scored = |members: &[&'static str]| {
            Reply::Scored(
                members.iter().map(|m| (Bytes::from_static(m.as_bytes()), Score::from_i64(1))).collect(),
            )
        };
        let whole = (Read::ZRange(ZSlice::Rank(0, 9), false), scored(&["a", "b"]));
        let len = |n| (Read::ZCard, Reply::Int(n));
        let member = (Read::ZScore(Bytes::from_static(b"a")), Reply::Score(Score::from_i64(1)));
        assert_eq!(cached([len(7), member.clone(), whole.clone()]), std::slice::from_ref(&whole));
        assert_eq!(cached([whole.clone(), member.clone()]), [whole.clone(), member.clone()], "they agree");
        assert_eq!(cached([whole.clone(), member.clone(), len(3)]), [member, len(3)]);
    }

    #[test]
    fn a_key_is_not_cached_as_present_and_absent() {
        let present = (Read::HLen, Reply::Int(2));
        let field = (Read::HGet(Bytes::from_static(b"f")), Reply::Nil);
        let gone = (Read::Exists, Reply::Int(0));
        assert_eq!(cached([gone.clone(), field.clone(), present.clone()]), [field.clone(), present.clone()]);
        assert_eq!(cached([present, field.clone(), gone.clone()]), [field, gone]);
    }
}
