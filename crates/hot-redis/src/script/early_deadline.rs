//! Deadlines that other writes of the same key follow in one commit.

use emberkeep_hot::command::{Expiry, RawKey, Write};
use emberkeep_hot::limits::DEADLINE_MS_MAX;

/// The deadline that must be set again after the last of one key's writes: others follow the write that set
/// it, and the key may be absent in between. `None` = the order of the writes is safe as it is.
pub(crate) fn early_deadline(writes: &[(RawKey, Write)]) -> Option<i64> {
    let (_, before) = writes.split_last()?;
    let after = writes.last().is_some_and(|(_, write)| matches!(write, Write::ExpireAt(_)));
    let deadline = |(_, write): &(RawKey, Write)| match write {
        Write::ExpireAt(at) | Write::Set(_, Expiry::At(at)) => Some(*at),
        _ => None,
    };
    let early = before.iter().rev().find_map(deadline)?;
    Some(if after { deadline(writes.last()?)? } else { early })
}

/// The same write with a deadline that cannot pass before the true one is set at the end.
pub(crate) fn postponed(write: &Write) -> Write {
    match write {
        Write::ExpireAt(_) => Write::ExpireAt(DEADLINE_MS_MAX),
        Write::Set(text, Expiry::At(_)) => Write::Set(text.clone(), Expiry::At(DEADLINE_MS_MAX)),
        other => other.clone(),
    }
}
