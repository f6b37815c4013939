//! A commit in the making: the changes of several calls, or of one call that reads before it writes.

use super::encode::{EncodedRows, place_of};
use super::ledger::Batch;
use super::open::{BATCH_KEY, window_key};
use super::operations::{Mark, Operations};
use super::row::{self, REMOVED_ID, Stored, VERSION_ID};
use super::table::{OpenTable, Window};
use super::{Shared, store_error};
use crate::contract::{Applied, ConditionalWrite, RawRow, Written};
use crate::error::{Error, Result};
use crate::limits::{REMOVED_FOR_MS_MIN, STORE_KEY_BYTES_MAX};
use crate::validate;
use emberkeep_schema::Value;
use fjall::{Keyspace, PersistMode, Slice};

/// Puts and removals that are committed together.
pub(super) struct Commit<'s> {
    shared: &'s Shared,
    catalog: &'s Keyspace,
    operations: Operations,
    /// Those that operations name by their index.
    keyspaces: Vec<Keyspace>,
    pub(super) rows: usize,
}

/// A row that a change is about: where it is, or would be.
struct Target {
    existing: Option<Window>,
    window: i64,
    key: Vec<u8>,
}

impl<'s> Commit<'s> {
    pub(super) fn new(shared: &'s Shared, catalog: &'s Keyspace) -> Commit<'s> {
        Commit { shared, catalog, operations: Operations::default(), keyspaces: Vec::new(), rows: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Bytes of its keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.operations.bytes() as u64
    }

    pub(super) fn mark(&self) -> (Mark, usize) {
        (self.operations.mark(), self.rows)
    }

    /// Takes back what a call did that failed.
    pub(super) fn undo(&mut self, (mark, rows): (Mark, usize)) {
        self.operations.undo(mark);
        self.rows = rows;
    }

    /// Refuses keys that the store below cannot hold. Its own check of them is a panic.
    pub(super) fn check_keys(&self, (since, _): (Mark, usize)) -> Result<()> {
        validate::limit("a key".into(), self.operations.longest_key(since), "bytes", STORE_KEY_BYTES_MAX)
    }

    /// The index of a keyspace among those of this commit.
    fn place(&mut self, keyspace: &Keyspace) -> i64 {
        let known = self.keyspaces.iter().position(|known| known.id() == keyspace.id());
        let place = known.unwrap_or_else(|| {
            self.keyspaces.push(keyspace.clone());
            self.keyspaces.len() - 1
        });
        place as i64
    }

    pub(super) fn put(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) {
        let place = self.place(keyspace);
        self.operations.put_slices(place, key, value);
    }

    pub(super) fn remove(&mut self, keyspace: &Keyspace, key: &[u8]) {
        let place = self.place(keyspace);
        self.operations.remove(place, key);
    }

    pub(super) fn remove_window(&mut self, table: &str, window: i64) {
        self.remove(&self.catalog.clone(), window_key(table, window).as_bytes());
    }

    /// The window of a row, created if it does not exist.
    fn window(&mut self, table: &OpenTable, window: i64) -> Result<Window> {
        if let Some(existing) = table.existing(window) {
            return Ok(existing);
        }
        let name = table.declaration.name;
        let created = Window::open(&self.shared.database, table.declaration, window)?;
        // Committed at once: the catalog must name the window before a row is in it, whatever becomes of this call.
        let put = self.catalog.insert(window_key(name, window), []);
        put.map_err(|error| store_error(name, &error))?;
        table.windows.write().insert(window, created.clone());
        Ok(created)
    }

    fn target(&self, table: &OpenTable, row: &[Option<Value>]) -> Result<Target> {
        let incomplete = || table.damaged("a row without its key reached the writer");
        let key = table.rows.key_of_row(row).ok_or_else(incomplete)?;
        let window = table.window_of(row);
        Ok(Target { existing: table.existing(window), window, key })
    }

    fn stored(&self, table: &OpenTable, target: &Target) -> Result<Option<Slice>> {
        let Some(window) = &target.existing else { return Ok(None) };
        window.rows.get(&target.key).map_err(|error| store_error(table.declaration.name, &error))
    }

