//! Totals by source: one row per key and source with the position that it has reached.
//!
//! An entry is added only if its position is above the row's, so it counts once, however often it is delivered.
//! Readers add up the rows of all sources.
//!
//! A fold changes rows in memory (`totals_cache`) and writes one record (`fold_log`). When the records have grown, all
//! changed rows are written in one commit that also removes the records. Opening a folder adds the records that it
//! finds again, by the same rule.
//!
//! The rows of closed sources are merged into the key's base row, whose source is `""`, in passes of retention.

use super::catalog::Entry;
use super::commit::Commit;
use super::fold_log::{self, Record};
use super::row::{self, Stored};
use super::store_error;
use super::totals_cache::TotalsCache;
use crate::contract::{Fold, Folded, RawTotals, Source};
use crate::error::{Error, Result};
use crate::key_encoding;
use crate::limits::{
    FOLD_LOG_BYTES_MAX, RETENTION_ROWS_PER_PASS_MAX, STORE_KEY_BYTES_MAX, TOTALS_CACHE_ROWS_MAX,
};
use crate::validate;
use emberkeep_schema::{ColumnType, Order, TotalsDeclaration, Value};
use fjall::Keyspace;
use parking_lot::{RwLock, RwLockWriteGuard};
use std::ops::Bound;

/// First byte of a row's key.
const ROWS: u8 = 0;
/// First byte of a closed source's key.
const CLOSED: u8 = 1;
/// First byte of the key of a record of the log.
const LOG: u8 = 2;
/// Ids of columns that all totals have; those of sums count up from 1.
const POSITION_ID: u16 = u16::MAX;
const UPDATED_ID: u16 = u16::MAX - 1;
/// The source of a base row.
const BASE: &str = "";

/// Declared totals with their rows in the folder.
pub(super) struct OpenTotals {
    declaration: &'static TotalsDeclaration,
    /// Ids of all sums that the folder has, also of those that this declaration does not know.
    ids: Vec<u16>,
    /// The places of the declared sums among them.
    declared: Vec<usize>,
    pub(super) keyspace: Keyspace,
    pub(super) cache: RwLock<TotalsCache>,
}

/// The row of a key and source.
#[derive(Debug, Clone, PartialEq)]
struct SourceRow {
    position: i64,
    updated: i64,
    sums: Vec<i64>,
}

impl OpenTotals {
    /// Opens totals and adds what their log has.
    pub(super) fn open(
        declaration: &'static TotalsDeclaration,
        entry: &Entry,
        keyspace: Keyspace,
    ) -> Result<OpenTotals> {
        let ids: Vec<u16> = entry.columns.iter().map(|(id, _, _)| *id).collect();
        let place = |name| {
            let id = entry.column_id(name).expect("the entry has every declared sum");
            ids.iter().position(|known| *known == id).expect("the ids are those of the entry")
        };
        let declared = declaration.sums.iter().map(|sum| place(sum.name)).collect();
        let cache = RwLock::new(TotalsCache::new(ids.len()));
        let totals = OpenTotals { declaration, ids, declared, keyspace, cache };
        totals.load_closed()?;
        totals.replay()?;
        Ok(totals)
    }

    fn load_closed(&self) -> Result<()> {
        let mut cache = self.cache.write();
        for guard in self.keyspace.prefix([CLOSED]) {
            let key = guard.key().map_err(|error| self.error(&error))?;
            match key_encoding::take(&mut &key[1..], ColumnType::Text, Order::Ascending) {
                Some(Value::Text(source)) => cache.closed.insert(source),
                _ => return Err(self.damaged("the name of a closed source cannot be read")),
            };
        }
        Ok(())
    }

    /// Adds the records of the log. They are removed when the rows are written next.
    fn replay(&self) -> Result<()> {
        let mut cache = self.cache.write();
        let mut is_first = true;
        for guard in self.keyspace.prefix([LOG]) {
            let (key, bytes) = guard.into_inner().map_err(|error| self.error(&error))?;
            let wrong = || self.damaged("a record of added entries does not have its checksum");
            let number = key.get(1..).and_then(|number| number.try_into().ok()).map(u64::from_be_bytes);
            let (number, (source, entries)) = number.zip(fold_log::read(&key, &bytes)).ok_or_else(wrong)?;
            if std::mem::take(&mut is_first) {
                cache.first_record = number;
            }
            cache.next_record = number + 1;
            cache.log_bytes += bytes.len();
            let source = cache.source(source);
            for entry in &entries {
                let slot = self.slot(&mut cache, entry.key, source)?;
                if entry.position > cache.head(slot).position {
                    let amounts =
                        entry.amounts().filter_map(|(id, amount)| Some((self.place_of(id)?, amount)));
                    let added = cache.add(slot, entry.position, entry.at_ms, amounts);
                    added.map_err(|_| self.damaged("the sums of its records leave 64 bits"))?;
                }
            }
            cache.committed();
        }
        Ok(())
    }

