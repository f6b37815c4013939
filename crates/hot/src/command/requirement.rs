//! What the writes of a step ask of the keys' types, checked before the first write.

use super::{Kind, KindFound, RawKey, Write, wrong_type};
use crate::error::Result;
use crate::tx::overlay::{not_an_integer, parse_integer};

/// What a step's typed writes ask of one key before the first write: the key is absent or of this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The key.
    pub key: RawKey,
    /// Its type.
    pub kind: Kind,
    /// The string must be an integer, and the sum of the increments is this.
    pub increment: Option<i64>,
}

/// What the writes so far make of a key.
#[derive(Debug, Clone, Copy)]
enum After {
    /// Nothing: it may become any type, as after DEL.
    Nothing,
    /// A value of a type, of which nothing more is known.
    Kind(Kind),
    /// The string of a SET of the same list, if it is a number.
    Text(Option<i64>),
}

/// Which types must the keys have so that no write of the list can fail? Checked by every engine before the
/// first write, because Redis does not undo a script. A list that contradicts itself (SET, then SADD of the
/// same key) is an error here.
pub fn requirements(writes: &[(RawKey, Write)]) -> Result<Vec<Requirement>> {
    let mut seen: Vec<(&RawKey, After)> = Vec::new();
    let mut required: Vec<Requirement> = Vec::new();
    for (key, write) in writes {
        let known = seen.iter().position(|(k, _)| *k == key);
        let after = match (write, write.kind()) {
            (Write::Set(text, _), _) => After::Text(parse_integer(text)),
            (Write::Del, _) => After::Nothing,
            // Deadlines ask for nothing and change no type.
            (_, None) => continue,
            (_, Some(kind)) => match known {
                Some(at) => follow(key, seen[at].1, write, kind, &mut required)?,
                None => {
                    required.push(Requirement { key: key.clone(), kind, increment: increment(write) });
                    After::Kind(kind)
                }
            },
        };
        match known {
            Some(at) => seen[at].1 = after,
            None => seen.push((key, after)),
        }
    }
    Ok(required)
}

/// What a typed write makes of a key that the list wrote before.
fn follow(
    key: &RawKey,
    before: After,
    write: &Write,
    kind: Kind,
    required: &mut [Requirement],
) -> Result<After> {
    let held = match before {
        After::Nothing => None,
        After::Kind(held) => Some(held),
        After::Text(_) => Some(Kind::Text),
    };
    match held {
        Some(held) if held != kind => return Err(wrong_type(key, kind, KindFound::Kind(held))),
        _ => {}
    }
    let Some(by) = increment(write) else { return Ok(After::Kind(kind)) };
    let number = match before {
        After::Nothing => Some(by),
        After::Text(number) => number.and_then(|number| number.checked_add(by)),
        After::Kind(_) => {
            add_increment(required, key, by);
            return Ok(before);
        }
    };
    number.map(|number| After::Text(Some(number))).ok_or_else(|| not_an_integer(key))
}

fn increment(write: &Write) -> Option<i64> {
    if let Write::IncrBy(by) = write { Some(*by) } else { None }
}

fn add_increment(required: &mut [Requirement], key: &RawKey, by: i64) {
    if let Some(found) = required.iter_mut().find(|r| r.key == key) {
        found.increment = found.increment.map(|sum| sum.saturating_add(by));
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

    #[test]
    fn the_first_typed_write_says_what_the_key_must_be() {
        let writes = [(key(), Write::SAdd(vec![Bytes::from_static(b"m")])), (key(), Write::Del)];
        let required = requirements(&writes).expect("no contradiction");
        assert_eq!(required, [Requirement { key: key(), kind: Kind::Set, increment: None }]);
        let after_del = [(key(), Write::Del), (key(), Write::IncrBy(1))];
        assert_eq!(requirements(&after_del), Ok(vec![]), "whatever was there is gone");
    }

    #[test]
    fn increments_are_summed_and_a_contradiction_is_found_before_any_write() {
        let writes = [(key(), Write::IncrBy(2)), (key(), Write::IncrBy(3))];
        assert_eq!(requirements(&writes).expect("no contradiction")[0].increment, Some(5));
        let set = Write::Set(Bytes::from_static(b"text"), Expiry::Never);
        assert!(requirements(&[(key(), set.clone()), (key(), Write::IncrBy(1))]).is_err());
        assert!(requirements(&[(key(), set.clone()), (key(), Write::LPop(1))]).is_err());
        let five = Write::Set(Bytes::from_static(b"5"), Expiry::Never);
        let replaced = [(key(), five), (key(), Write::IncrBy(1)), (key(), set)];
        assert_eq!(requirements(&replaced), Ok(vec![]), "the increment found the 5, not what came after it");
        let max = Write::Set(Bytes::from(i64::MAX.to_string()), Expiry::Never);
        assert!(requirements(&[(key(), max), (key(), Write::IncrBy(1))]).is_err(), "the sum leaves 64 bits");
    }
}