    /// Adds rows that were encoded by their caller.
    pub(super) fn insert(&mut self, table: &OpenTable, rows: &EncodedRows) -> Result<Written> {
        let mut places = Vec::with_capacity(2 * rows.windows().len());
        for number in rows.windows() {
            let window = self.window(table, *number)?;
            places.push((place_of(*number, false), self.place(&window.rows)));
            if let Some(lookups) = &window.lookups {
                places.push((place_of(*number, true), self.place(lookups)));
            }
        }
        let missing = || Error::Internal { reason: "a row of a window that was not named".into() };
        let place = |of| places.iter().find(|(known, _)| *known == of).map(|(_, place)| *place);
        self.operations.append(rows.operations(), |of| place(of).ok_or_else(missing))?;
        self.rows += rows.written.rows;
        Ok(rows.written)
    }

    fn put_row(
        &mut self,
        table: &OpenTable,
        target: &Target,
        row: &[Option<Value>],
        expires: i64,
        version: Option<i64>,
        unknown: &[u8],
    ) -> Result<()> {
        let window = self.window(table, target.window)?;
        for lookup in table.lookups.iter().filter(|_| window.lookups.is_some()) {
            let absent = || table.damaged("a row lacks a column of a lookup");
            let entry = lookup.key_of_row(row).ok_or_else(absent)?;
            window.lookups.iter().for_each(|lookups| self.put(lookups, &entry, &[]));
        }
        let version = version.map(Value::BigInt);
        let head = version.iter().map(|version| (VERSION_ID, version));
        let mut value = Vec::with_capacity(128);
        row::encode(&mut value, &target.key, expires, head.chain(table.stored_columns(row)), unknown);
        self.put(&window.rows, &target.key, &value);
        self.rows += 1;
        Ok(())
    }

    /// Replaces rows of a table of `writes: rows`.
    pub(super) fn upsert(&mut self, table: &OpenTable, rows: &[RawRow], now: i64) -> Result<Written> {
        let mut written = Written::default();
        for row in rows {
            // A row that is not written leaves the stored one as it is, with its lookup entries.
            let Some(expires) = table.expires_after(row, now) else {
                written.expired += 1;
                continue;
            };
            let target = self.target(table, row)?;
            let mut unknown = Vec::new();
            if let Some(bytes) = self.stored(table, &target)? {
                unknown = self.unknown_columns(table, &target, &bytes, now);
                self.remove_lookups(table, &target, &bytes);
            }
            self.put_row(table, &target, row, expires, None, &unknown)?;
            written.rows += 1;
        }
        Ok(written)
    }

    /// The columns of a stored row that this declaration does not know. A row that cannot be read has none: writing
    /// it again repairs it.
    fn unknown_columns(&self, table: &OpenTable, target: &Target, bytes: &[u8], now: i64) -> Vec<u8> {
        let stored = Stored::read(&target.key, bytes).filter(|stored| !stored.is_expired(now));
        stored.and_then(|stored| stored.unknown(|id| table.knows(id))).unwrap_or_default()
    }

    /// Removes the lookup entries of a stored row. Those of a row that cannot be read stay; readers do not see them.
    fn remove_lookups(&mut self, table: &OpenTable, target: &Target, bytes: &[u8]) {
        let Some(lookups) = target.existing.as_ref().and_then(|window| window.lookups.as_ref()) else {
            return;
        };
        // Expired rows have entries, too: as of the beginning of time no row has expired.
        let Ok(Some(old)) = table.read_row(&target.key, bytes, i64::MIN) else { return };
        for lookup in &table.lookups {
            if let Some(entry) = lookup.key_of_row(&old) {
                self.remove(lookups, &entry);
            }
        }
    }

    /// Removes the row of a key of a table of `writes: rows`.
    pub(super) fn delete(&mut self, table: &OpenTable, key: &[Value]) -> Result<Written> {
        let target = self.target(table, &table.row_of_key(key))?;
        if let Some(bytes) = self.stored(table, &target)? {
            self.remove_stored(table, &target, &bytes);
        }
        Ok(Written { rows: 1, expired: 0 })
    }

    fn remove_stored(&mut self, table: &OpenTable, target: &Target, bytes: &[u8]) {
        self.remove_lookups(table, target, bytes);
        if let Some(window) = &target.existing {
            self.remove(&window.rows, &target.key);
            self.rows += 1;
        }
    }

    /// Removes a row that retention found expired.
    pub(super) fn remove_expired(&mut self, table: &OpenTable, window: &Window, key: &[u8], bytes: &[u8]) {
        let target = Target { existing: Some(window.clone()), window: 0, key: key.to_vec() };
        self.remove_stored(table, &target, bytes);
    }

