//! The whole keyspace as plain data, to compare one with another.

use crate::command::Score;
use crate::embedded::Inner;
use crate::embedded::locks::{ALL, Locked};
use crate::embedded::slab::{Entry, NEVER};
use crate::embedded::value::{Collection, Value, copy};
use bytes::Bytes;

/// A key with everything it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyDump {
    /// The key.
    pub(super) key: Bytes,
    /// What it holds.
    pub(super) content: Content,
    /// When it ends, in milliseconds since 1970.
    pub(super) deadline: Option<i64>,
}

/// What a key holds, in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
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

/// All live keys, sorted, at one moment.
pub(super) fn dump(inner: &Inner) -> Vec<KeyDump> {
    let mut locked = Locked::take(inner, ALL);
    let now = inner.ticker.now();
    let mut records = Vec::new();
    for shard in locked.shards() {
        let living =
            (0..shard.len()).map(|position| shard.at(position)).filter(|entry| !entry.is_expired(now));
        records.extend(living.map(record));
    }
    drop(locked);
    records.sort_by(|a, b| a.key.cmp(&b.key));
    records
}

fn record(entry: &Entry) -> KeyDump {
    let deadline = (entry.deadline != NEVER).then_some(entry.deadline);
    KeyDump { key: copy(&entry.key), content: content(&entry.value), deadline }
}

fn content(value: &Value) -> Content {
    match value {
        Value::Text(text) => Content::Text(copy(text)),
        Value::Many(collection) => match collection.as_ref() {
            Collection::Hash(fields) => {
                Content::Hash(fields.map.iter().map(|(field, value)| (copy(field), copy(value))).collect())
            }
            Collection::Set(members) => Content::Set(members.set.iter().map(|m| copy(m)).collect()),
            Collection::SortedSet(scores) => {
                Content::SortedSet(scores.order.ascending(0).map(|(score, m)| (copy(m), *score)).collect())
            }
            Collection::List(elements) => Content::List(elements.list.iter().map(|e| copy(e)).collect()),
        },
    }
}
