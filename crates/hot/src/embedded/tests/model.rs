//! The five data types against a model that is too simple to be wrong, and bodies that read their own writes
//! against what is there after the commit.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq)]
enum ModelValue {
    Text(Bytes),
    Hash(BTreeMap<Bytes, Bytes>),
    Set(BTreeSet<Bytes>),
    SortedSet(BTreeMap<Bytes, Score>),
    List(Vec<Bytes>),
}

/// Redis in a page.
#[derive(Debug, Clone, Default)]
struct Model {
    keys: BTreeMap<Bytes, (ModelValue, Option<i64>)>,
    now: i64,
}

impl Model {
    fn drop_ended(&mut self) {
        let now = self.now;
        self.keys.retain(|_, (_, deadline)| deadline.is_none_or(|at| at >= now));
    }

    /// Applies one write; `false` = refused.
    fn apply(&mut self, key: &Bytes, write: &Write) -> bool {
        let stored = self.keys.get(key).cloned();
        let (value, deadline) = match stored {
            Some((value, deadline)) => (Some(value), deadline),
            None => (None, None),
        };
        let Some((value, deadline)) = after(value, deadline, write) else { return false };
        match value {
            Some(value) if !is_empty(&value) => drop(self.keys.insert(key.clone(), (value, deadline))),
            _ => drop(self.keys.remove(key)),
        }
        true
    }

    fn dump(&self) -> Vec<KeyDump> {
        let records = self.keys.iter().map(|(key, (stored, deadline))| {
            let content = match stored.clone() {
                ModelValue::Text(text) => Content::Text(text),
                ModelValue::Hash(map) => Content::Hash(map.into_iter().collect()),
                ModelValue::Set(set) => Content::Set(set.into_iter().collect()),
                ModelValue::SortedSet(map) => {
                    let mut list: Vec<_> = map.into_iter().collect();
                    list.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
                    Content::SortedSet(list)
                }
                ModelValue::List(list) => Content::List(list),
            };
            KeyDump { key: key.clone(), content, deadline: *deadline }
        });
        records.collect()
    }
}

fn is_empty(stored: &ModelValue) -> bool {
    match stored {
        ModelValue::Text(_) => false,
        ModelValue::Hash(map) => map.is_empty(),
        ModelValue::Set(set) => set.is_empty(),
        ModelValue::SortedSet(map) => map.is_empty(),
        ModelValue::List(list) => list.is_empty(),
    }
}

type State = (Option<ModelValue>, Option<i64>);

fn after(value: Option<ModelValue>, deadline: Option<i64>, write: &Write) -> Option<State> {
    use Write::*;
    let keep = |stored: ModelValue| Some((Some(stored), deadline));
    match (write, value) {
        (Set(text, Expiry::Keep), _) => keep(ModelValue::Text(text.clone())),
        (Set(text, Expiry::Never), _) => Some((Some(ModelValue::Text(text.clone())), None)),
        (Set(text, Expiry::At(at)), _) => Some((Some(ModelValue::Text(text.clone())), Some(*at))),
        (Del, _) => Some((None, None)),
        (ExpireAt(at), Some(stored)) => Some((Some(stored), Some(*at))),
        (ExpireAtIfNone(at), Some(stored)) => Some((Some(stored), deadline.or(Some(*at)))),
        (Persist, Some(stored)) => Some((Some(stored), None)),
        (IncrBy(by), None) => keep(ModelValue::Text(Bytes::from(by.to_string()))),
        (IncrBy(by), Some(ModelValue::Text(text))) => {
            let number: i64 = std::str::from_utf8(&text).ok()?.parse().ok()?;
            let canonical = number.to_string().as_bytes() == &text[..];
            let sum = number.checked_add(*by).filter(|_| canonical)?;
            keep(ModelValue::Text(Bytes::from(sum.to_string())))
        }
        (HSet(pairs), None) => keep(ModelValue::Hash(pairs.iter().cloned().collect())),
        (HSet(pairs), Some(ModelValue::Hash(mut map))) => {
            map.extend(pairs.iter().cloned());
            keep(ModelValue::Hash(map))
        }
        (HIncrBy(field, by), stored @ (None | Some(ModelValue::Hash(_)))) => {
            let mut map = if let Some(ModelValue::Hash(map)) = stored { map } else { BTreeMap::new() };
            let text = map.get(field).map_or("0", |text| std::str::from_utf8(text).unwrap());
            let number: i64 = text.parse().ok().filter(|number: &i64| number.to_string() == text)?;
            let sum = number.checked_add(*by)?;
            map.insert(field.clone(), Bytes::from(sum.to_string()));
            keep(ModelValue::Hash(map))
        }
        (HDel(gone), Some(ModelValue::Hash(mut map))) => {
            map.retain(|field, _| !gone.contains(field));
            keep(ModelValue::Hash(map))
        }
        (SAdd(new), None) => keep(ModelValue::Set(new.iter().cloned().collect())),
        (SAdd(new), Some(ModelValue::Set(mut set))) => {
            set.extend(new.iter().cloned());
            keep(ModelValue::Set(set))
        }
        (SRem(gone), Some(ModelValue::Set(mut set))) => {
            set.retain(|member| !gone.contains(member));
            keep(ModelValue::Set(set))
        }
        (ZAdd(pairs), None) => keep(ModelValue::SortedSet(pairs.iter().cloned().collect())),
        (ZAdd(pairs), Some(ModelValue::SortedSet(mut map))) => {
            map.extend(pairs.iter().cloned());
            keep(ModelValue::SortedSet(map))
        }
        (ZIncrBy(member, by), stored @ (None | Some(ModelValue::SortedSet(_)))) => {
            let mut map = if let Some(ModelValue::SortedSet(map)) = stored { map } else { BTreeMap::new() };
            let before = map.get(member).map_or(0.0, |score| score.get());
            map.insert(member.clone(), Score::new(before + by.get()).unwrap());
            keep(ModelValue::SortedSet(map))
        }
        (ZRem(gone), Some(ModelValue::SortedSet(mut map))) => {
            map.retain(|member, _| !gone.contains(member));
            keep(ModelValue::SortedSet(map))
        }
        (LSet(..), None) => None,
        (LSet(at, value), Some(ModelValue::List(mut list))) => {
            let at = if *at < 0 { at + list.len() as i64 } else { *at };
            *list.get_mut(usize::try_from(at).ok()?)? = value.clone();
            keep(ModelValue::List(list))
        }
        (LPush(_) | RPush(_), None) => keep(ModelValue::List(on_list(vec![], write))),
        (LPush(_) | RPush(_) | LPop(_) | RPop(_) | LTrim(..), Some(ModelValue::List(list))) => {
            keep(ModelValue::List(on_list(list, write)))
        }
        (_, None) => Some((None, None)),
        (_, Some(_)) => None,
    }
}

