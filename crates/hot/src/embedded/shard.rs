//! One shard: a slab of entries, a hash index over them, and counters. All of it runs under the shard's lock
//! and without a clock.
//!
//! Invariants: every entry has exactly one slot in the index; `bytes` is the sum over the entries; an entry
//! that a running rewrite has not written yet is copied for it before it changes.

use super::copies::PendingCopies;
use super::slab::{Entry, NEVER, Slab};
use super::value::Value;
use crate::limits::{SHARDS_OF_LOGS, SHARDS_OF_STATE};
use hashbrown::HashTable;

/// Tables of a shard's index. A table grows by itself, so the longest pause for growth is a sixteenth.
const TABLES: usize = 16;
/// What an entry costs beside key and value: itself, its slot at a usual load, two allocations' headers.
pub(super) const ENTRY_OVERHEAD_BYTES: usize = 48 + 12 + 16;

/// A key's hash: its shard in the upper half, and what tells entries of a shard apart in the lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyHash(pub(super) u64);

impl KeyHash {
    /// Logs have shards of their own, above all others: a transaction that appends takes their lock last, so
    /// it may wait for it (see `locks`). Which keys count as logs is only a matter of speed.
    #[inline]
    pub(super) fn new(hash: u64, is_log: bool) -> KeyHash {
        let upper = (hash >> 32) as usize;
        let shard = if is_log { SHARDS_OF_STATE + upper % SHARDS_OF_LOGS } else { upper % SHARDS_OF_STATE };
        KeyHash((shard as u64) << 32 | hash & 0xFFFF_FFFF)
    }

    /// Which shard the key lives in.
    #[inline]
    pub(super) fn shard(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Whether that is a shard of logs.
    #[inline]
    pub(super) fn is_log(self) -> bool {
        self.shard() >= SHARDS_OF_STATE
    }

    #[inline]
    fn local(self) -> u32 {
        self.0 as u32
    }
}

/// A place in the index. With the hash in it, a lookup touches no external entry and growth touches none at
/// all.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    position: u32,
}

/// Bits 20..24 choose the table: the table's buckets use the bits below, its tags the bits above.
#[inline]
fn table(hash: u32) -> usize {
    (hash >> 20) as usize % TABLES
}