    /// Removes and writes rows as of a version.
    pub(super) fn replace(
        &mut self,
        table: &OpenTable,
        version: i64,
        removed: &[Vec<Value>],
        rows: &[RawRow],
        now: i64,
    ) -> Result<Written> {
        let mut written = Written::default();
        for key in removed {
            self.remove_at(table, version, &table.row_of_key(key), now)?;
            written.rows += 1;
        }
        for row in rows {
            let Some(expires) = table.expires_after(row, now) else {
                written.expired += 1;
                continue;
            };
            let target = self.target(table, row)?;
            let stored = self.stored(table, &target)?;
            // At equal versions a removal wins, as on CQL.
            if !stored.as_deref().is_some_and(|bytes| is_newer(&target, bytes, version, true)) {
                let unknown = stored.map(|bytes| self.unknown_columns(table, &target, &bytes, now));
                let unknown = unknown.unwrap_or_default();
                self.put_row(table, &target, row, expires, Some(version), &unknown)?;
            }
            written.rows += 1;
        }
        Ok(written)
    }

    /// Leaves a tombstone, because a row of a lower version may still arrive.
    fn remove_at(&mut self, table: &OpenTable, version: i64, row: &[Option<Value>], now: i64) -> Result<()> {
        if table.expires_after(row, now).is_none() {
            return Ok(());
        }
        let target = self.target(table, row)?;
        let stored = self.stored(table, &target)?;
        if stored.is_some_and(|bytes| is_newer(&target, &bytes, version, false)) {
            return Ok(());
        }
        let window = self.window(table, target.window)?;
        let expires = now.saturating_add(table.ttl_ms.max(REMOVED_FOR_MS_MIN));
        let (is_removed, version) = (Value::Boolean(true), Value::BigInt(version));
        let columns = [(REMOVED_ID, &is_removed), (VERSION_ID, &version)];
        let mut value = Vec::new();
        row::encode(&mut value, &target.key, expires, columns.into_iter(), &[]);
        self.put(&window.rows, &target.key, &value);
        self.rows += 1;
        Ok(())
    }

    /// Changes a row if it is as expected.
    pub(super) fn write_if(
        &mut self,
        table: &OpenTable,
        write: &ConditionalWrite,
        now: i64,
    ) -> Result<Applied<RawRow>> {
        let (expected, next) = match write {
            ConditionalWrite::InsertIfAbsent(row) => (None, Some(row)),
            ConditionalWrite::ReplaceIf { expected, row } => (Some(expected), Some(row)),
            ConditionalWrite::DeleteIf(expected) => (Some(expected), None),
        };
        let Some(of_key) = next.or(expected) else { return Ok(Applied::No(None)) };
        let target = self.target(table, of_key)?;
        let bytes = self.stored(table, &target)?;
        let current = match &bytes {
            Some(bytes) => table.read_row(&target.key, bytes, now)?,
            None => None,
        };
        if current.as_ref() != expected {
            return Ok(Applied::No(current));
        }
        match next {
            Some(row) => {
                let mut unknown = Vec::new();
                if let Some(bytes) = bytes {
                    unknown = self.unknown_columns(table, &target, &bytes, now);
                    self.remove_lookups(table, &target, &bytes);
                }
                let expires = table.expires_after(row, now).unwrap_or(0);
                self.put_row(table, &target, row, expires, None, &unknown)?;
            }
            None => self.remove_stored(table, &target, bytes.as_deref().unwrap_or_default()),
        }
        Ok(Applied::Yes)
    }

    /// Commits under the number after `last`, which it returns.
    pub(super) fn finish(
        mut self,
        last: Batch,
        mode: PersistMode,
    ) -> std::result::Result<Batch, fjall::Error> {
        self.operations.sort();
        let next = last.next(self.operations.digest());
        let mut batch = self.shared.database.batch().durability(Some(mode));
        self.operations.fill(&mut batch, &self.keyspaces);
        batch.insert(self.catalog, BATCH_KEY, next.to_bytes());
        batch.commit()?;
        Ok(next)
    }
}

/// Whether a stored row wins over a write of this version. One that cannot be read does not.
fn is_newer(target: &Target, bytes: &[u8], version: i64, is_upsert: bool) -> bool {
    let Some(stored) = Stored::read(&target.key, bytes) else { return false };
    let of_stored = stored.number(VERSION_ID).unwrap_or(0);
    of_stored > version || is_upsert && stored.is_removed() && of_stored == version
}
