//! Deadlines that other writes of the same key follow in one commit.
//!
//! All writes of a key take effect before its deadline counts, which may pass on the way: the server would
//! remove the key at once, and a write after that would create one that never expires. So each deadline is
//! postponed to a mark of its own, far beyond any time. At the end, the mark that the key has shows which of
//! them counts: a condition may not have been met, or the key was removed and created again in between.

use bytes::Bytes;
use emberkeep_hot::command::{Expiry, RawKey, Write};
use emberkeep_hot::limits::DEADLINE_MS_MAX;

/// The writes of one key with their deadlines postponed, and what the marks mean.
pub(crate) struct PostponedDeadlines {
    pub(crate) writes: Vec<Write>,
    /// Mark and deadline of each.
    pub(crate) marks: Vec<(i64, i64)>,
}

/// Whether a write follows one that sets a deadline. Otherwise the order of the writes is safe as it is.
pub(crate) fn has_early_deadline(writes: &[(RawKey, Write)]) -> bool {
    let before = writes.split_last().map_or(&[][..], |(_, before)| before);
    before.iter().any(|(_, write)| write.deadline().is_some())
}

/// Postpones the deadlines of one key's writes.
pub(crate) fn postpone(writes: &[(RawKey, Write)]) -> PostponedDeadlines {
    let mut marks = vec![];
    let mut mark = |at: i64| {
        let mark = DEADLINE_MS_MAX + 1 + marks.len() as i64;
        marks.push((mark, at));
        mark
    };
    let writes = writes.iter().map(|(_, write)| match write {
        Write::ExpireAt(at) => Write::ExpireAt(mark(*at)),
        Write::ExpireAtIfNone(at) => Write::ExpireAtIfNone(mark(*at)),
        Write::Set(text, Expiry::At(at)) => Write::Set(text.clone(), Expiry::At(mark(*at))),
        Write::SetIfGreater(text, Expiry::At(at)) => Write::SetIfGreater(text.clone(), Expiry::At(mark(*at))),
        other => other.clone(),
    });
    PostponedDeadlines { writes: writes.collect(), marks }
}

/// The arguments of the command that replaces the mark of a key by its deadline. The first one makes them
/// three at least: by that the script tells it from a plain PEXPIREAT.
pub(super) fn settling_words(marks: &[(i64, i64)]) -> Vec<Bytes> {
    let number = |n: i64| Bytes::from(n.to_string());
    let pairs = marks.iter().flat_map(|(mark, at)| [number(*mark), number(*at)]);
    std::iter::once(Bytes::from_static(b"=")).chain(pairs).collect()
}