/// The table wants 64 bits with entropy at both ends.
#[inline]
fn widen(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// Where the sweep stands in a shard.
#[derive(Debug)]
pub(super) struct ExpiryScan {
    /// Positions below this are still to be looked at; 0 = the next look begins at the end.
    pub(super) from: usize,
    /// No entry ends before this.
    pub(super) soonest: i64,
    /// What `soonest` will be when this pass is through.
    pub(super) soonest_next: i64,
}

impl Default for ExpiryScan {
    fn default() -> ExpiryScan {
        ExpiryScan { from: 0, soonest: NEVER, soonest_next: NEVER }
    }
}

impl ExpiryScan {
    /// There is an entry that ends then.
    #[inline]
    pub(super) fn note(&mut self, deadline: i64) {
        self.soonest = self.soonest.min(deadline);
        self.soonest_next = self.soonest_next.min(deadline);
    }
}

/// A part of the keyspace behind one lock: entries, and the index that finds them by hash.
#[derive(Debug, Default)]
pub(super) struct Shard {
    entries: Slab,
    index: [HashTable<Slot>; TABLES],
    bytes: usize,
    /// How far the sweep has come.
    pub(super) sweep: ExpiryScan,
    /// Transactions whose first lock was this shard's.
    pub(super) committed: u64,
    /// Expired entries that the sweep or a write removed.
    pub(super) expired: u64,
    /// Copies for a running rewrite of the journal, or for a dump.
    pub(super) pending_copies: Option<PendingCopies>,
    /// The number of the last rewrite or dump. An entry with another number is not in it.
    pub(super) epoch: u32,
}

impl Shard {
    /// Number of entries, including expired ones that are not removed yet.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of keys, values and their overhead.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where the key's entry is.
    #[inline]
    pub(super) fn find(&self, hashed: KeyHash, key: &[u8]) -> Option<usize> {
        let hash = hashed.local();
        let same = |slot: &Slot| slot.hash == hash && *self.entries.get(slot.position as usize).key == *key;
        self.index[table(hash)].find(widen(hash), same).map(|slot| slot.position as usize)
    }

    /// The entry at a position below [`Shard::len`].
    #[inline]
    pub(super) fn at(&self, position: usize) -> &Entry {
        self.entries.get(position)
    }

    /// The entry of a key, also if it has expired and is not removed yet.
    #[inline]
    pub(super) fn entry(&self, hashed: KeyHash, key: &[u8]) -> Option<&Entry> {
        self.find(hashed, key).map(|position| self.entries.get(position))
    }

    /// Adds a key that is not there. Answers its position.
    pub(super) fn insert(&mut self, hashed: KeyHash, key: &[u8], value: Value, deadline: i64) -> usize {
        let hash = hashed.local();
        self.bytes += ENTRY_OVERHEAD_BYTES + key.len() + value.bytes();
        // What is made after the cut of a rewrite is not part of it.
        let entry = Entry { key: key.into(), value, deadline, hash, saved: self.epoch };
        self.sweep.note(deadline);
        let position = self.entries.push(entry);
        let slot = Slot {
            hash,
            position: u32::try_from(position).expect("4 billion keys of a shard exceed memory"),
        };
        self.index[table(hash)].insert_unique(widen(hash), slot, |slot| widen(slot.hash));
        position
    }

    /// Lets `change` have the entry, and counts its bytes anew.
    #[inline]
    pub(super) fn change<R>(&mut self, position: usize, change: impl FnOnce(&mut Entry) -> R) -> R {
        self.set_aside(position);
        let entry = self.entries.get_mut(position);
        let before = entry.value.bytes();
        let result = change(entry);
        self.sweep.note(entry.deadline);
        self.bytes = self.bytes + entry.value.bytes() - before;
        result
    }

    /// Removes the entry at a position; the last one takes its place.
    pub(super) fn remove(&mut self, position: usize) -> Entry {
        self.set_aside(position);
        self.forget(position)
    }

    /// Removes an entry that has ended: a rewrite has no use for it.
    pub(super) fn remove_expired(&mut self, position: usize) -> Entry {
        self.expired += 1;
        self.forget(position)
    }

    fn forget(&mut self, position: usize) -> Entry {
        let last = self.entries.len() - 1;
        let moved = self.entries.get(last).hash;
        let entry = self.entries.swap_remove(position);
        self.unlink(entry.hash, position);
        if position != last {
            let slot = self.index[table(moved)].find_mut(widen(moved), |slot| slot.position as usize == last);
            slot.expect("every entry has a slot").position = position as u32;
        }
        self.bytes -= Shard::bytes_of(&entry);
        entry
    }

    /// What an entry counts for.
    pub(super) fn bytes_of(entry: &Entry) -> usize {
        ENTRY_OVERHEAD_BYTES + entry.key.len() + entry.value.bytes()
    }

    fn unlink(&mut self, hash: u32, position: usize) {
        let at = |slot: &Slot| slot.position as usize == position;
        if let Ok(slot) = self.index[table(hash)].find_entry(widen(hash), at) {
            slot.remove();
        }
    }

    /// Copies an entry for the running rewrite, unless it has it.
    #[inline]
    fn set_aside(&mut self, position: usize) {
        if let Some(pending_copies) = &mut self.pending_copies {
            let entry = self.entries.get_mut(position);
            if entry.saved != self.epoch {
                entry.saved = self.epoch;
                pending_copies.keep(entry);
            }
        }
    }

    /// Marks an entry as saved; `false` if it was.
    pub(super) fn mark_saved(&mut self, position: usize) -> bool {
        let entry = self.entries.get_mut(position);
        std::mem::replace(&mut entry.saved, self.epoch) != self.epoch
    }

    /// The living entry of a key at a moment. `now` is asked only if the entry has a deadline.
    #[inline]
    pub(super) fn living(&self, hashed: KeyHash, key: &[u8], now: impl FnOnce() -> i64) -> Option<&Entry> {
        self.entry(hashed, key).filter(|entry| entry.deadline == NEVER || !entry.is_expired(now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn hashed(key: &[u8]) -> KeyHash {
        // A poor hash on purpose: many keys share it.
        KeyHash(key.iter().map(|byte| u64::from(*byte)).sum::<u64>() % 37 * 0x0010_0001)
    }

    #[test]
    fn colliding_keys_stay_distinct_through_inserts_and_removals() {
        let mut shard = Shard::default();
        let mut model: HashMap<Vec<u8>, usize> = HashMap::new();
        for n in 0..2_000usize {
            let key = format!("key-{}", n * 7 % 500).into_bytes();
            let hashed = hashed(&key);
            match shard.find(hashed, &key) {
                Some(position) if n % 3 == 0 => {
                    assert_eq!(*shard.remove(position).key, *key);
                    model.remove(&key);
                }
                Some(position) => {
                    shard.change(position, |entry| entry.value = Value::Text(vec![0; n % 50].into()));
                    model.insert(key, n % 50);
                }
                None => {
                    shard.insert(hashed, &key, Value::Text(vec![0; n % 70].into()), NEVER);
                    model.insert(key, n % 70);
                }
            }
        }
        assert_eq!(shard.len(), model.len());
        for (key, len) in &model {
            assert_eq!(shard.entry(hashed(key), key).unwrap().value.bytes(), *len);
        }
        let bytes: usize = model.iter().map(|(key, len)| ENTRY_OVERHEAD_BYTES + key.len() + len).sum();
        assert_eq!(shard.bytes(), bytes);
    }
}