fn on_list(mut list: Vec<Bytes>, write: &Write) -> Vec<Bytes> {
    match write {
        Write::LPush(new) => new.iter().for_each(|element| list.insert(0, element.clone())),
        Write::RPush(new) => list.extend(new.iter().cloned()),
        Write::LPop(count) => drop(list.drain(..(*count).min(list.len()))),
        Write::RPop(count) => list.truncate(list.len().saturating_sub(*count)),
        Write::LTrim(start, stop) => {
            let len = list.len() as i64;
            let from = if *start < 0 { (len + start).max(0) } else { *start };
            let to = if *stop < 0 { len + stop } else { (*stop).min(len - 1) };
            let kept = list.iter().enumerate().filter(|(at, _)| (from..=to).contains(&(*at as i64)));
            list = kept.map(|(_, element)| element.clone()).collect();
        }
        _ => {}
    }
    list
}

fn small() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        4 => (0u8..6).prop_map(|n| Bytes::from(format!("m{n}"))),
        1 => (-3i64..12).prop_map(|n| Bytes::from(n.to_string())),
        1 => Just(Bytes::new()),
    ]
}

fn some<T: std::fmt::Debug>(item: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(item, 1..4)
}

fn expiry() -> impl Strategy<Value = Expiry> {
    prop_oneof![
        Just(Expiry::Keep),
        Just(Expiry::Never),
        (1i64..60).prop_map(|ms| Expiry::At(T0 + 2_000 + ms))
    ]
}

fn score() -> impl Strategy<Value = Score> {
    (-3i64..4).prop_map(Score::from_i64)
}

fn any_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        4 => (small(), expiry()).prop_map(|(text, expiry)| Write::Set(text, expiry)),
        2 => Just(Write::Del),
        3 => (-5i64..5).prop_map(Write::IncrBy),
        3 => some((small(), small())).prop_map(Write::HSet),
        3 => (small(), -5i64..5).prop_map(|(field, by)| Write::HIncrBy(field, by)),
        3 => some(small()).prop_map(Write::HDel),
        3 => some(small()).prop_map(Write::SAdd),
        3 => some(small()).prop_map(Write::SRem),
        3 => some((small(), score())).prop_map(Write::ZAdd),
        2 => (small(), score()).prop_map(|(member, by)| Write::ZIncrBy(member, by)),
        3 => some(small()).prop_map(Write::ZRem),
        2 => some(small()).prop_map(Write::LPush),
        2 => some(small()).prop_map(Write::RPush),
        2 => (1usize..3).prop_map(Write::LPop),
        2 => (1usize..3).prop_map(Write::RPop),
        2 => (-3i64..3, small()).prop_map(|(at, value)| Write::LSet(at, value)),
        2 => (-4i64..4, -4i64..4).prop_map(|(start, stop)| Write::LTrim(start, stop)),
        2 => (1i64..60).prop_map(|ms| Write::ExpireAt(T0 + 2_000 + ms)),
        2 => (1i64..60).prop_map(|ms| Write::ExpireAtIfNone(T0 + 2_000 + ms)),
        1 => Just(Write::Persist),
    ]
}

