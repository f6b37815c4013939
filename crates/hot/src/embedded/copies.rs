//! The keyspace at one moment, copied while transactions continue: for the journal's rewrite and for dumps.
//!
//! Algorithm (copy on write): at the cut, under all locks, every shard gets a new number. Then each shard is walked
//! from its end to its beginning; an entry with another number than the shard's is copied and gets the number. A
//! writer that changes or removes such an entry copies it first. A new entry gets the number at once. So each entry
//! is copied once, as it was at the cut. One rewrite or dump runs at a time: they share the numbers.
//!
//! Budget: the cut sets a number in each shard. After it a lock covers at most [`SWEEP_SLOTS_PER_LOCK`] entries or
//! [`BYTES_PER_LOCK`], but at least one entry. Copies of writers wait in memory until the walk comes to their shard.

use super::Inner;
use super::locks::Locked;
use super::shard::Shard;
use super::slab::{Entry, NEVER};
use super::value::{Collection, Value, copy};
use crate::command::{Content, KeyDump};
use crate::engine::KeyFilter;
use crate::limits::SWEEP_SLOTS_PER_LOCK;

/// Bytes that are copied while one lock is held.
const BYTES_PER_LOCK: usize = 256 * 1024;

/// Entries as they were at the cut, copied by writers before a change.
#[derive(Default)]
pub(super) struct PendingCopies {
    dumps: Vec<KeyDump>,
    /// The keys that are copied; `None` = all.
    chosen: Option<KeyFilter>,
}

impl std::fmt::Debug for PendingCopies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PendingCopies").field(&self.dumps.len()).finish()
    }
}

impl PendingCopies {
    /// Copies an entry before its first change after the cut.
    pub(super) fn keep(&mut self, entry: &Entry) {
        if self.chooses(entry) {
            self.dumps.push(dump_of(entry));
        }
    }

    pub(super) fn fetch(&mut self) -> Vec<KeyDump> {
        std::mem::take(&mut self.dumps)
    }

    fn chooses(&self, entry: &Entry) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen(&entry.key).is_some())
    }
}

/// The cut: from here on writers copy what they change. All shards are locked.
pub(super) fn begin(locked: &mut Locked<'_>, chosen: Option<KeyFilter>) {
    for shard in locked.shards() {
        shard.epoch = shard.epoch.wrapping_add(1);
        shard.pending_copies = Some(PendingCopies { dumps: Vec::new(), chosen: chosen.clone() });
    }
}

/// Ends copying when it is dropped: copies that are never fetched must not pile up.
pub(super) struct EndCopies<'a>(pub(super) &'a Inner);

impl Drop for EndCopies<'_> {
    fn drop(&mut self) {
        self.0.shards.iter().for_each(|shard| shard.lock().pending_copies = None);
    }
}

/// Copies some entries that live at `now`, and fetches what writers copied. At the beginning of the shard the walk is
/// through with it, and writers need not copy any more.
pub(super) fn walk(shard: &mut Shard, from: &mut usize, now: i64) -> Vec<KeyDump> {
    let end = shard.len().min(*from);
    let Some(mut pending) = shard.pending_copies.take() else {
        *from = 0;
        return Vec::new();
    };
    let mut copied = pending.fetch();
    let mut bytes = 0;
    *from = end;
    while *from > 0 && end - *from < SWEEP_SLOTS_PER_LOCK && bytes < BYTES_PER_LOCK {
        *from -= 1;
        if shard.mark_saved(*from) && !shard.at(*from).is_expired(now) && pending.chooses(shard.at(*from)) {
            let entry = shard.at(*from);
            bytes += entry.value.bytes();
            copied.push(dump_of(entry));
        }
    }
    if *from > 0 {
        shard.pending_copies = Some(pending);
    }
    copied
}

/// An entry as plain data.
pub(super) fn dump_of(entry: &Entry) -> KeyDump {
    let deadline = (entry.deadline != NEVER).then_some(entry.deadline);
    KeyDump { key: copy(&entry.key), content: content_of(&entry.value), deadline }
}

fn content_of(value: &Value) -> Content {
    let members = match value {
        Value::Text(text) => return Content::Text(copy(text)),
        Value::Many(collection) => &**collection,
    };
    match members {
        Collection::Hash(fields) => {
            Content::Hash(fields.map.iter().map(|(field, value)| (copy(field), copy(value))).collect())
        }
        Collection::Set(members) => Content::Set(members.set.iter().map(|member| copy(member)).collect()),
        Collection::SortedSet(scores) => Content::SortedSet(
            scores.order.ascending(0).map(|(score, member)| (copy(member), *score)).collect(),
        ),
        Collection::List(elements) => {
            Content::List(elements.list.iter().map(|element| copy(element)).collect())
        }
    }
}