    fn place_of(&self, id: u16) -> Option<usize> {
        self.ids.iter().position(|known| *known == id)
    }

    /// The row in memory, read if it is not there.
    fn slot(&self, cache: &mut TotalsCache, key: &[u8], source: u32) -> Result<u32> {
        if let Some(slot) = cache.find(key, source) {
            return Ok(slot);
        }
        let row_key = row_key(key, cache.source_name(source));
        validate::limit("a key".into(), row_key.len(), "bytes", STORE_KEY_BYTES_MAX)?;
        let row = match self.keyspace.get(&row_key).map_err(|error| self.error(&error))? {
            Some(bytes) => self.parse(&row_key, &bytes)?,
            None => SourceRow { position: 0, updated: 0, sums: vec![0; self.ids.len()] },
        };
        Ok(cache.insert(key, source, row.position, row.updated, &row.sums))
    }

    fn damaged(&self, problem: &str) -> Error {
        Error::Damaged {
            place: format!("table {}", self.declaration.by_source),
            problem: problem.into(),
            remedy: super::ledger::REMEDY,
        }
    }

    fn error(&self, error: &fjall::Error) -> Error {
        store_error(self.declaration.by_source, error)
    }

    fn overflow(&self, place: usize) -> Error {
        let declared = self.declared.iter().position(|known| *known == place);
        let sum = declared.map_or("of another declaration", |at| self.declaration.sums[at].name);
        Error::Overflow { table: self.declaration.name, sum }
    }

    fn parse(&self, key: &[u8], bytes: &[u8]) -> Result<SourceRow> {
        let damaged = || self.damaged("a row does not have its checksum");
        let stored = Stored::read(key, bytes).ok_or_else(damaged)?;
        let mut values = vec![None; self.ids.len() + 2];
        let find = |id: u16| match id {
            POSITION_ID => Some((0, ColumnType::BigInt)),
            UPDATED_ID => Some((1, ColumnType::Timestamp)),
            id => self.place_of(id).map(|place| (place + 2, ColumnType::BigInt)),
        };
        stored.values(find, &mut values).ok_or_else(damaged)?;
        let number = |value: &Option<Value>| match value {
            Some(Value::BigInt(number) | Value::Timestamp(number)) => *number,
            _ => 0,
        };
        let (position, updated) = (number(&values[0]), number(&values[1]));
        Ok(SourceRow { position, updated, sums: values[2..].iter().map(number).collect() })
    }

    fn put(&self, commit: &mut Commit<'_>, key: &[u8], position: i64, updated: i64, sums: &[i64]) {
        let numbers: Vec<_> = sums.iter().map(|sum| Value::BigInt(*sum)).collect();
        let head = [(POSITION_ID, Value::BigInt(position)), (UPDATED_ID, Value::Timestamp(updated))];
        let columns = self.ids.iter().copied().zip(&numbers);
        let columns = columns.chain(head.iter().map(|(id, value)| (*id, value)));
        let mut value = Vec::with_capacity(32 + 14 * self.ids.len());
        row::encode(&mut value, key, 0, columns, &[]);
        commit.put(&self.keyspace, key, &value);
    }

    /// The sums of a key over all sources.
    pub(super) fn read(&self, key: &Value) -> Result<Option<RawTotals>> {
        let key = key_encoding::encoded(key);
        // Held until the end: rows are not written or merged meanwhile.
        let cache = self.cache.read();
        let cached: Vec<u32> = cache.slots(&key).collect();
        let mut sums = vec![0; self.ids.len()];
        let (mut is_found, mut last_updated) = (false, 0);
        let mut add = |row: &[i64], updated: i64| {
            (is_found, last_updated) = (true, last_updated.max(updated));
            add_up(&mut sums, row).map_err(|place| self.overflow(place))
        };
        for slot in &cached {
            let head = cache.head(*slot);
            if head.position > 0 {
                add(cache.sums(*slot), head.updated)?;
            }
        }
        for guard in self.keyspace.prefix(prefix(&key)) {
            let (row_key, bytes) = guard.into_inner().map_err(|error| self.error(&error))?;
            let is_cached =
                |slot: &u32| row_key[..] == self::row_key(&key, cache.source_name(cache.head(*slot).source));
            if !cached.iter().any(is_cached) {
                let row = self.parse(&row_key, &bytes)?;
                add(&row.sums, row.updated)?;
            }
        }
        let sums = self.declared.iter().map(|place| sums[*place]).collect();
        Ok(is_found.then_some(RawTotals { sums, last_updated }))
    }