fn any_read() -> impl Strategy<Value = Read> {
    let bound = || {
        (score(), any::<bool>()).prop_map(|(score, included)| {
            if included { ScoreBound::Included(score) } else { ScoreBound::Excluded(score) }
        })
    };
    prop_oneof![
        Just(Read::Get),
        Just(Read::Exists),
        Just(Read::ExpireTime),
        small().prop_map(Read::HGet),
        Just(Read::HGetAll),
        Just(Read::HLen),
        small().prop_map(Read::SIsMember),
        Just(Read::SMembers),
        Just(Read::SCard),
        small().prop_map(Read::ZScore),
        Just(Read::ZCard),
        (small(), any::<bool>()).prop_map(|(member, reverse)| Read::ZRank(member, reverse)),
        (bound(), bound()).prop_map(|(min, max)| Read::ZCount(min, max)),
        (-5i64..5, -5i64..5, any::<bool>()).prop_map(|(a, b, r)| Read::ZRange(ZSlice::Rank(a, b), r)),
        (bound(), bound(), 0usize..5, any::<bool>())
            .prop_map(|(min, max, limit, r)| Read::ZRange(ZSlice::Score(min, max, limit), r)),
        Just(Read::LLen),
        (-5i64..5, -5i64..5).prop_map(|(a, b)| Read::LRange(a, b)),
    ]
}

fn any_key() -> impl Strategy<Value = RawKey> {
    (0u8..4).prop_map(|n| key(format!("k{n}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_write_does_what_redis_does(
        operations in prop::collection::vec((any_key(), any_write(), 0u64..12), 1..60),
    ) {
        let (engine, clock) = by_hand();
        clock.set(T0 + 2_000 - 300);
        let mut model = Model { now: clock.now(), ..Model::default() };
        for (number, (key, operation, pass)) in operations.into_iter().enumerate() {
            clock.advance(pass);
            model.now = clock.now();
            model.drop_ended();
            if operation.deadline().is_some_and(|at| at <= model.now) {
                continue;
            }
            let applied = model.apply(&key, &operation);
            let answer = write(&engine, vec![(key, operation.clone())]);
            prop_assert_eq!(answer.is_ok(), applied, "{:?}: {:?}", operation, answer);
            let refused = match &answer {
                Err(Error::WrongType { .. } | Error::Corrupt { .. } | Error::Overflow { .. }) => true,
                Err(Error::Invalid { what, .. }) => *what == "index",
                _ => false,
            };
            prop_assert!(applied || refused);
            if number % 5 == 0 {
                engine.sweep_once(Duration::from_secs(1));
            }
            prop_assert_eq!(dump(&engine.inner), model.dump());
        }
        let bytes = engine.stats().unwrap().memory_bytes;
        prop_assert_eq!(bytes == 0, engine.is_empty());
    }

    /// A body that reads after its writes sees what every reader sees after the commit.
    #[test]
    fn what_a_body_reads_is_what_is_there_after_the_commit(
        before in prop::collection::vec((any_key(), any_write()), 0..8),
        list in prop::collection::vec((any_key(), any_write()), 1..8),
        reads in prop::collection::vec((any_key(), any_read()), 1..12),
    ) {
        let (engine, _) = by_hand();
        for one in before {
            let _ = write(&engine, vec![one]);
        }
        let unchanged = dump(&engine.inner);
        // A body that takes one key for two types is refused more strictly than Redis would.
        let two_types = |key: &RawKey, read: &Read| {
            let other = |write: &Write| write.kind().is_some_and(|kind| read.kind().is_some_and(|r| r != kind));
            list.iter().any(|(stored, write)| stored == key && other(write))
        };
        let reads: Vec<_> = reads.into_iter().filter(|(key, read)| !two_types(key, read)).collect();
        let asked = reads.clone();
        let answer = transaction(&engine, move |tx| {
            list.iter().try_for_each(|(key, write)| tx.write(key.clone(), write.clone()))?;
            Ok(asked.iter().map(|(key, read)| tx.read(key, read.clone())).collect::<Vec<_>>())
        });
        match answer {
            // All or nothing: a list that cannot be applied leaves no trace.
            Err(_) => prop_assert_eq!(dump(&engine.inner), unchanged),
            Ok(inside) => for ((key, read), inside) in reads.into_iter().zip(inside) {
                let outside = engine.inner.read(&key, &read).checked(&key, &read);
                prop_assert_eq!(inside, outside, "{:?} of {:?}", read, key);
            }
        }
    }
}
