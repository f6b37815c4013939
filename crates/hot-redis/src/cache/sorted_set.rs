//! A sorted set that is cached as a whole answers every read of it.
//!
//! Without this, each write of a member would make the next read miss: what a range holds afterwards depends
//! on the member's place before, on the size of the set and on members beyond the range.

use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Score, ScoreBound, Write, ZSlice};
use emberkeep_hot::tx::{in_lex, in_scores, resolve_range};

type Scored = (Bytes, Score);

/// All members of a sorted set, as a cached reply has them.
#[derive(Clone, Copy)]
pub(crate) struct WholeSet<'a> {
    members: &'a [Scored],
    /// Whether the highest score comes first.
    reverse: bool,
}

impl<'a> WholeSet<'a> {
    /// The set, if this reply has all of its members and there is one.
    pub(super) fn of(read: &Read, reply: &'a Reply) -> Option<WholeSet<'a>> {
        let (Read::ZRange(slice, reverse), Reply::Scored(members)) = (read, reply) else { return None };
        let is_whole = match slice {
            ZSlice::Rank(0, -1) => true,
            // A full reply may have been cut.
            ZSlice::Rank(0, last) => *last >= 0 && (members.len() as i64) <= *last,
            ZSlice::Score(min, max, limit) => {
                *min == ScoreBound::MIN && *max == ScoreBound::MAX && members.len() < *limit
            }
            _ => false,
        };
        (is_whole && !members.is_empty()).then_some(WholeSet { members, reverse: *reverse })
    }

    /// How many members it has.
    pub(super) fn len(self) -> usize {
        self.members.len()
    }

    /// The reply to another read of the set; `None` if its members do not determine it.
    pub(super) fn reply(self, read: &Read) -> Option<Reply> {
        Some(match read {
            Read::Exists => Reply::Int(1),
            Read::ZCard => Reply::Int(self.members.len() as i64),
            Read::ZScore(member) => {
                let found = self.members.iter().find(|(one, _)| one == member);
                found.map_or(Reply::Nil, |(_, score)| Reply::Score(*score))
            }
            Read::ZRank(member, reverse) => {
                let found = self.in_order(*reverse).position(|(one, _)| one == member);
                found.map_or(Reply::Nil, |rank| Reply::Int(rank as i64))
            }
            Read::ZCount(min, max) => self.count(|(_, score)| in_scores(*score, min, max)),
            // A range by bytes is defined among equal scores only: the server decides what it finds otherwise.
            Read::ZLexCount(min, max) if self.has_one_score() => {
                self.count(|(member, _)| in_lex(member, min, max))
            }
            Read::ZRange(slice, reverse) => Reply::Scored(self.range(slice, *reverse)?),
            _ => return None,
        })
    }

    /// Applies writes to a whole set. `false` = it is not known what they leave, or they leave nothing.
    pub(crate) fn apply<'w>(
        (read, reply): &mut (Read, Reply),
        writes: impl IntoIterator<Item = &'w Write>,
    ) -> bool {
        let Some(WholeSet { reverse, .. }) = WholeSet::of(read, reply) else { return false };
        let Reply::Scored(members) = reply else { return false };
        for write in writes {
            match write {
                Write::ZAdd(pairs) => pairs.iter().for_each(|(member, score)| {
                    remove(members, member);
                    let is_before = |(held, at): &Scored| ((*at, held) < (*score, member)) != reverse;
                    members.insert(members.partition_point(is_before), (member.clone(), *score));
                }),
                Write::ZRem(gone) => gone.iter().for_each(|member| remove(members, member)),
                write if write.is_of_deadline() => {}
                _ => return false,
            }
        }
        WholeSet::of(read, reply).is_some()
    }

    fn in_order(self, reverse: bool) -> Box<dyn Iterator<Item = &'a Scored> + 'a> {
        match reverse == self.reverse {
            true => Box::new(self.members.iter()),
            false => Box::new(self.members.iter().rev()),
        }
    }

    fn count(self, counts: impl Fn(&Scored) -> bool) -> Reply {
        Reply::Int(self.members.iter().filter(|scored| counts(scored)).count() as i64)
    }

