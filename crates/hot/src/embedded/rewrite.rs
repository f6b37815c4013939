//! The journal's rewrite: a snapshot of the keyspace at one moment, taken while everybody goes on writing.

use super::entries::{Entry, NEVER};
use super::value::{Collection, Value, copy};
use crate::command::{Expiry, Write};
use crate::limits::COMMAND_ARGUMENTS_MAX;

/// Entries as they were at the cut, copied by writers before they changed them.
#[derive(Debug, Default)]
pub(super) struct Aside {
    pub(super) kept: Vec<(Box<[u8]>, Vec<Write>)>,
}

impl Aside {
    /// Copies an entry.
    pub(super) fn keep(&mut self, entry: &Entry) {
        self.kept.push((entry.key.clone(), writes_of(entry)));
    }
}

/// The writes that make an entry out of nothing.
pub(super) fn writes_of(entry: &Entry) -> Vec<Write> {
    let mut writes = match &entry.value {
        Value::Text(text) => {
            let expiry = if entry.deadline == NEVER { Expiry::Never } else { Expiry::At(entry.deadline) };
            return vec![Write::Set(copy(text), expiry)];
        }
        Value::Many(collection) => writes_of_members(collection),
    };
    if entry.deadline != NEVER {
        writes.push(Write::ExpireAt(entry.deadline));
    }
    writes
}

fn writes_of_members(collection: &Collection) -> Vec<Write> {
    match collection {
        Collection::Hash(fields) => {
            let pairs = fields.map.iter().map(|(field, value)| (copy(field), copy(value)));
            in_pieces(pairs, COMMAND_ARGUMENTS_MAX / 2, Write::HSet)
        }
        Collection::Set(members) => {
            in_pieces(members.set.iter().map(|m| copy(m)), COMMAND_ARGUMENTS_MAX, Write::SAdd)
        }
        Collection::SortedSet(scores) => {
            let pairs = scores.order.ascending(0).map(|(score, member)| (copy(member), *score));
            in_pieces(pairs, COMMAND_ARGUMENTS_MAX / 2, Write::ZAdd)
        }
        Collection::List(elements) => {
            in_pieces(elements.list.iter().map(|e| copy(e)), COMMAND_ARGUMENTS_MAX, Write::RPush)
        }
    }
}

fn in_pieces<T>(items: impl Iterator<Item = T>, most: usize, write: impl Fn(Vec<T>) -> Write) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut items = items.peekable();
    while items.peek().is_some() {
        writes.push(write(items.by_ref().take(most).collect()));
    }
    writes
}
