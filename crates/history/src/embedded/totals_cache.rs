//! Rows of totals in memory: those that folds have changed since they were last written, and others that were read.
//!
//! A row is the sums of one key from one source. Rows of a key form a chain, so that a reader finds all its sources.

use foldhash::fast::FixedState;
use std::collections::{HashMap, HashSet};

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// What a row has besides its sums.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowHead {
    pub(super) position: i64,
    pub(super) updated: i64,
    pub(super) source: u32,
    /// Changed since it was last written to the keyspace.
    pub(super) is_dirty: bool,
    next: u32,
}

/// Rows of totals in memory.
#[derive(Debug, Default)]
pub(super) struct TotalsCache {
    width: usize,
    first_of_key: HashMap<Box<[u8]>, u32, FixedState>,
    heads: Vec<RowHead>,
    /// The sums of all rows behind each other.
    sums: Vec<i64>,
    sources: Vec<String>,
    /// Sources that take no more entries.
    pub(super) closed: HashSet<String>,
    /// Whether a source was closed since the last pass of merging began.
    pub(super) is_newly_closed: bool,
    /// What rows were before the changes that are not committed yet, the last one last.
    undo_heads: Vec<(u32, RowHead)>,
    undo_sums: Vec<i64>,
    /// Numbers of the log's records, the next one and the first one that is needed.
    pub(super) next_record: u64,
    pub(super) first_record: u64,
    /// Bytes of those records.
    pub(super) log_bytes: usize,
}

impl TotalsCache {
    pub(super) fn new(width: usize) -> TotalsCache {
        TotalsCache { width, ..TotalsCache::default() }
    }

    pub(super) fn rows(&self) -> usize {
        self.heads.len()
    }

    /// The number of a source.
    pub(super) fn source(&mut self, name: &str) -> u32 {
        let known = self.sources.iter().rposition(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.sources.push(name.to_owned());
            self.sources.len() - 1
        });
        number as u32
    }

    pub(super) fn source_name(&self, number: u32) -> &str {
        &self.sources[number as usize]
    }

    /// The row of a key and source.
    pub(super) fn find(&self, key: &[u8], source: u32) -> Option<u32> {
        self.slots(key).find(|slot| self.head(*slot).source == source)
    }

    /// The rows of a key.
    pub(super) fn slots(&self, key: &[u8]) -> impl Iterator<Item = u32> {
        let first = self.first_of_key.get(key).copied();
        std::iter::successors(first, |slot| Some(self.head(*slot).next).filter(|next| *next != NONE))
    }

    /// All rows: key and number.
    pub(super) fn all(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.first_of_key.keys().flat_map(|key| self.slots(key).map(|slot| (&**key, slot)))
    }

    pub(super) fn head(&self, slot: u32) -> &RowHead {
        &self.heads[slot as usize]
    }

    pub(super) fn sums(&self, slot: u32) -> &[i64] {
        let start = slot as usize * self.width;
        &self.sums[start..start + self.width]
    }

    /// Adds a row as it is stored.
    pub(super) fn insert(
        &mut self,
        key: &[u8],
        source: u32,
        position: i64,
        updated: i64,
        sums: &[i64],
    ) -> u32 {
        let slot = self.heads.len() as u32;
        let next = match self.first_of_key.get_mut(key) {
            Some(first) => std::mem::replace(first, slot),
            None => {
                self.first_of_key.insert(key.into(), slot);
                NONE
            }
        };
        self.heads.push(RowHead { position, updated, source, is_dirty: false, next });
        self.sums.extend_from_slice(sums);
        slot
    }

    /// Adds an amount at a position. The error is the place of a sum that would leave 64 bits.
    pub(super) fn add(
        &mut self,
        slot: u32,
        position: i64,
        at_ms: i64,
        amounts: impl Iterator<Item = (usize, i64)>,
    ) -> Result<(), usize> {
        let start = slot as usize * self.width;
        self.undo_heads.push((slot, self.heads[slot as usize]));
        self.undo_sums.extend_from_slice(&self.sums[start..start + self.width]);
        let head = &mut self.heads[slot as usize];
        (head.position, head.updated, head.is_dirty) = (position, head.updated.max(at_ms), true);
        for (place, amount) in amounts {
            let sum = &mut self.sums[start + place];
            *sum = sum.checked_add(amount).ok_or(place)?;
        }
        Ok(())
    }

    /// How many changes are not committed yet.
    pub(super) fn uncommitted(&self) -> usize {
        self.undo_heads.len()
    }

    /// Takes back all changes but the first so many.
    pub(super) fn undo(&mut self, keep: usize) {
        while self.undo_heads.len() > keep {
            let Some((slot, head)) = self.undo_heads.pop() else { return };
            // A row that was added to the chain since then stays in it.
            let next = self.heads[slot as usize].next;
            self.heads[slot as usize] = RowHead { next, ..head };
            let (start, from) = (slot as usize * self.width, self.undo_sums.len() - self.width);
            self.sums[start..start + self.width].copy_from_slice(&self.undo_sums[from..]);
            self.undo_sums.truncate(from);
        }
    }

    /// All changes are committed.
    pub(super) fn committed(&mut self) {
        self.undo_heads.clear();
        self.undo_sums.clear();
    }

    /// All rows are written.
    pub(super) fn written(&mut self) {
        self.heads.iter_mut().for_each(|head| head.is_dirty = false);
        (self.first_record, self.log_bytes) = (self.next_record, 0);
    }

    /// Forgets the rows, which must be written.
    pub(super) fn clear(&mut self) {
        self.first_of_key.clear();
        self.heads.clear();
        self.sums.clear();
        self.sources.clear();
    }
}
