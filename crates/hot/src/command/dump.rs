//! A key with everything that it holds: what a dump of a partition has, and the writes that make it anew.

use super::{Expiry, Kind, RawKey, Score, Write};
use crate::limits::{COMMAND_ARGUMENTS_MAX, VALUE_BYTES_MAX};
use bytes::Bytes;

/// Bytes of one write of many items: a transaction takes several such.
const DUMP_WRITE_BYTES_MAX: usize = VALUE_BYTES_MAX / 8;

/// A key with everything that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDump {
    /// The key.
    pub key: RawKey,
    /// What it holds.
    pub content: Content,
    /// When it expires, in milliseconds since 1970; `None` = never.
    pub deadline: Option<i64>,
}

/// What a key holds, in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A string.
    Text(Bytes),
    /// Fields with values, sorted by field.
    Hash(Vec<(Bytes, Bytes)>),
    /// Members, sorted.
    Set(Vec<Bytes>),
    /// Members with scores, in order.
    SortedSet(Vec<(Bytes, Score)>),
    /// Elements, from head to tail.
    List(Vec<Bytes>),
}

impl Content {
    /// The type of Redis.
    pub fn kind(&self) -> Kind {
        match self {
            Content::Text(_) => Kind::Text,
            Content::Hash(_) => Kind::Hash,
            Content::Set(_) => Kind::Set,
            Content::SortedSet(_) => Kind::SortedSet,
            Content::List(_) => Kind::List,
        }
    }

    /// Fields, members or elements; 1 for a string.
    pub fn len(&self) -> usize {
        match self {
            Content::Text(_) => 1,
            Content::Hash(fields) => fields.len(),
            Content::Set(members) | Content::List(members) => members.len(),
            Content::SortedSet(members) => members.len(),
        }
    }

    /// Whether nothing is in it. No key of an engine is like that.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of values, fields and members.
    pub fn bytes(&self) -> usize {
        match self {
            Content::Text(text) => text.len(),
            Content::Hash(fields) => fields.iter().map(|(field, value)| field.len() + value.len()).sum(),
            Content::Set(members) | Content::List(members) => members.iter().map(Bytes::len).sum(),
            Content::SortedSet(members) => members.iter().map(|(member, _)| member.len() + 8).sum(),
        }
    }
}

impl KeyDump {
    /// Bytes of the key and of what it holds.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.content.bytes()
    }

    /// The writes that make the key out of nothing, in their order; the deadline comes last, or with the string.
    pub fn writes(&self) -> Vec<Write> {
        let mut writes = match &self.content {
            Content::Text(text) => {
                return vec![Write::Set(text.clone(), self.deadline.map_or(Expiry::Never, Expiry::At))];
            }
            Content::Hash(fields) => {
                let bytes = |(field, value): &(Bytes, Bytes)| field.len() + value.len();
                in_pieces(fields, COMMAND_ARGUMENTS_MAX / 2, bytes, Write::HSet)
            }
            Content::Set(members) => in_pieces(members, COMMAND_ARGUMENTS_MAX, Bytes::len, Write::SAdd),
            Content::SortedSet(members) => {
                in_pieces(members, COMMAND_ARGUMENTS_MAX / 2, |(member, _)| member.len() + 16, Write::ZAdd)
            }
            Content::List(elements) => in_pieces(elements, COMMAND_ARGUMENTS_MAX, Bytes::len, Write::RPush),
        };
        writes.extend(self.deadline.map(Write::ExpireAt));
        writes
    }
}

/// Writes of so many items and of [`DUMP_WRITE_BYTES_MAX`] at most; a larger item has one of its own.
fn in_pieces<T: Clone>(
    items: &[T],
    most: usize,
    bytes_of: impl Fn(&T) -> usize,
    write: impl Fn(Vec<T>) -> Write,
) -> Vec<Write> {
    let (mut writes, mut piece, mut bytes) = (Vec::new(), Vec::new(), 0);
    for item in items {
        let more = bytes_of(item);
        if piece.len() == most || (bytes + more > DUMP_WRITE_BYTES_MAX && !piece.is_empty()) {
            writes.push(write(std::mem::take(&mut piece)));
            bytes = 0;
        }
        bytes += more;
        piece.push(item.clone());
    }
    if !piece.is_empty() {
        writes.push(write(piece));
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_content_is_written_in_pieces_and_the_deadline_comes_last() {
        let members: Vec<Bytes> = (0..2_500u32).map(|n| n.to_string().into()).collect();
        let dump = KeyDump { key: "k".into(), content: Content::Set(members), deadline: Some(7) };
        let sizes: Vec<usize> = dump
            .writes()
            .iter()
            .map(|write| match write {
                Write::SAdd(members) => members.len(),
                Write::ExpireAt(7) => 0,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sizes, [1_000, 1_000, 500, 0]);
        let text = KeyDump { key: "k".into(), content: Content::Text("v".into()), deadline: Some(7) };
        assert_eq!(text.writes(), [Write::Set("v".into(), Expiry::At(7))]);
    }

    #[test]
    fn large_content_is_written_in_pieces_by_bytes() {
        let value = Bytes::from(vec![b'v'; 40 * 1024]);
        let mut fields: Vec<(Bytes, Bytes)> =
            (0..500u32).map(|n| (n.to_string().into(), value.clone())).collect();
        fields.push(("one".into(), vec![b'v'; 2 * DUMP_WRITE_BYTES_MAX].into()));
        let dump = KeyDump { key: "k".into(), content: Content::Hash(fields.clone()), deadline: None };
        let mut written = Vec::new();
        for write in dump.writes() {
            let Write::HSet(piece) = &write else { panic!("{write:?}") };
            assert!(write.bytes() <= DUMP_WRITE_BYTES_MAX || piece.len() == 1, "{}", write.bytes());
            written.extend(piece.iter().cloned());
        }
        assert_eq!(written, fields, "in their order, each once");
    }
}
