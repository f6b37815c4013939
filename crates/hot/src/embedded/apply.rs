//! Applies a write to a key. It has no clock: the caller removes expired keys first, so the same code serves
//! commits and the load of a journal.

use super::shard::{KeyHash, Shard};
use super::slab::{Entry, NEVER};
use super::value::{Collection, Elements, Value};
use crate::command::{Expiry, Kind, KindFound, Score, Write, parse_integer};
use crate::tx::overlay::resolve;

/// Why a write cannot be applied: the key has another type than the write needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) expected: Kind,
    pub(super) found: KindFound,
}

/// Values that writes replaced or removed. They are freed after the locks are released: freeing a million
/// members takes too long for a lock.
pub(super) type Garbage = Vec<Value>;

/// Applies one write. Refuses it, and changes nothing, if the key does not hold what the write needs.
pub(super) fn apply(
    shard: &mut Shard,
    hashed: KeyHash,
    key: &[u8],
    write: &Write,
    garbage: &mut Garbage,
) -> Result<(), Refusal> {
    match write {
        // The condition was met, or the write would have been left out.
        Write::Set(text, expiry) | Write::SetIfGreater(text, expiry) => {
            set(shard, hashed, key, text, *expiry, garbage)
        }
        Write::Del => {
            if let Some(position) = shard.find(hashed, key) {
                discard(shard.remove(position).value, garbage);
            }
        }
        Write::IncrBy(by) => return increment(shard, hashed, key, *by),
        Write::ExpireAt(at) => set_deadline(shard, hashed, key, |_| *at),
        Write::ExpireAtIfNone(at) => {
            set_deadline(shard, hashed, key, |held| if held == NEVER { *at } else { held })
        }
        Write::Persist => set_deadline(shard, hashed, key, |_| NEVER),
        write if write.leaves_key() => {
            return grow(shard, hashed, key, write);
        }
        _ => return shrink(shard, hashed, key, write, garbage),
    }
    Ok(())
}

fn discard(value: Value, garbage: &mut Garbage) {
    if let Value::Many(_) = value {
        garbage.push(value);
    }
}

fn set(shard: &mut Shard, hashed: KeyHash, key: &[u8], text: &[u8], expiry: Expiry, garbage: &mut Garbage) {
    let Some(position) = shard.find(hashed, key) else {
        let deadline = if let Expiry::At(at) = expiry { at } else { NEVER };
        shard.insert(hashed, key, Value::Text(text.into()), deadline);
        return;
    };
    shard.change(position, |entry| {
        match &mut entry.value {
            // Records of fixed size change in place.
            Value::Text(held) if held.len() == text.len() => held.copy_from_slice(text),
            held => discard(std::mem::replace(held, Value::Text(text.into())), garbage),
        }
        match expiry {
            Expiry::Keep => {}
            Expiry::Never => entry.deadline = NEVER,
            Expiry::At(at) => entry.deadline = at,
        }
    });
}

fn set_deadline(shard: &mut Shard, hashed: KeyHash, key: &[u8], deadline: impl FnOnce(i64) -> i64) {
    if let Some(position) = shard.find(hashed, key) {
        shard.change(position, |entry| entry.deadline = deadline(entry.deadline));
    }
}

fn increment(shard: &mut Shard, hashed: KeyHash, key: &[u8], by: i64) -> Result<(), Refusal> {
    let Some(position) = shard.find(hashed, key) else {
        shard.insert(hashed, key, Value::Text(digits(by)), NEVER);
        return Ok(());
    };
    let after = integer(&shard.at(position).value)?.checked_add(by).ok_or(NOT_AN_INTEGER)?;
    shard.change(position, |entry| entry.value = Value::Text(digits(after)));
    Ok(())
}

/// The refusal of an increment, also of one that would leave 64 bits.
const NOT_AN_INTEGER: Refusal = Refusal { expected: Kind::Text, found: KindFound::NotAnInteger };

/// The number that a value holds.
fn integer(value: &Value) -> Result<i64, Refusal> {
    match value {
        Value::Text(text) => parse_integer(text).ok_or(NOT_AN_INTEGER),
        other => Err(Refusal { expected: Kind::Text, found: KindFound::Kind(other.kind()) }),
    }
}

