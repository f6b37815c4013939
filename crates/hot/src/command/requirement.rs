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

/// Which types must the keys have so that no write of the list can fail? Checked by every engine before the
/// first write, because Redis does not undo a script. A list that contradicts itself (SET, then SADD of the
/// same key) is an error here.
pub fn requirements(writes: &[(RawKey, Write)]) -> Result<Vec<Requirement>> {
    // Per key: what the writes so far make of it. `None` = any type, as after DEL.
    let mut seen: Vec<(&RawKey, Option<Kind>)> = Vec::new();
    let mut required: Vec<Requirement> = Vec::new();
    for (key, write) in writes {
        let known = seen.iter().position(|(k, _)| *k == key);
        let after = match write {
            Write::Set(..) => Some(Some(Kind::Text)),
            Write::Del => Some(None),
            _ => None,
        };
        match (write.kind(), known) {
            (Some(kind), None) => {
                required.push(Requirement { key: key.clone(), kind, increment: increment(write) });
                seen.push((key, Some(kind)));
            }
            (Some(kind), Some(at)) => match seen[at].1 {
                Some(held) if held != kind => return Err(wrong_type(key, kind, KindFound::Kind(held))),
                _ => {
                    check_countable(writes, key, write)?;
                    seen[at].1 = Some(kind);
                    add_increment(&mut required, key, write);
                }
            },
            (None, Some(at)) => {
                if let Some(kind) = after {
                    seen[at].1 = kind;
                }
            }
            (None, None) => {
                if let Some(kind) = after {
                    seen.push((key, kind));
                }
            }
        }
    }
    Ok(required)
}

/// An INCRBY after a SET of the same list must find an integer in it.
fn check_countable(writes: &[(RawKey, Write)], key: &RawKey, write: &Write) -> Result<()> {
    let set = writes.iter().rev().find_map(|(k, w)| match w {
        Write::Set(text, _) if k == key => Some(text),
        _ => None,
    });
    match (write, set) {
        (Write::IncrBy(_), Some(text)) if parse_integer(text).is_none() => Err(not_an_integer(key)),
        _ => Ok(()),
    }
}

fn increment(write: &Write) -> Option<i64> {
    if let Write::IncrBy(by) = write { Some(*by) } else { None }
}

fn add_increment(required: &mut [Requirement], key: &RawKey, write: &Write) {
    if let (Some(by), Some(found)) = (increment(write), required.iter_mut().find(|r| r.key == key)) {
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
        assert!(requirements(&[(key(), set), (key(), Write::LPop(1))]).is_err());
    }
}
