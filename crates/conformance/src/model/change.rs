//! What a typed write makes of a key.

use super::{Entry, Refused, integer, part};
use crate::external::Held;
use bytes::Bytes;
use emberkeep_hot::command::{Kind, Write};

/// The key after the write; `None` if nothing is left.
pub(super) fn change(before: Option<Entry>, write: &Write) -> Result<Option<Entry>, Refused> {
    let kind = write.kind().expect("writes without a type are made elsewhere");
    let entry = before.unwrap_or_else(|| Entry { held: empty(kind), deadline: None });
    let held = match (entry.held, write) {
        (Held::Text(text), Write::IncrBy(by)) => {
            // Only an absent key gets here with an empty string of ours; a stored one is no number.
            let number = if text == EMPTY_NUMBER { 0 } else { integer(&text).ok_or(Refused)? };
            Held::Text(number.checked_add(*by).ok_or(Refused)?.to_string().into())
        }
        (Held::Hash(mut hash), Write::HSet(pairs)) => {
            hash.extend(pairs.iter().cloned());
            Held::Hash(hash)
        }
        (Held::Hash(mut hash), Write::HDel(gone)) => {
            hash.retain(|field, _| !gone.contains(field));
            Held::Hash(hash)
        }
        (Held::Set(mut set), Write::SAdd(new)) => {
            set.extend(new.iter().cloned());
            Held::Set(set)
        }
        (Held::Set(mut set), Write::SRem(gone)) => {
            set.retain(|member| !gone.contains(member));
            Held::Set(set)
        }
        (Held::SortedSet(mut scores), Write::ZAdd(pairs)) => {
            scores.extend(pairs.iter().cloned());
            Held::SortedSet(scores)
        }
        (Held::SortedSet(mut scores), Write::ZRem(gone)) => {
            scores.retain(|member, _| !gone.contains(member));
            Held::SortedSet(scores)
        }
        (Held::List(list), write) => Held::List(change_list(list, write)?),
        _ => return Err(Refused),
    };
    Ok((!is_empty(&held)).then_some(Entry { held, deadline: entry.deadline }))
}

/// Stands for the number of an absent key; no case stores it.
const EMPTY_NUMBER: &[u8] = b"\0absent";

fn empty(kind: Kind) -> Held {
    match kind {
        Kind::Text => Held::Text(Bytes::from_static(EMPTY_NUMBER)),
        Kind::Hash => Held::Hash(Default::default()),
        Kind::Set => Held::Set(Default::default()),
        Kind::SortedSet => Held::SortedSet(Default::default()),
        Kind::List => Held::List(Default::default()),
    }
}

fn is_empty(held: &Held) -> bool {
    match held {
        Held::Text(_) => false,
        Held::Hash(hash) => hash.is_empty(),
        Held::Set(set) => set.is_empty(),
        Held::SortedSet(scores) => scores.is_empty(),
        Held::List(list) => list.is_empty(),
    }
}

fn change_list(mut list: Vec<Bytes>, write: &Write) -> Result<Vec<Bytes>, Refused> {
    match write {
        Write::LPush(new) => new.iter().for_each(|element| list.insert(0, element.clone())),
        Write::RPush(new) => list.extend(new.iter().cloned()),
        Write::LPop(count) => drop(list.drain(..list.len().min(*count))),
        Write::RPop(count) => list.truncate(list.len().saturating_sub(*count)),
        Write::LTrim(start, stop) => list = list[part(*start, *stop, list.len())].to_vec(),
        _ => return Err(Refused),
    }
    Ok(list)
}