fn digits(number: i64) -> Box<[u8]> {
    itoa::Buffer::new().format(number).as_bytes().into()
}

/// Writes that add members, and make the collection if it is not there.
fn grow(shard: &mut Shard, hashed: KeyHash, key: &[u8], write: &Write) -> Result<(), Refusal> {
    let Some(kind) = write.kind() else { return Ok(()) };
    let position = match shard.find(hashed, key) {
        Some(position) => position,
        None => match Collection::empty(kind) {
            Some(empty) => shard.insert(hashed, key, Value::Many(Box::new(empty)), NEVER),
            None => return Ok(()),
        },
    };
    shard.change(position, |entry| on_members(entry, kind, write))
}

/// Writes that need members, and remove the key with the last of them.
fn shrink(
    shard: &mut Shard,
    hashed: KeyHash,
    key: &[u8],
    write: &Write,
    garbage: &mut Garbage,
) -> Result<(), Refusal> {
    let (Some(kind), Some(position)) = (write.kind(), shard.find(hashed, key)) else { return Ok(()) };
    shard.change(position, |entry| on_members(entry, kind, write))?;
    if matches!(&shard.at(position).value, Value::Many(collection) if collection.len() == 0) {
        discard(shard.remove(position).value, garbage);
    }
    Ok(())
}

fn on_members(entry: &mut Entry, expected: Kind, write: &Write) -> Result<(), Refusal> {
    let found = KindFound::Kind(entry.value.kind());
    let Value::Many(collection) = &mut entry.value else { return Err(Refusal { expected, found }) };
    match (collection.as_mut(), write) {
        (Collection::Hash(fields), Write::HSet(pairs)) => {
            pairs.iter().for_each(|(field, value)| fields.insert(field, value));
        }
        (Collection::Hash(fields), Write::HIncrBy(field, by)) => {
            let before = fields.map.get(&field[..]).map_or(Some(0), |text| parse_integer(text));
            let sum = before.and_then(|before| before.checked_add(*by));
            let sum = sum.ok_or(Refusal { expected, found: KindFound::NotAnInteger })?;
            fields.insert(field, itoa::Buffer::new().format(sum).as_bytes());
        }
        (Collection::Hash(fields), Write::HDel(gone)) => gone.iter().for_each(|field| fields.remove(field)),
        (Collection::Set(members), Write::SAdd(new)) => new.iter().for_each(|member| members.insert(member)),
        (Collection::Set(members), Write::SRem(gone)) => {
            gone.iter().for_each(|member| members.remove(member))
        }
        (Collection::SortedSet(scores), Write::ZAdd(pairs)) => {
            pairs.iter().for_each(|(member, score)| scores.insert(member, *score));
        }
        (Collection::SortedSet(scores), Write::ZIncrBy(member, by)) => {
            let before = scores.of.get(&member[..]).copied().unwrap_or(Score::from_i64(0));
            scores.insert(member, before.plus(*by));
        }
        (Collection::SortedSet(scores), Write::ZRem(gone)) => {
            gone.iter().for_each(|member| scores.remove(member));
        }
        (Collection::List(elements), write) => return on_list(elements, expected, write),
        _ => return Err(Refusal { expected, found }),
    }
    Ok(())
}

fn on_list(elements: &mut Elements, expected: Kind, write: &Write) -> Result<(), Refusal> {
    match write {
        Write::LPush(new) => new.iter().for_each(|element| elements.push_front(element)),
        Write::RPush(new) => new.iter().for_each(|element| elements.push_back(element)),
        Write::LPop(count) => elements.pop_front(*count),
        Write::RPop(count) => elements.pop_back(*count),
        Write::LSet(at, element) => {
            if let Some((at, _)) = resolve(*at, *at, elements.list.len()) {
                elements.replace(at, element);
            }
        }
        Write::LTrim(start, stop) => match resolve(*start, *stop, elements.list.len()) {
            Some((from, to)) => {
                elements.pop_back(elements.list.len() - 1 - to);
                elements.pop_front(from);
            }
            None => elements.pop_front(usize::MAX),
        },
        _ => return Err(Refusal { expected, found: KindFound::Kind(Kind::List) }),
    }
    Ok(())
}
