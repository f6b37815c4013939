//! The five data types. A string is one allocation of its exact length; the others are behind one pointer,
//! so that an entry stays small: most keys are strings.
//!
//! Hashes and sets are trees: replies are sorted anyway, and a tree never pauses to move a million members
//! into a larger table while a shard is locked. Every collection counts its bytes as it changes.

use super::sorted_blocks::SortedBlocks;
use crate::command::{Kind, Score};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a node of a tree and the allocations of a field and its value cost beside their bytes.
const FIELD_OVERHEAD_BYTES: usize = 64;
/// The same for a member of a set or an element of a list.
const MEMBER_OVERHEAD_BYTES: usize = 32;
/// The same for a member of a sorted set, which stands in a map and in the order.
const SCORED_OVERHEAD_BYTES: usize = 72;

/// The value of a key.
#[derive(Debug)]
pub(super) enum Value {
    /// The bytes of a string.
    Text(Box<[u8]>),
    /// A hash, set, sorted set or list.
    Many(Box<Collection>),
}

/// The kinds with members. Never empty between two writes.
#[derive(Debug)]
pub(super) enum Collection {
    Hash(Fields),
    Set(Members),
    SortedSet(Scores),
    List(Elements),
}

/// Fields of a hash.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) map: BTreeMap<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
}

/// Members of a set.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) set: BTreeSet<Box<[u8]>>,
    bytes: usize,
}

/// Members of a sorted set.
#[derive(Debug, Default)]
pub(super) struct Scores {
    pub(super) of: BTreeMap<Arc<[u8]>, Score>,
    pub(super) order: SortedBlocks,
    bytes: usize,
}

/// Elements of a list.
#[derive(Debug, Default)]
pub(super) struct Elements {
    pub(super) list: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Value {
    /// The type that `TYPE` would answer.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Value::Text(_) => Kind::Text,
            Value::Many(collection) => collection.kind(),
        }
    }

    /// The elements, if it is a list.
    pub(super) fn list(&self) -> Option<&VecDeque<Box<[u8]>>> {
        match self {
            Value::Many(collection) => match &**collection {
                Collection::List(elements) => Some(&elements.list),
                _ => None,
            },
            Value::Text(_) => None,
        }
    }

    /// Bytes in use, without the entry itself.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Many(collection) => collection.bytes(),
        }
    }
}

impl Collection {
    /// One without members. `None` for strings.
    pub(super) fn empty(kind: Kind) -> Option<Collection> {
        match kind {
            Kind::Text => None,
            Kind::Hash => Some(Collection::Hash(Fields::default())),
            Kind::Set => Some(Collection::Set(Members::default())),
            Kind::SortedSet => Some(Collection::SortedSet(Scores::default())),
            Kind::List => Some(Collection::List(Elements::default())),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Collection::Hash(_) => Kind::Hash,
            Collection::Set(_) => Kind::Set,
            Collection::SortedSet(_) => Kind::SortedSet,
            Collection::List(_) => Kind::List,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Collection::Hash(fields) => fields.map.len(),
            Collection::Set(members) => members.set.len(),
            Collection::SortedSet(scores) => scores.order.len(),
            Collection::List(elements) => elements.list.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Collection::Hash(fields) => fields.bytes,
            Collection::Set(members) => members.bytes,
            Collection::SortedSet(scores) => scores.bytes,
            Collection::List(elements) => elements.bytes,
        }
    }
}

impl Fields {
    pub(super) fn insert(&mut self, field: &[u8], value: &[u8]) {
        self.bytes += value.len();
        match self.map.get_mut(field) {
            Some(held) => self.bytes -= std::mem::replace(held, value.into()).len(),
            None => {
                self.bytes += field.len() + FIELD_OVERHEAD_BYTES;
                self.map.insert(field.into(), value.into());
            }
        }
    }

    pub(super) fn remove(&mut self, field: &[u8]) {
        if let Some(value) = self.map.remove(field) {
            self.bytes -= field.len() + value.len() + FIELD_OVERHEAD_BYTES;
        }
    }
}

impl Members {
    pub(super) fn insert(&mut self, member: &[u8]) {
        if !self.set.contains(member) {
            self.set.insert(member.into());
            self.bytes += member.len() + MEMBER_OVERHEAD_BYTES;
        }
    }

    pub(super) fn remove(&mut self, member: &[u8]) {
        if self.set.remove(member) {
            self.bytes -= member.len() + MEMBER_OVERHEAD_BYTES;
        }
    }
}

impl Scores {
    pub(super) fn insert(&mut self, member: &[u8], score: Score) {
        let Some(before) = self.of.get(member).copied() else {
            let shared: Arc<[u8]> = member.into();
            self.of.insert(shared.clone(), score);
            self.order.insert((score, shared));
            self.bytes += member.len() + SCORED_OVERHEAD_BYTES;
            return;
        };
        if before == score {
            return;
        }
        // The map's own copy of the member goes to the new place, so that the bytes stay shared.
        if let Some((shared, _)) = self.of.remove_entry(member) {
            let old = (before, shared);
            self.order.remove(&old);
            self.of.insert(old.1.clone(), score);
            self.order.insert((score, old.1));
        }
    }

    pub(super) fn remove(&mut self, member: &[u8]) {
        if let Some((shared, score)) = self.of.remove_entry(member) {
            self.order.remove(&(score, shared));
            self.bytes -= member.len() + SCORED_OVERHEAD_BYTES;
        }
    }
}

impl Elements {
    pub(super) fn push_front(&mut self, element: &[u8]) {
        self.bytes += element.len() + MEMBER_OVERHEAD_BYTES;
        self.list.push_front(element.into());
    }

    pub(super) fn push_back(&mut self, element: &[u8]) {
        self.bytes += element.len() + MEMBER_OVERHEAD_BYTES;
        self.list.push_back(element.into());
    }

    pub(super) fn replace(&mut self, at: usize, element: &[u8]) {
        self.bytes += element.len();
        self.bytes -= std::mem::replace(&mut self.list[at], element.into()).len();
    }

    pub(super) fn pop_front(&mut self, count: usize) {
        for gone in self.list.drain(..count.min(self.list.len())) {
            self.bytes -= gone.len() + MEMBER_OVERHEAD_BYTES;
        }
    }

    pub(super) fn pop_back(&mut self, count: usize) {
        let keep = self.list.len().saturating_sub(count);
        for gone in self.list.drain(keep..) {
            self.bytes -= gone.len() + MEMBER_OVERHEAD_BYTES;
        }
    }
}

/// A copy for a reply.
#[inline]
pub(super) fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () =
        assert!(size_of::<Value>() == 16, "two words: a string's pointer has room for the other case");

    #[test]
    fn bytes_return_to_zero_when_everything_is_removed() {
        let mut fields = Fields::default();
        fields.insert(b"a", b"one");
        fields.insert(b"a", b"longer than one");
        fields.insert(b"b", b"");
        fields.remove(b"a");
        fields.remove(b"b");
        fields.remove(b"never there");
        assert_eq!(fields.bytes, 0);

        let mut scores = Scores::default();
        scores.insert(b"m", Score::from_i64(1));
        scores.insert(b"m", Score::from_i64(2));
        assert_eq!(scores.order.len(), 1);
        scores.remove(b"m");
        assert_eq!((scores.bytes, scores.order.len()), (0, 0));

        let mut elements = Elements::default();
        elements.push_back(b"x");
        elements.push_front(b"y");
        elements.pop_back(1);
        elements.pop_front(9);
        assert_eq!(elements.bytes, 0);
    }
}
