//! Before the first write: can every write of the transaction be applied? Either all are or none, so whatever a write
//! could object to is asked first: types, and sums that leave 64 bits.
//!
//! The list is played through per key. What earlier writes of the list make of a key counts, not what the
//! keyspace holds. As on every engine, a list contradicts itself if it writes one key as two types without a
//! DEL or SET between, also where the first type would have ended empty.

use super::apply::{NOT_AN_INTEGER, Refused, integer};
use super::locks::{Found, Locked};
use super::shard::Hashed;
use crate::command::parse_integer;
use crate::command::*;
use crate::error::Result;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Up to here, keys of a list are told apart by comparing; beyond, by a map.
const COMPARED_MAX: usize = 16;

/// What a key holds after some writes of the list.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// Nothing, so it may become anything.
    Nothing,
    /// A type, of a value that does not matter here.
    Kind(Kind),
    /// The string of the write with this number.
    Written(usize),
    /// A number.
    Number(i64),
}

/// Checks a list whose shards are all held. Answers the writes (by number) that met a key whose time had come:
/// a DEL of it must precede the list, or the load of a journal, which has no clock, would bring it back.
pub(super) fn check(
    locked: &mut Locked<'_>,
    writes: &[(RawKey, Write)],
    hashes: &[Hashed],
) -> Result<SmallVec<[usize; 2]>> {
    let mut ended = SmallVec::new();
    let mut seen = Seen::new(writes.len());
    for (number, (key, write)) in writes.iter().enumerate() {
        let before = match seen.of(writes, key) {
            Some(held) => held,
            // What is there does not matter, not even whether its time has come.
            None if matches!(write, Write::Set(_, Expiry::Never | Expiry::At(_)) | Write::Del) => {
                Held::Nothing
            }
            None => in_keyspace(locked, hashes[number], key, write, number, &mut ended)?,
        };
        let after = after(before, write, number, writes).map_err(|r| wrong_type(key, r.expected, r.found))?;
        // A deadline says nothing about the type: a later write of the list still asks the keyspace.
        if writes.len() > 1 && !matches!(write, Write::ExpireAt(_) | Write::Persist) {
            seen.set(number, key, after);
        }
    }
    Ok(ended)
}

/// What the keyspace holds at a key, as far as the write wants to know.
fn in_keyspace(
    locked: &mut Locked<'_>,
    hashed: Hashed,
    key: &[u8],
    write: &Write,
    number: usize,
    ended: &mut SmallVec<[usize; 2]>,
) -> Result<Held> {
    let (shard, found) = locked.find(hashed, key)?;
    Ok(match found {
        Found::Absent => Held::Nothing,
        Found::Ended => {
            ended.push(number);
            Held::Nothing
        }
        Found::Living(position) => match (&shard.at(position).value, write) {
            (value, Write::IncrBy(_)) => {
                Held::Number(integer(value).map_err(|r| wrong_type(key, r.expected, r.found))?)
            }
            (value, _) => Held::Kind(value.kind()),
        },
    })
}

/// What a write makes of a key.
fn after(before: Held, write: &Write, number: usize, writes: &[(RawKey, Write)]) -> Result<Held, Refused> {
    match (write, write.kind()) {
        (Write::Set(..), _) => Ok(Held::Written(number)),
        (Write::Del, _) => Ok(Held::Nothing),
        (Write::IncrBy(by), _) => {
            let sum = number_in(before, writes)?.checked_add(*by).ok_or(NOT_AN_INTEGER)?;
            Ok(Held::Number(sum))
        }
        (_, Some(expected)) => match kind_in(before) {
            Some(held) if held != expected => Err(Refused { expected, found: KindFound::Kind(held) }),
            _ => Ok(Held::Kind(expected)),
        },
        (_, None) => Ok(before),
    }
}

fn kind_in(held: Held) -> Option<Kind> {
    match held {
        Held::Nothing => None,
        Held::Kind(kind) => Some(kind),
        Held::Written(_) | Held::Number(_) => Some(Kind::Text),
    }
}

fn number_in(held: Held, writes: &[(RawKey, Write)]) -> Result<i64, Refused> {
    match held {
        Held::Nothing => Ok(0),
        Held::Number(number) => Ok(number),
        Held::Written(number) => match &writes[number].1 {
            Write::Set(text, _) => parse_integer(text).ok_or(NOT_AN_INTEGER),
            _ => Err(NOT_AN_INTEGER),
        },
        Held::Kind(kind) => Err(Refused { expected: Kind::Text, found: KindFound::Kind(kind) }),
    }
}

/// What is known of the keys of a list.
struct Seen<'a> {
    few: SmallVec<[(usize, Held); COMPARED_MAX]>,
    /// For long lists, instead.
    many: Option<HashMap<&'a [u8], Held, foldhash::fast::RandomState>>,
}

impl<'a> Seen<'a> {
    fn new(writes: usize) -> Seen<'a> {
        Seen { few: SmallVec::new(), many: (writes > COMPARED_MAX).then(HashMap::default) }
    }

    fn of(&self, writes: &[(RawKey, Write)], key: &[u8]) -> Option<Held> {
        match &self.many {
            Some(map) => map.get(key).copied(),
            None => self.few.iter().rev().find(|(last, _)| writes[*last].0 == key).map(|(_, held)| *held),
        }
    }

    fn set(&mut self, number: usize, key: &'a [u8], held: Held) {
        match &mut self.many {
            Some(map) => drop(map.insert(key, held)),
            None => self.few.push((number, held)),
        }
    }
}
