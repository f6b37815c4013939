//! Preconditions of writes: the types that keys must have, checked before the first write of a transaction.
//!
//! A transaction is applied as a whole or not at all, and Redis does not undo a script. So whatever a write
//! could refuse is checked first: types, and sums that leave 64 bits. Both engines fold the list of writes
//! key by key with [`KeyState`]. The embedded engine starts from the value that it stores ([`check`]). The
//! Redis engine does not know it, so it collects what the script has to check ([`Preconditions`]).
//!
//! A list contradicts itself if it writes one key as two types without a DEL or SET between, even where the
//! first type would have become empty.

use super::field_numbers::FieldNumbers;
use super::{Kind, KindFound, RawKey, Write, not_an_integer, parse_integer, sum_of, wrong_type};
use crate::error::{Error, Result, show};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::ops::RangeInclusive;

/// Up to this many writes, comparing keys one by one is faster than hashing them.
const COMPARED_MAX: usize = 16;

/// The value of a key, as far as the writes after it depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// The value before the transaction, not read.
    #[default]
    Unread,
    /// No value: the key may become any type.
    Absent,
    /// A value of a type. Of [`Kind::Text`]: a number that is not read.
    Kind(Kind),
    /// A string, and its number if it is one.
    Text(Option<i64>),
}

impl KeyState {
    /// The state after a write, or the error that the write would cause.
    fn after(self, key: &RawKey, write: &Write) -> Result<KeyState> {
        let Some(kind) = write.kind() else {
            return Ok(match write {
                Write::Set(text, _) => KeyState::Text(parse_integer(text)),
                // Which string it is shows at the commit, too late to find that it cannot be incremented.
                Write::SetIfGreater(..) => KeyState::Text(None),
                Write::Del => KeyState::Absent,
                // Deadlines require nothing and change no type.
                _ => self,
            });
        };
        if let Some(found) = self.kind().filter(|found| *found != kind) {
            return Err(wrong_type(key, kind, KindFound::Kind(found)));
        }
        match (write, self) {
            (Write::IncrBy(by), KeyState::Absent) => Ok(KeyState::Text(Some(*by))),
            (Write::IncrBy(by), KeyState::Text(number)) => {
                let number = number.ok_or_else(|| not_an_integer(key))?;
                sum_of(key, number, *by).map(|sum| KeyState::Text(Some(sum)))
            }
            _ => Ok(KeyState::Kind(kind)),
        }
    }

    fn kind(self) -> Option<Kind> {
        match self {
            KeyState::Unread | KeyState::Absent => None,
            KeyState::Kind(kind) => Some(kind),
            KeyState::Text(_) => Some(Kind::Text),
        }
    }
}

/// Checks that every write can be applied, one after the other. `stored` returns the state of a key before
/// the list; it gets the number of the write that needs it.
pub(crate) fn check(
    writes: &[(RawKey, Write)],
    mut stored: impl FnMut(usize) -> Result<KeyState>,
) -> Result<()> {
    let mut states = KeyMap::for_writes(writes.len());
    for (number, (key, write)) in writes.iter().enumerate() {
        let before = match states.get(key) {
            Some(state) => *state,
            None => stored(number)?,
        };
        let after = before.after(key, write)?;
        // A deadline does not depend on the value: a later write of the list still reads the stored one.
        if writes.len() > 1 && !write.is_of_deadline() {
            *states.entry(key, || before) = after;
        }
    }
    Ok(())
}

/// What must be true of one key before the first write: it is absent or of this type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub struct Precondition {
    pub key: RawKey,
    pub kind: Kind,
    /// The field of the hash that is counted; `None` = the string.
    pub field: Option<Bytes>,
    /// It must be an integer of this range (absent counts as 0), so that no increment leaves 64 bits.
    pub countable: Option<RangeInclusive<i64>>,
}

impl Precondition {
    /// The precondition of a key that is only incremented, by `by`.
    pub fn counter(key: RawKey, by: i64) -> Precondition {
        let mut sums = Sums::default();
        sums.add(by);
        Precondition { key, kind: Kind::Text, field: None, countable: Some(sums.range()) }
    }

    /// The error of a number that is outside of the range.
    pub fn overflow(&self, value: i64) -> Error {
        let range = self.countable.clone().unwrap_or(i64::MIN..=i64::MAX);
        Sums::overflow(&self.key, value, &range)
    }
}

/// The preconditions of several transactions that share a commit.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Preconditions {
    keys: HashMap<RawKey, KeyFold, RandomState>,
    /// The fields of hashes.
    fields: HashMap<RawKey, FieldNumbers, RandomState>,
}

