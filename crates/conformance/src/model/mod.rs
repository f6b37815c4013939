//! A simple keyspace with Redis' rules, written without a look at the engines: slow, whole copies, no
//! cleverness.
//!
//! What a transaction means: its reads and writes are made one after the other on a copy; if a write is
//! refused, the copy is thrown away and the transaction is refused; otherwise the copy is the new keyspace.

mod change;
mod reply;

use crate::external::StoredValue;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Kind, Read, Reply, Write};
use std::collections::{BTreeMap, BTreeSet};

/// A key's value and deadline.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The value of the key.
    pub stored: StoredValue,
    /// When the key expires, in milliseconds since 1970; `None` = never.
    pub deadline: Option<i64>,
}

/// Why a transaction is refused as a whole: a key of another type, or a number that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal;

/// One operation of a transaction.
#[derive(Debug, Clone)]
pub enum Op {
    /// A read of a key, by its number.
    Read(usize, Read),
    /// A write to a key, by its number.
    Write(usize, Write),
}

/// All keys, by number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    keys: BTreeMap<usize, Entry>,
}

impl Model {
    /// What a key holds.
    pub fn entry(&self, key: usize) -> Option<&Entry> {
        self.keys.get(&key)
    }

    /// Removes what has ended at this time; gives the keys. In the millisecond of its deadline a key still
    /// lives.
    pub fn pass(&mut self, now: i64) -> Vec<usize> {
        let ended = |entry: &Entry| entry.deadline.is_some_and(|at| at < now);
        let gone: Vec<usize> = self.keys.iter().filter(|(_, e)| ended(e)).map(|(key, _)| *key).collect();
        gone.iter().for_each(|key| drop(self.keys.remove(key)));
        gone
    }

    /// Runs a transaction: what its reads answer (`None` = of another type), or that it is refused.
    pub fn transaction(&mut self, ops: &[Op]) -> Result<Vec<Option<Reply>>, Refusal> {
        self.contradicts(ops)?;
        let mut copy = self.clone();
        let mut answers = Vec::new();
        for op in ops {
            match op {
                Op::Read(key, read) => answers.push(reply::reply_to(copy.keys.get(key), read)),
                Op::Write(key, write) => copy.write(*key, write)?,
            }
        }
        *self = copy;
        Ok(answers)
    }

    /// The contract is stricter than Redis in one place: a list of writes that uses one key as two types
    /// without a SET or DEL between is refused, also where the first type would have ended empty.
    fn contradicts(&self, ops: &[Op]) -> Result<(), Refusal> {
        let mut used: BTreeMap<usize, Option<Kind>> = BTreeMap::new();
        // Keys whose string is known only at the commit: they cannot be incremented.
        let mut conditional = BTreeSet::new();
        for op in ops {
            let Op::Write(key, write) = op else { continue };
            match (write, write.kind()) {
                (Write::Set(..), _) => {
                    conditional.remove(key);
                    used.insert(*key, Some(Kind::Text));
                }
                (Write::SetIfGreater(..), _) => {
                    conditional.insert(*key);
                    used.insert(*key, Some(Kind::Text));
                }
                (Write::Del, _) => {
                    conditional.remove(key);
                    used.insert(*key, None);
                }
                (Write::IncrBy(_), _) if conditional.contains(key) => return Err(Refusal),
                (_, None) => {}
                (_, Some(kind)) => {
                    let before = used.get(key).copied().flatten();
                    let there = self.keys.get(key).filter(|_| !used.contains_key(key));
                    if before
                        .or(there.map(|entry| kind_of(&entry.stored)))
                        .is_some_and(|stored| stored != kind)
                    {
                        return Err(Refusal);
                    }
                    used.insert(*key, Some(kind));
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, key: usize, write: &Write) -> Result<(), Refusal> {
        let before = self.keys.remove(&key);
        let after = match write {
            Write::Del => None,
            Write::Set(text, expiry) => {
                let deadline = match expiry {
                    Expiry::Keep => before.and_then(|entry| entry.deadline),
                    Expiry::Never => None,
                    Expiry::At(at) => Some(*at),
                };
                Some(Entry { stored: StoredValue::Text(text.clone()), deadline })
            }
            Write::SetIfGreater(text, expiry) => {
                let stored = match &before {
                    Some(Entry { stored: StoredValue::Text(text), .. }) => last_number(text),
                    _ => None,
                };
                let is_greater = stored < last_number(text);
                if let Some(entry) = before {
                    self.keys.insert(key, entry);
                }
                return if is_greater { self.write(key, &Write::Set(text.clone(), *expiry)) } else { Ok(()) };
            }
            Write::ExpireAt(at) => before.map(|entry| Entry { deadline: Some(*at), ..entry }),
            Write::ExpireAtIfNone(at) => {
                before.map(|entry| Entry { deadline: entry.deadline.or(Some(*at)), ..entry })
            }
            Write::Persist => before.map(|entry| Entry { deadline: None, ..entry }),
            typed => change::change(before, typed)?,
        };
        if let Some(entry) = after {
            self.keys.insert(key, entry);
        }
        Ok(())
    }
}

/// The type of a value.
pub fn kind_of(stored: &StoredValue) -> Kind {
    match stored {
        StoredValue::Text(_) => Kind::Text,
        StoredValue::Hash(_) => Kind::Hash,
        StoredValue::Set(_) => Kind::Set,
        StoredValue::SortedSet(_) => Kind::SortedSet,
        StoredValue::List(_) => Kind::List,
    }
}

/// The part of `len` elements between two positions, negative from the end, as Redis reads them.
fn part(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let len = len as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
    let (from, to) = (place(start).max(0), place(stop).min(len - 1));
    if from > to { 0..0 } else { from as usize..to as usize + 1 }
}

/// The canonical integer behind the last comma of a string.
fn last_number(text: &Bytes) -> Option<i64> {
    let from = text.iter().rposition(|byte| *byte == b',').map_or(0, |comma| comma + 1);
    integer(&text.slice(from..))
}

/// The canonical integer in a string.
fn integer(text: &Bytes) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::*;

    #[test]
    fn a_refused_transaction_changes_nothing() {
        let mut model = Model::default();
        model.transaction(&[Op::Write(0, set("x"))]).expect("a plain transaction");
        let before = model.clone();
        assert_eq!(model.transaction(&[Op::Write(1, set("y")), Op::Write(0, sadd(&["a"]))]), Err(Refusal));
        assert_eq!(model, before);
    }

    #[test]
    fn positions_are_those_of_redis() {
        assert_eq!(part(0, -1, 3), 0..3);
        assert_eq!(part(-2, 9, 3), 1..3);
        assert_eq!(part(2, 1, 3), 0..0);
        assert_eq!(part(0, -1, 0), 0..0);
        assert_eq!(part(i64::MIN, i64::MAX, 3), 0..3);
    }
}