    /// Whether a source was ever closed.
    pub(super) fn has_closed(&self) -> bool {
        !self.cache.read().closed.is_empty()
    }

    /// Whether a source was closed since this was last asked.
    pub(super) fn take_newly_closed(&self) -> bool {
        std::mem::take(&mut self.cache.write().is_newly_closed)
    }

    pub(super) fn name(&self) -> &'static str {
        self.declaration.name
    }

    /// Whether enough was added that the rows should be written.
    pub(super) fn is_due(&self) -> bool {
        let cache = self.cache.read();
        cache.log_bytes >= FOLD_LOG_BYTES_MAX || cache.rows() >= TOTALS_CACHE_ROWS_MAX
    }

    /// Puts all changed rows into a commit, and removes the records of the log.
    pub(super) fn write_rows(&self, commit: &mut Commit<'_>, cache: &TotalsCache) {
        for (key, slot) in cache.all() {
            let head = cache.head(slot);
            if head.is_dirty {
                let row_key = row_key(key, cache.source_name(head.source));
                self.put(commit, &row_key, head.position, head.updated, cache.sums(slot));
            }
        }
        for number in cache.first_record..cache.next_record {
            commit.remove(&self.keyspace, &record_key(number));
        }
    }

    /// Puts the end of a source into a commit.
    pub(super) fn close(&self, commit: &mut Commit<'_>, source: &Source) {
        let mut key = vec![CLOSED];
        key_encoding::push(&mut key, &Value::Text(source.text().to_owned()), Order::Ascending);
        commit.put(&self.keyspace, &key, &[]);
    }

    /// Merges rows of closed sources into base rows, from a key on. All rows must be written and none in memory.
    /// Returns where the next pass begins; `None` at the end.
    pub(super) fn merge_closed(
        &self,
        commit: &mut Commit<'_>,
        cache: &TotalsCache,
        from: Vec<u8>,
    ) -> Result<Option<Vec<u8>>> {
        let mut key_in_work = Vec::new();
        let mut rows: Vec<(Vec<u8>, String, SourceRow)> = Vec::new();
        for (count, guard) in
            self.keyspace.range((Bound::Included(from), Bound::Excluded(vec![CLOSED]))).enumerate()
        {
            let (row_key, bytes) = guard.into_inner().map_err(|error| self.error(&error))?;
            let (key_end, source) =
                self.split(&row_key).ok_or_else(|| self.damaged("the key of a row cannot be read"))?;
            if row_key[..key_end] != key_in_work[..] {
                self.merge(commit, &key_in_work, &mut rows);
                key_in_work = row_key[..key_end].to_vec();
                if count >= RETENTION_ROWS_PER_PASS_MAX {
                    return Ok(Some(row_key.to_vec()));
                }
            }
            if source == BASE || cache.closed.contains(&source) {
                let row = self.parse(&row_key, &bytes)?;
                rows.push((row_key.to_vec(), source, row));
            }
        }
        self.merge(commit, &key_in_work, &mut rows);
        Ok(None)
    }

    /// The end of the key's part of a row key, and the source.
    fn split(&self, row_key: &[u8]) -> Option<(usize, String)> {
        let mut rest = row_key.get(1..)?;
        key_encoding::take(&mut rest, self.declaration.key.1, Order::Ascending)?;
        let key_end = row_key.len() - rest.len();
        match key_encoding::take(&mut rest, ColumnType::Text, Order::Ascending)? {
            Value::Text(source) => Some((key_end, source)),
            _ => None,
        }
    }

    /// Merges the base row and the rows of closed sources of one key. Sums that leave 64 bits stay apart.
    fn merge(&self, commit: &mut Commit<'_>, key: &[u8], rows: &mut Vec<(Vec<u8>, String, SourceRow)>) {
        let rows = std::mem::take(rows);
        if rows.iter().all(|(_, source, _)| source == BASE) {
            return;
        }
        let mut base = SourceRow { position: 0, updated: 0, sums: vec![0; self.ids.len()] };
        for (_, _, row) in &rows {
            let Some(position) = base.position.checked_add(row.position) else { return };
            if add_up(&mut base.sums, &row.sums).is_err() {
                return;
            }
            (base.position, base.updated) = (position, base.updated.max(row.updated));
        }
        rows.iter().for_each(|(row_key, _, _)| commit.remove(&self.keyspace, row_key));
        self.put(commit, &row_key(&key[1..], BASE), base.position, base.updated, &base.sums);
    }
}