/// What the writes so far require of a key, and its state after them.
#[derive(Debug, Clone, Copy, Default)]
struct KeyFold {
    required: Option<Kind>,
    sums: Option<Sums>,
    state: KeyState,
}

/// Increments of the value before the transaction: their sum, and the lowest and highest on the way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    now: i128,
    low: i128,
    high: i128,
}

impl Sums {
    pub(super) fn add(&mut self, by: i64) {
        self.now += i128::from(by);
        self.low = self.low.min(self.now);
        self.high = self.high.max(self.now);
    }

    /// Values from which no sum on the way leaves 64 bits.
    pub(super) fn range(&self) -> RangeInclusive<i64> {
        let clamp = |n: i128| n.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        clamp(i128::from(i64::MIN) - self.low)..=clamp(i128::from(i64::MAX) - self.high)
    }

    /// The error of a value outside of such a range.
    pub(super) fn overflow(key: &RawKey, value: i64, range: &RangeInclusive<i64>) -> Error {
        let by = if value > *range.end() {
            i64::MAX.saturating_sub(*range.end())
        } else {
            i64::MIN.saturating_sub(*range.start())
        };
        Error::Overflow { key: show(key), value, by }
    }
}

impl Preconditions {
    /// Adds the writes of a transaction. An error if they contradict themselves or the writes before them
    /// (SET, then SADD of the same key), whatever the keys store; then nothing was added.
    pub fn add(&mut self, writes: &[(RawKey, Write)]) -> Result<()> {
        let mut trial = KeyMap::for_writes(writes.len());
        let mut fields: HashMap<&RawKey, FieldNumbers, RandomState> = HashMap::default();
        for (key, write) in writes {
            let fold = trial.entry(key, || self.keys.get(key).copied().unwrap_or_default());
            let is_replaced = matches!(fold.state, KeyState::Absent | KeyState::Text(_));
            fold.follow(key, write)?;
            let is_tracked = || self.fields.contains_key(key) || fields.contains_key(key);
            let replaces = matches!(write, Write::Set(..) | Write::Del) && is_tracked();
            if write.kind() == Some(Kind::Hash) || replaces {
                let before = self.fields.get(key);
                let first = || FieldNumbers::new(before.is_none() && is_replaced);
                fields.entry(key).or_insert_with(first).follow(before, key, write)?;
            }
        }
        trial.into_each(|key, fold| *self.keys.entry_ref(key).or_default() = fold);
        for (key, numbers) in fields {
            self.fields.entry_ref(key).or_default().absorb(numbers);
        }
        Ok(())
    }

    /// Makes room for that many keys.
    pub fn reserve(&mut self, keys: usize) {
        self.keys.reserve(keys);
    }

    /// The preconditions of a key: of its type and number, then of each field that is counted.
    pub fn of(&self, key: &RawKey) -> impl Iterator<Item = Precondition> {
        let fold = self.keys.get(key);
        let whole = fold.and_then(|fold| {
            let countable = fold.sums.map(|sums| sums.range());
            Some(Precondition { key: key.clone(), kind: fold.required?, field: None, countable })
        });
        let counted =
            self.fields.get(key).into_iter().flat_map(FieldNumbers::required).map(move |(field, range)| {
                Precondition {
                    key: key.clone(),
                    kind: Kind::Hash,
                    field: Some(field.clone()),
                    countable: Some(range),
                }
            });
        whole.into_iter().chain(counted)
    }
}

impl KeyFold {
    fn follow(&mut self, key: &RawKey, write: &Write) -> Result<()> {
        if self.state == KeyState::Unread {
            self.required = write.kind();
        }
        if let (Write::IncrBy(by), KeyState::Unread | KeyState::Kind(_)) = (write, self.state) {
            self.sums.get_or_insert_default().add(*by);
        }
        self.state = self.state.after(key, write)?;
        Ok(())
    }
}

