//! What writes ask of the keys' types, checked before the first of them is made: Redis does not undo a script.

use super::{Kind, KindFound, RawKey, Write, wrong_type};
use crate::command::{not_an_integer, parse_integer};
use crate::error::Result;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::ops::RangeInclusive;

/// Writes of one transaction up to which looking at each one is the faster way.
const LOOK_AT_EACH_MAX: usize = 16;

/// What must be true of one key before the first write: it is absent or of this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The key.
    pub key: RawKey,
    /// Its type.
    pub kind: Kind,
    /// The string must be an integer of this range (absent counts as 0), so that no increment leaves 64 bits.
    pub countable: Option<RangeInclusive<i64>>,
}

impl Requirement {
    /// A key to which this is added, and nothing else.
    pub fn counter(key: RawKey, by: i64) -> Requirement {
        let mut sums = Sums::default();
        sums.add(by);
        Requirement { key, kind: Kind::Text, countable: Some(sums.range()) }
    }
}

/// Writes as they come, and what they ask of the state below all of them.
#[derive(Debug, Default)]
pub struct Requirements {
    keys: HashMap<RawKey, Shape, RandomState>,
}

/// What the writes so far ask of a key and make of it.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    required: Option<Kind>,
    sums: Option<Sums>,
    after: After,
}

#[derive(Debug, Clone, Copy, Default)]
enum After {
    /// Whatever stood there before.
    #[default]
    Untouched,
    /// Nothing: it may become any type, as after DEL.
    Nothing,
    /// A value of a type, of which nothing more is known.
    Kind(Kind),
    /// The string of a SET, if it is a number.
    Text(Option<i64>),
}

/// Increments of what stood there before: their sum, and the lowest and highest on the way.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    now: i128,
    low: i128,
    high: i128,
}

impl Sums {
    fn add(&mut self, by: i64) {
        self.now += i128::from(by);
        self.low = self.low.min(self.now);
        self.high = self.high.max(self.now);
    }

    /// Values from which no sum on the way leaves 64 bits.
    fn range(&self) -> RangeInclusive<i64> {
        let clamp = |n: i128| n.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        clamp(i128::from(i64::MIN) - self.low)..=clamp(i128::from(i64::MAX) - self.high)
    }
}

impl Requirements {
    /// Adds the writes of a transaction. An error if they contradict themselves or the writes before them (SET, then SADD
    /// of the same key), whatever stands below; then nothing was added.
    pub fn add(&mut self, writes: &[(RawKey, Write)]) -> Result<()> {
        if writes.len() > LOOK_AT_EACH_MAX {
            return self.add_many(writes);
        }
        // Few, as nearly always: a table of their own would cost more than the rest.
        let mut trial: SmallVec<[(&RawKey, Shape); LOOK_AT_EACH_MAX]> = SmallVec::new();
        for (key, write) in writes {
            let at = trial.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                trial.push((key, self.shape(key)));
                trial.len() - 1
            });
            trial[at].1.follow(key, write)?;
        }
        trial.into_iter().for_each(|(key, shape)| *self.keys.entry_ref(key).or_default() = shape);
        Ok(())
    }

    fn add_many(&mut self, writes: &[(RawKey, Write)]) -> Result<()> {
        let mut trial: HashMap<&RawKey, Shape, RandomState> = HashMap::default();
        for (key, write) in writes {
            let shape = trial.entry(key).or_insert_with(|| self.shape(key));
            shape.follow(key, write)?;
        }
        trial.into_iter().for_each(|(key, shape)| *self.keys.entry_ref(key).or_default() = shape);
        Ok(())
    }

    fn shape(&self, key: &RawKey) -> Shape {
        self.keys.get(key).copied().unwrap_or_default()
    }

    /// Makes room for that many keys.
    pub fn reserve(&mut self, keys: usize) {
        self.keys.reserve(keys);
    }

    /// What is asked of a key, if anything.
    pub fn of(&self, key: &RawKey) -> Option<Requirement> {
        let shape = self.keys.get(key)?;
        let countable = shape.sums.map(|sums| sums.range());
        Some(Requirement { key: key.clone(), kind: shape.required?, countable })
    }
}

impl Shape {
    fn follow(&mut self, key: &RawKey, write: &Write) -> Result<()> {
        self.after = match (write, write.kind()) {
            (Write::Set(text, _), _) => After::Text(parse_integer(text)),
            (Write::Del, _) => After::Nothing,
            // DueQueue ask for nothing and change no type.
            (_, None) => self.after,
            (_, Some(kind)) => self.follow_typed(key, write, kind)?,
        };
        Ok(())
    }

    fn follow_typed(&mut self, key: &RawKey, write: &Write, kind: Kind) -> Result<After> {
        let held = match self.after {
            After::Untouched | After::Nothing => None,
            After::Kind(held) => Some(held),
            After::Text(_) => Some(Kind::Text),
        };
        if let Some(held) = held.filter(|held| *held != kind) {
            return Err(wrong_type(key, kind, KindFound::Kind(held)));
        }
        let from_below = matches!(self.after, After::Untouched | After::Kind(_));
        if matches!(self.after, After::Untouched) {
            self.required = Some(kind);
        }
        match (write, self.after) {
            (Write::IncrBy(by), _) if from_below => {
                self.sums.get_or_insert_default().add(*by);
                Ok(After::Kind(kind))
            }
            (Write::IncrBy(by), After::Text(number)) => match number.and_then(|n| n.checked_add(*by)) {
                Some(sum) => Ok(After::Text(Some(sum))),
                None => Err(not_an_integer(key)),
            },
            (Write::IncrBy(by), _) => Ok(After::Text(Some(*by))),
            _ => Ok(After::Kind(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Expiry;
    use bytes::Bytes;

    fn key() -> RawKey {
        RawKey::from_static(b"k")
    }

    fn set(text: &'static str) -> Write {
        Write::Set(Bytes::from_static(text.as_bytes()), Expiry::Never)
    }

    fn asked(writes: &[Write]) -> Result<Option<Requirement>> {
        let writes: Vec<_> = writes.iter().map(|write| (key(), write.clone())).collect();
        let mut requirements = Requirements::default();
        requirements.add(&writes)?;
        Ok(requirements.of(&key()))
    }

    #[test]
    fn the_first_typed_write_says_what_the_key_must_be_also_when_it_is_covered_later() {
        let sadd = Write::SAdd(vec![Bytes::from_static(b"m")]);
        let set_required = Some(Requirement { key: key(), kind: Kind::Set, countable: None });
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
    fn a_contradiction_is_found_before_any_write_and_adds_nothing() {
        assert!(asked(&[set("text"), Write::IncrBy(1)]).is_err());
        assert!(asked(&[set("text"), Write::LPop(1)]).is_err());
        let mut requirements = Requirements::default();
        requirements.add(&[(key(), set("1"))]).expect("a SET asks for nothing");
        assert!(requirements.add(&[(key(), Write::LPop(1))]).is_err());
        assert_eq!(requirements.add(&[(key(), Write::IncrBy(1))]), Ok(()), "the refused one left no trace");
    }
}