    fn has_one_score(self) -> bool {
        self.members.windows(2).all(|pair| pair[0].1 == pair[1].1)
    }

    fn range(self, slice: &ZSlice, reverse: bool) -> Option<Vec<Scored>> {
        let members = self.in_order(reverse);
        Some(match slice {
            ZSlice::Rank(start, stop) => match resolve_range(*start, *stop, self.members.len()) {
                Some((first, last)) => members.skip(first).take(last - first + 1).cloned().collect(),
                None => vec![],
            },
            ZSlice::Score(min, max, limit) => {
                let within = members.filter(|(_, score)| in_scores(*score, min, max));
                within.take(*limit).cloned().collect()
            }
            ZSlice::Lex(min, max, limit) if self.has_one_score() => {
                let within = members.filter(|(member, _)| in_lex(member, min, max));
                within.take(*limit).map(|(member, _)| (member.clone(), Score::from_i64(0))).collect()
            }
            ZSlice::Lex(..) => return None,
        })
    }
}

fn remove(members: &mut Vec<Scored>, gone: &Bytes) {
    if let Some(at) = members.iter().position(|(member, _)| member == gone) {
        members.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::derive::{derive, derive_after};
    use super::*;
    use emberkeep_hot::command::{LexBound, RawKey};
    use emberkeep_hot::tx::{ReadSource, absent, read_through};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Set = BTreeMap<Bytes, Score>;

    /// Below a set that was written as a whole there is nothing.
    struct EmptySource;

    impl ReadSource for EmptySource {
        fn read(&mut self, _key: &RawKey, read: &Read) -> emberkeep_hot::Result<Reply> {
            Ok(absent(read))
        }

        fn now(&mut self) -> i64 {
            0
        }
    }

    /// What a transaction reads that has written exactly this set.
    fn model(set: &Set, read: &Read) -> Reply {
        let key = RawKey::from_static(b"k");
        if set.is_empty() {
            return absent(read);
        }
        let all = Write::ZAdd(set.iter().map(|(member, score)| (member.clone(), *score)).collect());
        read_through(&mut EmptySource, &key, &[&all], read).expect("nothing is missing")
    }

    fn member() -> impl Strategy<Value = Bytes> {
        (0..6u8).prop_map(|n| Bytes::from(vec![b'a' + n]))
    }

    fn score() -> impl Strategy<Value = Score> {
        (-2..3i64).prop_map(Score::from_i64)
    }

    fn score_bound() -> impl Strategy<Value = ScoreBound> {
        prop_oneof![
            Just(ScoreBound::MIN),
            Just(ScoreBound::MAX),
            score().prop_map(ScoreBound::Included),
            score().prop_map(ScoreBound::Excluded)
        ]
    }

    fn lex_bound() -> impl Strategy<Value = LexBound> {
        prop_oneof![
            Just(LexBound::Min),
            Just(LexBound::Max),
            member().prop_map(LexBound::Included),
            member().prop_map(LexBound::Excluded)
        ]
    }

    fn read() -> impl Strategy<Value = Read> {
        let slice = prop_oneof![
            (-7..7i64, -7..7i64).prop_map(|(start, stop)| ZSlice::Rank(start, stop)),
            (score_bound(), score_bound(), 1..8usize).prop_map(|(a, b, n)| ZSlice::Score(a, b, n)),
            (lex_bound(), lex_bound(), 1..8usize).prop_map(|(a, b, n)| ZSlice::Lex(a, b, n)),
        ];
        prop_oneof![
            Just(Read::Exists),
            Just(Read::ZCard),
            member().prop_map(Read::ZScore),
            (member(), any::<bool>()).prop_map(|(member, reverse)| Read::ZRank(member, reverse)),
            (score_bound(), score_bound()).prop_map(|(min, max)| Read::ZCount(min, max)),
            (lex_bound(), lex_bound()).prop_map(|(min, max)| Read::ZLexCount(min, max)),
            (slice, any::<bool>()).prop_map(|(slice, reverse)| Read::ZRange(slice, reverse)),
        ]
    }

    fn write() -> impl Strategy<Value = Write> {
        prop_oneof![
            3 => prop::collection::vec((member(), score()), 1..3).prop_map(Write::ZAdd),
            2 => prop::collection::vec(member(), 1..3).prop_map(Write::ZRem),
            2 => (member(), score()).prop_map(|(member, by)| Write::ZIncrBy(member, by)),
            1 => Just(Write::ExpireAt(7)),
            1 => Just(Write::Del),
        ]
    }

    fn apply(set: &mut Set, write: &Write) {
        match write {
            Write::ZAdd(pairs) => set.extend(pairs.iter().cloned()),
            Write::ZRem(gone) => set.retain(|member, _| !gone.contains(member)),
            Write::ZIncrBy(member, by) => {
                let score = set.entry(member.clone()).or_insert(Score::from_i64(0));
                *score = score.plus(*by);
            }
            Write::Del => set.clear(),
            _ => {}
        }
    }

    /// Whether a read is defined: ranges by bytes are among equal scores only.
    fn is_defined(set: &Set, read: &Read) -> bool {
        let is_lex = matches!(read, Read::ZLexCount(..) | Read::ZRange(ZSlice::Lex(..), _));
        let mut scores = set.values();
        let first = scores.next();
        !is_lex || scores.all(|score| Some(score) == first)
    }

    proptest! {
        #[test]
        fn a_range_of_a_set_answers_what_the_whole_set_would(
            set in prop::collection::btree_map(member(), score(), 0..6),
            cached in read(),
            reads in prop::collection::vec(read(), 1..8),
        ) {
            let replies = [(cached.clone(), model(&set, &cached))];
            prop_assume!(is_defined(&set, &cached));
            for read in reads.iter().filter(|read| is_defined(&set, read)) {
                if let Some(reply) = derive(&replies, read) {
                    prop_assert_eq!(reply, model(&set, read), "{:?} from {:?}", read, cached);
                }
            }
        }

        #[test]
        fn a_whole_set_answers_every_read_also_after_our_own_writes(
            set in prop::collection::btree_map(member(), score(), 0..6),
            writes in prop::collection::vec(write(), 1..6),
            reads in prop::collection::vec(read(), 1..8),
            reverse in any::<bool>(),
        ) {
            let (key, mut set) = (RawKey::from_static(b"k"), set);
            let all = Read::ZRange(ZSlice::Rank(0, 31), reverse);
            let mut replies = vec![(all.clone(), model(&set, &all))];
            for write in &writes {
                let mut whole = replies.iter().cloned();
                let carried = whole.find_map(|mut whole| WholeSet::apply(&mut whole, [write]).then_some(whole));
                replies = derive_after(&key, &replies, &[write]);
                apply(&mut set, write);
                if let Some(carried) = carried {
                    prop_assert_eq!(&carried.1, &model(&set, &carried.0), "carried over {:?}", write);
                }
                for read in reads.iter().filter(|read| is_defined(&set, read)) {
                    let derived = derive(&replies, read);
                    // After a removal the range is cached no more, so that the next write leaves it unknown.
                    if derived.is_some() || !writes.contains(&Write::Del) {
                        prop_assert_eq!(derived, Some(model(&set, read)), "{:?}", read);
                    }
                }
            }
        }
    }

    #[test]
    fn a_range_that_may_have_been_cut_is_not_the_whole_set() {
        let one = Reply::Scored(vec![(Bytes::from_static(b"a"), Score::from_i64(1))]);
        let is_whole = |slice| WholeSet::of(&Read::ZRange(slice, false), &one).is_some();
        assert!(is_whole(ZSlice::Rank(0, 1)) && is_whole(ZSlice::Rank(0, -1)));
        assert!(
            !is_whole(ZSlice::Rank(0, 0)) && !is_whole(ZSlice::Rank(1, 9)) && !is_whole(ZSlice::Rank(0, -2))
        );
        assert!(is_whole(ZSlice::Score(ScoreBound::MIN, ScoreBound::MAX, 2)));
        assert!(!is_whole(ZSlice::Score(ScoreBound::MIN, ScoreBound::MAX, 1)));
        assert!(!is_whole(ZSlice::Lex(LexBound::Min, LexBound::Max, 2)));
    }
}