/// A map for the keys of one list of writes. Nearly all lists are short: those need neither a table nor a
/// hash.
enum KeyMap<'a, V> {
    Short(SmallVec<[(&'a RawKey, V); COMPARED_MAX]>),
    Long(HashMap<&'a RawKey, V, RandomState>),
}

impl<'a, V> KeyMap<'a, V> {
    fn for_writes(writes: usize) -> Self {
        if writes > COMPARED_MAX { KeyMap::Long(HashMap::default()) } else { KeyMap::Short(SmallVec::new()) }
    }

    fn get(&self, key: &RawKey) -> Option<&V> {
        match self {
            KeyMap::Short(list) => list.iter().find(|(other, _)| *other == key).map(|(_, value)| value),
            KeyMap::Long(map) => map.get(key),
        }
    }

    fn entry(&mut self, key: &'a RawKey, first: impl FnOnce() -> V) -> &mut V {
        match self {
            KeyMap::Short(list) => {
                let at = list.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                    list.push((key, first()));
                    list.len() - 1
                });
                &mut list[at].1
            }
            KeyMap::Long(map) => map.entry(key).or_insert_with(first),
        }
    }

    fn into_each(self, mut work: impl FnMut(&'a RawKey, V)) {
        match self {
            KeyMap::Short(list) => list.into_iter().for_each(|(key, value)| work(key, value)),
            KeyMap::Long(map) => map.into_iter().for_each(|(key, value)| work(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Expiry;

    fn key() -> RawKey {
        RawKey::from_static(b"k")
    }

    fn set(text: &'static str) -> Write {
        Write::Set(Bytes::from_static(text.as_bytes()), Expiry::Never)
    }

    fn asked(writes: &[Write]) -> Result<Option<Precondition>> {
        let writes: Vec<_> = writes.iter().map(|write| (key(), write.clone())).collect();
        let mut preconditions = Preconditions::default();
        preconditions.add(&writes)?;
        Ok(preconditions.of(&key()).next())
    }

    #[test]
    fn the_first_typed_write_says_what_the_key_must_be_also_when_it_is_covered_later() {
        let sadd = Write::SAdd(vec![Bytes::from_static(b"m")]);
        let set_required = Some(Precondition { key: key(), kind: Kind::Set, field: None, countable: None });
        assert_eq!(asked(&[sadd.clone(), Write::Del]), Ok(set_required.clone()));
        assert_eq!(asked(&[Write::Persist, sadd, set("x")]), Ok(set_required));
        assert_eq!(asked(&[Write::Del, Write::IncrBy(1)]), Ok(None), "whatever was there is gone");
    }

    #[test]
    fn no_sum_on_the_way_may_leave_64_bits() {
        let required = asked(&[Write::IncrBy(3), Write::IncrBy(-5)]).expect("no contradiction");
        let range = required.and_then(|required| required.countable).expect("increments");
        assert_eq!(range, i64::MIN + 2..=i64::MAX - 3);
        assert!(asked(&[set("9223372036854775807"), Write::IncrBy(1)]).is_err());
    }

    #[test]
    fn increments_of_a_field_depend_on_what_the_list_wrote_to_it() {
        let field = || Bytes::from_static(b"f");
        let (incr, hset) = (|by| Write::HIncrBy(field(), by), |text| Write::HSet(vec![(field(), text)]));
        let required = |writes: &[Write]| -> Result<Vec<_>> {
            let writes: Vec<_> = writes.iter().map(|write| (key(), write.clone())).collect();
            let mut preconditions = Preconditions::default();
            preconditions.add(&writes)?;
            let key = key();
            let of_fields = preconditions.of(&key).filter(|required| required.field.is_some());
            Ok(of_fields.filter_map(|required| required.countable).collect())
        };
        assert_eq!(required(&[incr(3), incr(-5)]), Ok(vec![i64::MIN + 2..=i64::MAX - 3]));
        assert_eq!(required(&[hset(Bytes::from_static(b"4")), incr(3)]), Ok(vec![]));
        assert_eq!(required(&[Write::Del, incr(3)]), Ok(vec![]));
        assert_eq!(
            required(&[incr(2), Write::HDel(vec![field()]), incr(3)]),
            Ok(vec![i64::MIN..=i64::MAX - 2])
        );
        assert!(matches!(required(&[hset(Bytes::from_static(b"x")), incr(3)]), Err(Error::Corrupt { .. })));
        let most = Bytes::from(i64::MAX.to_string());
        let over = Error::Overflow { key: "k".into(), value: i64::MAX, by: 3 };
        assert_eq!(required(&[hset(most), incr(3)]), Err(over));
    }

    #[test]
    fn a_contradiction_is_found_before_any_write_and_adds_nothing() {
        assert!(asked(&[set("text"), Write::IncrBy(1)]).is_err());
        assert!(asked(&[set("text"), Write::LPop(1)]).is_err());
        let mut preconditions = Preconditions::default();
        preconditions.add(&[(key(), set("1"))]).expect("a SET asks for nothing");
        assert!(preconditions.add(&[(key(), Write::LPop(1))]).is_err());
        assert_eq!(preconditions.add(&[(key(), Write::IncrBy(1))]), Ok(()), "the refused one left no trace");
    }
}
