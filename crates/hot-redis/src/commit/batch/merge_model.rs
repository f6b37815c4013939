//! Merged writes against a model of one key: they leave behind what the writes leave that were not merged.

use super::push_merged;
use crate::script::{has_early_deadline, postpone};
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, RawKey, Score, Write, number_after_comma};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A key: its data and its deadline.
#[derive(Clone, Debug, Default, PartialEq)]
struct Key(Option<(Data, Option<i64>)>);

#[derive(Clone, Debug, PartialEq)]
enum Data {
    Text(i64),
    Hash(BTreeMap<Bytes, Bytes>),
    Set(BTreeSet<Bytes>),
    Scores(BTreeMap<Bytes, Score>),
    List(VecDeque<Bytes>),
}

impl Data {
    fn is_empty(&self) -> bool {
        match self {
            Data::Text(_) => false,
            Data::Hash(fields) => fields.is_empty(),
            Data::Set(members) => members.is_empty(),
            Data::Scores(scores) => scores.is_empty(),
            Data::List(list) => list.is_empty(),
        }
    }

    fn of(write: &Write) -> Data {
        use Write::*;
        match write {
            HSet(_) | HIncrBy(..) | HDel(_) => Data::Hash(BTreeMap::new()),
            SAdd(_) | SRem(_) => Data::Set(BTreeSet::new()),
            ZAdd(_) | ZIncrBy(..) | ZRem(_) => Data::Scores(BTreeMap::new()),
            LPush(_) | RPush(_) | LPop(_) | RPop(_) | LSet(..) | LTrim(..) => Data::List(VecDeque::new()),
            Set(..) | SetIfGreater(..) | IncrBy(_) | Del | ExpireAt(_) | ExpireAtIfNone(_) | Persist => {
                Data::Text(0)
            }
        }
    }

    fn apply(&mut self, write: &Write) {
        use Write::*;
        match (self, write) {
            (Data::Text(n), IncrBy(by)) => *n += by,
            (Data::Hash(fields), HSet(pairs)) => fields.extend(pairs.iter().cloned()),
            (Data::Hash(fields), HIncrBy(field, by)) => {
                let text = fields.get(field).map_or("0", |text| std::str::from_utf8(text).expect("text"));
                let sum = text.parse::<i64>().expect("a number") + by;
                fields.insert(field.clone(), Bytes::from(sum.to_string()));
            }
            (Data::Hash(fields), HDel(gone)) => fields.retain(|field, _| !gone.contains(field)),
            (Data::Set(members), SAdd(more)) => members.extend(more.iter().cloned()),
            (Data::Set(members), SRem(gone)) => members.retain(|member| !gone.contains(member)),
            (Data::Scores(scores), ZAdd(more)) => scores.extend(more.iter().cloned()),
            (Data::Scores(scores), ZIncrBy(member, by)) => {
                let before = scores.get(member).map_or(0.0, |score| score.get());
                scores.insert(member.clone(), Score::new(before + by.get()).expect("a number"));
            }
            (Data::Scores(scores), ZRem(gone)) => scores.retain(|member, _| !gone.contains(member)),
            (Data::List(list), LPush(more)) => more.iter().for_each(|e| list.push_front(e.clone())),
            (Data::List(list), RPush(more)) => list.extend(more.iter().cloned()),
            (Data::List(list), LPop(n)) => drop(list.drain(..list.len().min(*n))),
            (Data::List(list), RPop(n)) => list.truncate(list.len().saturating_sub(*n)),
            (Data::List(list), LSet(at, value)) => {
                let at = if *at < 0 { *at + list.len() as i64 } else { *at };
                if let Some(held) = usize::try_from(at).ok().and_then(|at| list.get_mut(at)) {
                    *held = value.clone();
                }
            }
            (Data::List(list), LTrim(first, last)) => trim(list, *first, *last),
            (data, write) => panic!("{write:?} on {data:?}"),
        }
    }
}

fn trim(list: &mut VecDeque<Bytes>, first: i64, last: i64) {
    let len = list.len() as i64;
    let place = |n: i64| if n < 0 { n + len } else { n };
    let range = (place(first).max(0), place(last));
    let at = (0..).zip(std::mem::take(list));
    list.extend(at.filter(|(n, _)| (range.0..=range.1).contains(n)).map(|(_, element)| element));
}

impl Key {
    fn after(mut self, writes: &[Write]) -> Key {
        writes.iter().for_each(|write| self.apply(write));
        self
    }

    /// The same by the commands that are sent: an early deadline is a mark until the end.
    fn after_commands(self, writes: &[Write]) -> Key {
        let of_key: Vec<_> = writes.iter().map(|write| (RawKey::new(), write.clone())).collect();
        if !has_early_deadline(&of_key) {
            return self.after(writes);
        }
        let postponed = postpone(&of_key);
        let mut key = self.after(&postponed.writes);
        if let Some((_, Some(deadline))) = &mut key.0
            && let Some((_, at)) = postponed.marks.iter().find(|(mark, _)| mark == deadline)
        {
            *deadline = *at;
        }
        key
    }

