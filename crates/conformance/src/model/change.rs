//! What a typed write makes of a key.

use super::{Entry, Refusal, integer, part};
use crate::external::StoredValue;
use bytes::Bytes;
use emberkeep_hot::command::{Kind, Score, Write};

/// The key after the write; `None` if nothing is left.
pub(super) fn change(before: Option<Entry>, write: &Write) -> Result<Option<Entry>, Refusal> {
    let kind = write.kind().expect("writes without a type are made elsewhere");
    let entry = before.unwrap_or_else(|| Entry { stored: empty(kind), deadline: None });
    let stored = match (entry.stored, write) {
        (StoredValue::Text(text), Write::IncrBy(by)) => {
            // Only an absent key gets here with an empty string of ours; a stored one is not a number.
            let number = if text == EMPTY_NUMBER { 0 } else { integer(&text).ok_or(Refusal)? };
            StoredValue::Text(number.checked_add(*by).ok_or(Refusal)?.to_string().into())
        }
        (StoredValue::Hash(mut hash), Write::HSet(pairs)) => {
            hash.extend(pairs.iter().cloned());
            StoredValue::Hash(hash)
        }
        (StoredValue::Hash(mut hash), Write::HIncrBy(field, by)) => {
            let number = hash.get(field).map_or(Some(0), integer).ok_or(Refusal)?;
            hash.insert(field.clone(), number.checked_add(*by).ok_or(Refusal)?.to_string().into());
            StoredValue::Hash(hash)
        }
        (StoredValue::Hash(mut hash), Write::HDel(gone)) => {
            hash.retain(|field, _| !gone.contains(field));
            StoredValue::Hash(hash)
        }
        (StoredValue::Set(mut set), Write::SAdd(new)) => {
            set.extend(new.iter().cloned());
            StoredValue::Set(set)
        }
        (StoredValue::Set(mut set), Write::SRem(gone)) => {
            set.retain(|member| !gone.contains(member));
            StoredValue::Set(set)
        }
        (StoredValue::SortedSet(mut scores), Write::ZAdd(pairs)) => {
            scores.extend(pairs.iter().cloned());
            StoredValue::SortedSet(scores)
        }
        (StoredValue::SortedSet(mut scores), Write::ZIncrBy(member, by)) => {
            let before = scores.get(member).map_or(0.0, |score| score.get());
            scores.insert(member.clone(), Score::new(before + by.get()).map_err(|_| Refusal)?);
            StoredValue::SortedSet(scores)
        }
        (StoredValue::SortedSet(mut scores), Write::ZRem(gone)) => {
            scores.retain(|member, _| !gone.contains(member));
            StoredValue::SortedSet(scores)
        }
        (StoredValue::List(list), write) => StoredValue::List(change_list(list, write)?),
        _ => return Err(Refusal),
    };
    Ok((!is_empty(&stored)).then_some(Entry { stored, deadline: entry.deadline }))
}

/// Stands for the number of an absent key; no case stores it.
const EMPTY_NUMBER: &[u8] = b"\0absent";

fn empty(kind: Kind) -> StoredValue {
    match kind {
        Kind::Text => StoredValue::Text(Bytes::from_static(EMPTY_NUMBER)),
        Kind::Hash => StoredValue::Hash(Default::default()),
        Kind::Set => StoredValue::Set(Default::default()),
        Kind::SortedSet => StoredValue::SortedSet(Default::default()),
        Kind::List => StoredValue::List(Default::default()),
    }
}

fn is_empty(stored: &StoredValue) -> bool {
    match stored {
        StoredValue::Text(_) => false,
        StoredValue::Hash(hash) => hash.is_empty(),
        StoredValue::Set(set) => set.is_empty(),
        StoredValue::SortedSet(scores) => scores.is_empty(),
        StoredValue::List(list) => list.is_empty(),
    }
}

fn change_list(mut list: Vec<Bytes>, write: &Write) -> Result<Vec<Bytes>, Refusal> {
    match write {
        Write::LPush(new) => new.iter().for_each(|element| list.insert(0, element.clone())),
        Write::RPush(new) => list.extend(new.iter().cloned()),
        Write::LPop(count) => drop(list.drain(..list.len().min(*count))),
        Write::RPop(count) => list.truncate(list.len().saturating_sub(*count)),
        Write::LSet(at, value) => {
            let at = if *at < 0 { at.saturating_add(list.len() as i64) } else { *at };
            *usize::try_from(at).ok().and_then(|at| list.get_mut(at)).ok_or(Refusal)? = value.clone();
        }
        Write::LTrim(start, stop) => list = list[part(*start, *stop, list.len())].to_vec(),
        _ => return Err(Refusal),
    }
    Ok(list)
}