fn prefix(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + key.len() + 64);
    out.push(ROWS);
    out.extend(key);
    out
}

/// The stored key of a row, from the key in its encoding.
fn row_key(key: &[u8], source: &str) -> Vec<u8> {
    let mut out = prefix(key);
    key_encoding::push(&mut out, &Value::Text(source.to_owned()), Order::Ascending);
    out
}

fn record_key(number: u64) -> [u8; 9] {
    let mut key = [LOG; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Adds sums; the error is the place of one that would leave 64 bits.
fn add_up(sums: &mut [i64], amounts: &[i64]) -> std::result::Result<(), usize> {
    for (place, (sum, amount)) in sums.iter_mut().zip(amounts).enumerate() {
        *sum = sum.checked_add(*amount).ok_or(place)?;
    }
    Ok(())
}

/// The totals that a commit changes. Readers of them wait until it is committed; if it is not, the changes are
/// taken back.
#[derive(Default)]
pub(super) struct Folds<'s> {
    open: Vec<(&'s OpenTotals, RwLockWriteGuard<'s, TotalsCache>)>,
}

impl<'s> Folds<'s> {
    fn cache(&mut self, totals: &'s OpenTotals) -> &mut TotalsCache {
        let known = self.open.iter().position(|(known, _)| std::ptr::eq(*known, totals));
        let place = known.unwrap_or_else(|| {
            self.open.push((totals, totals.cache.write()));
            self.open.len() - 1
        });
        &mut self.open[place].1
    }

    /// Adds the entries that are above the position of their row. What an error leaves must be taken back.
    pub(super) fn add(
        &mut self,
        commit: &mut Commit<'_>,
        totals: &'s OpenTotals,
        fold: &Fold,
    ) -> Result<Folded> {
        let cache = self.cache(totals);
        let source = fold.source.text();
        if cache.closed.contains(source) {
            return Err(Error::SourceClosed { table: totals.declaration.name, name: source.to_owned() });
        }
        let (folded, record) = add_entries(cache, totals, fold)?;
        if folded.added > 0 {
            let key = record_key(cache.next_record);
            let bytes = record.finish(&key);
            (cache.next_record, cache.log_bytes) = (cache.next_record + 1, cache.log_bytes + bytes.len());
            commit.put(&totals.keyspace, &key, &bytes);
            commit.rows += folded.added;
        }
        Ok(folded)
    }

    pub(super) fn close(&mut self, commit: &mut Commit<'_>, totals: &'s OpenTotals, source: &Source) {
        totals.close(commit, source);
        let cache = self.cache(totals);
        cache.closed.insert(source.text().to_owned());
        cache.is_newly_closed = true;
    }

    /// A place to go back to.
    pub(super) fn mark(&self) -> Vec<usize> {
        self.open.iter().map(|(_, cache)| cache.uncommitted()).collect()
    }

    /// Takes back everything after a mark.
    pub(super) fn undo(&mut self, mark: &[usize]) {
        for (place, (_, cache)) in self.open.iter_mut().enumerate() {
            cache.undo(mark.get(place).copied().unwrap_or(0));
        }
    }

    /// The commit was made.
    pub(super) fn committed(mut self) {
        self.open.iter_mut().for_each(|(_, cache)| cache.committed());
    }
}

impl Drop for Folds<'_> {
    fn drop(&mut self) {
        self.open.iter_mut().for_each(|(_, cache)| cache.undo(0));
    }
}

fn add_entries(cache: &mut TotalsCache, totals: &OpenTotals, fold: &Fold) -> Result<(Folded, Record)> {
    let mut folded = Folded::default();
    let mut record = Record::new(fold.source.text(), fold.entries.len());
    let source = cache.source(fold.source.text());
    let mut key = Vec::new();
    for entry in &fold.entries {
        key.clear();
        key_encoding::push(&mut key, &entry.key, Order::Ascending);
        let slot = totals.slot(cache, &key, source)?;
        let position = entry.position as i64;
        if position <= cache.head(slot).position {
            folded.repeated += 1;
            continue;
        }
        let amounts = || totals.declared.iter().copied().zip(entry.amounts.iter().copied());
        let added = cache.add(slot, position, entry.at_ms, amounts());
        added.map_err(|place| totals.overflow(place))?;
        record.add(position, entry.at_ms, &key, amounts().map(|(place, amount)| (totals.ids[place], amount)));
        folded.added += 1;
    }
    Ok((folded, record))
}