    fn apply(&mut self, write: &Write) {
        match (write, &mut self.0) {
            (Write::Del, key) => *key = None,
            (Write::Set(text, expiry), key) => {
                let number = std::str::from_utf8(text).expect("text").parse().expect("a number");
                let deadline = match expiry {
                    Expiry::Never => None,
                    Expiry::At(at) => Some(*at),
                    Expiry::Keep => key.as_ref().and_then(|(_, deadline)| *deadline),
                };
                *key = Some((Data::Text(number), deadline));
            }
            (Write::SetIfGreater(text, expiry), key) => {
                let stored =
                    key.as_ref().and_then(|(data, _)| if let Data::Text(n) = data { Some(*n) } else { None });
                if stored < number_after_comma(text) {
                    self.apply(&Write::Set(text.clone(), *expiry));
                }
            }
            (write, None) if write.is_of_deadline() => {}
            (Write::ExpireAt(at), Some((_, deadline))) => *deadline = Some(*at),
            (Write::ExpireAtIfNone(at), Some((_, deadline))) => *deadline = deadline.or(Some(*at)),
            (Write::Persist, Some((_, deadline))) => *deadline = None,
            (write, key) => {
                let (data, _) = key.get_or_insert_with(|| (Data::of(write), None));
                data.apply(write);
                if data.is_empty() {
                    *key = None;
                }
            }
        }
    }
}

fn words() -> impl Strategy<Value = Vec<Bytes>> {
    prop::collection::vec((0..5u8).prop_map(|n| Bytes::from(n.to_string())), 1..4)
}

/// Writes of one type, and those that any key takes.
fn write(kind: usize) -> BoxedStrategy<Write> {
    let any = prop_oneof![
        1 => Just(Write::Del),
        1 => (1..9i64).prop_map(Write::ExpireAt),
        2 => (1..9i64).prop_map(Write::ExpireAtIfNone),
        1 => Just(Write::Persist)
    ];
    let pairs = |words: Vec<Bytes>| words.into_iter().map(|word| (word.clone(), word)).collect();
    let scores = |words: Vec<Bytes>| words.into_iter().zip((0..).map(Score::from_i64)).collect();
    let expiry = prop_oneof![Just(Expiry::Never), Just(Expiry::Keep), (1..9i64).prop_map(Expiry::At)];
    let text = |n: u8| Bytes::from(n.to_string());
    let set = (0..9u8, expiry.clone()).prop_map(move |(n, expiry)| Write::Set(text(n), expiry));
    let set_if = (0..9u8, expiry).prop_map(move |(n, expiry)| Write::SetIfGreater(text(n), expiry));
    let of_kind = match kind {
        0 => prop_oneof![4 => set, 1 => set_if, 4 => (-9..9i64).prop_map(Write::IncrBy)].boxed(),
        1 => prop_oneof![
            words().prop_map(move |w| Write::HSet(pairs(w))),
            (words(), -9..9i64).prop_map(|(w, by)| Write::HIncrBy(w[0].clone(), by)),
            words().prop_map(Write::HDel)
        ]
        .boxed(),
        2 => prop_oneof![words().prop_map(Write::SAdd), words().prop_map(Write::SRem)].boxed(),
        3 => prop_oneof![
            words().prop_map(move |w| Write::ZAdd(scores(w))),
            (words(), -9..9i64).prop_map(|(w, by)| Write::ZIncrBy(w[0].clone(), Score::from_i64(by))),
            words().prop_map(Write::ZRem)
        ]
        .boxed(),
        _ => prop_oneof![
            3 => words().prop_map(Write::LPush),
            2 => words().prop_map(Write::RPush),
            3 => (1..5usize).prop_map(Write::LPop),
            1 => (1..5usize).prop_map(Write::RPop),
            1 => (-4..4i64, words()).prop_map(|(at, words)| Write::LSet(at, words[0].clone())),
            1 => (-4..4i64, -4..4i64).prop_map(|(first, last)| Write::LTrim(first, last)),
        ]
        .boxed(),
    };
    prop_oneof![5 => of_kind, 1 => any].boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_writes_leave_the_same_behind(
        (before, writes) in (0..5usize).prop_flat_map(|kind| {
            (prop::collection::vec(write(kind), 0..4), prop::collection::vec(write(kind), 0..12))
        })
    ) {
        let mut merged = vec![];
        writes.iter().cloned().for_each(|write| push_merged(&mut merged, write));
        prop_assert!(merged.len() <= writes.len());
        let key = Key::default().after(&before);
        prop_assert_eq!(key.clone().after(&merged), key.clone().after(&writes), "merged: {:?}", merged);
        prop_assert_eq!(key.clone().after_commands(&merged), key.after(&writes), "merged: {:?}", merged);
    }
}
