//! The journal's rewrite: a snapshot of the keyspace at one moment, taken while transactions continue.
//!
//! Algorithm (copy on write): the cut is made under all locks. The journal switches to a new file and every
//! shard gets a new number. Then each shard is scanned from its end to its beginning; an entry with another
//! number than the shard's is written to the base and gets the number. A writer that changes or removes such
//! an entry copies it first. A new entry gets the number at once. So each entry is written once, as it was
//! at the cut. Expired entries are left out: a later write of such a key begins with a DEL or replaces the
//! value.
//!
//! Budget: the cut sets a number in each shard. After it a lock covers at most [`SWEEP_SLOTS_PER_LOCK`] entries or
//! [`BYTES_PER_LOCK`], but at least one entry. Every [`SWEEP_PAUSE`] the scan pauses for an expiry sweep,
//! which runs on the same thread, and writes out all copies, which wait in memory.

use super::Inner;
use super::expire;
use super::locks::{ALL, Locked};
use super::shard::Shard;
use super::slab::{Entry, NEVER};
use super::value::{Collection, Value, copy};
use crate::command::{Expiry, Write};
use crate::error::{Error, Result};
use crate::journal::{Journal, Rewrite};
use crate::limits::{COMMAND_ARGUMENTS_MAX, SHARDS, SWEEP_BUDGET, SWEEP_PAUSE, SWEEP_SLOTS_PER_LOCK};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes that are copied while one lock is held.
const BYTES_PER_LOCK: usize = 256 * 1024;

/// Key and writes of an entry.
type EntryCopy = (Box<[u8]>, Vec<Write>);

/// Entries as they were at the cut, copied by writers before a change.
#[derive(Debug, Default)]
pub(super) struct PendingCopies {
    kept: Vec<EntryCopy>,
}

impl PendingCopies {
    /// Copies an entry before its first change after the cut.
    pub(super) fn keep(&mut self, entry: &Entry) {
        self.kept.push((entry.key.clone(), writes_of(entry)));
    }

    fn fetch(&mut self) -> Vec<EntryCopy> {
        std::mem::take(&mut self.kept)
    }
}

/// Replaces the journal's history by the state of this moment.
pub(super) fn rewrite(inner: &Inner) -> Result<()> {
    let Some(journal) = inner.journal() else { return Ok(()) };
    // Before the cut, so that it is dropped last: however the walk ends, by a panic too.
    let _copies = CopyGuard(inner);
    let mut snapshot = Snapshot { inner, base: cut(inner, journal)?, rested: Instant::now() };
    (0..SHARDS).try_for_each(|index| snapshot.save_shard(index))?;
    snapshot.base.finish()
}

/// Ends copying when it is dropped: copies that are never fetched must not pile up.
struct CopyGuard<'a>(&'a Inner);

impl Drop for CopyGuard<'_> {
    fn drop(&mut self) {
        self.0.shards.iter().for_each(|shard| shard.lock().pending_copies = None);
    }
}

/// The moment that the snapshot shows.
fn cut(inner: &Inner, journal: &Journal) -> Result<Rewrite> {
    // Its files are made before the locks are taken: that takes some syncs.
    let prepared = journal.prepare_rewrite()?;
    let mut locked = Locked::take(inner, ALL);
    let base = prepared.cut()?;
    for shard in locked.shards() {
        shard.epoch = shard.epoch.wrapping_add(1);
        shard.pending_copies = Some(PendingCopies::default());
    }
    Ok(base)
}

/// A snapshot in the making.
struct Snapshot<'a> {
    inner: &'a Inner,
    base: Rewrite,
    /// When it last gave way to the sweep.
    rested: Instant,
}

impl Snapshot<'_> {
    fn save_shard(&mut self, index: usize) -> Result<()> {
        let mut from = usize::MAX;
        while from > 0 {
            let copied = walk(&mut self.inner.shards[index].lock(), &mut from, self.inner.ticker.now());
            self.write_out(copied)?;
            if self.rested.elapsed() >= SWEEP_PAUSE {
                self.rest()?;
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<()> {
        if self.inner.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        expire::cycle(self.inner, SWEEP_BUDGET);
        for shard in &self.inner.shards {
            let copied = shard.lock().pending_copies.as_mut().map(PendingCopies::fetch);
            self.write_out(copied.unwrap_or_default())?;
        }
        self.rested = Instant::now();
        Ok(())
    }

    fn write_out(&mut self, copied: Vec<EntryCopy>) -> Result<()> {
        copied.iter().try_for_each(|(key, writes)| self.base.write(key, writes))
    }
}

/// Copies some entries, and fetches what writers copied. At the beginning of the shard the rewrite is through
/// with it, and writers need not copy any more.
fn walk(shard: &mut Shard, from: &mut usize, now: i64) -> Vec<EntryCopy> {
    let end = shard.len().min(*from);
    let mut copied = shard.pending_copies.as_mut().map(PendingCopies::fetch).unwrap_or_default();
    let mut bytes = 0;
    *from = end;
    while *from > 0 && end - *from < SWEEP_SLOTS_PER_LOCK && bytes < BYTES_PER_LOCK {
        *from -= 1;
        if shard.mark_saved(*from) && !shard.at(*from).is_expired(now) {
            let entry = shard.at(*from);
            bytes += entry.value.bytes();
            copied.push((entry.key.clone(), writes_of(entry)));
        }
    }
    if *from == 0 {
        shard.pending_copies = None;
    }
    copied
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
