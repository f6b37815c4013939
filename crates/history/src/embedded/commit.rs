//! A commit in the making: puts and removals of several calls, and what reads of the same commit see.

use super::ledger::Batch;
use super::open::{BATCH_KEY, window_key};
use super::row::{self, Stored};
use super::table::{OpenTable, keyspace_name, open_keyspace};
use super::{Shared, store_error};
use crate::contract::{Inserted, RawRow, Write, Written};
use crate::error::Result;
use crate::limits::STORE_KEY_BYTES_MAX;
use crate::validate;
use emberkeep_schema::Value;
use fjall::{Keyspace, PersistMode, Slice};
use std::collections::HashMap;

struct Operation {
    keyspace: Keyspace,
    key: Vec<u8>,
    /// `None` = remove.
    value: Option<Vec<u8>>,
}

/// Puts and removals that are committed together.
pub(super) struct Commit<'s> {
    shared: &'s Shared,
    catalog: &'s Keyspace,
    operations: Vec<Operation>,
    /// Rows that this commit has changed, for calls that read before they write.
    changed: HashMap<(u64, Vec<u8>), Option<Vec<u8>>>,
    pub(super) rows: usize,
}

/// A place to go back to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    operations: usize,
    rows: usize,
}

impl<'s> Commit<'s> {
    pub(super) fn new(shared: &'s Shared, catalog: &'s Keyspace) -> Commit<'s> {
        Commit { shared, catalog, operations: Vec::new(), changed: HashMap::new(), rows: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Bytes of its keys and values.
    pub(super) fn bytes(&self) -> u64 {
        let sizes = self.operations.iter().map(|o| o.key.len() + o.value.as_ref().map_or(0, Vec::len));
        sizes.sum::<usize>() as u64
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { operations: self.operations.len(), rows: self.rows }
    }

    /// Takes back what a call did that failed. Its own reads are forgotten with it: calls that read have a
    /// commit of their own.
    pub(super) fn undo(&mut self, mark: Mark) {
        self.operations.truncate(mark.operations);
        self.rows = mark.rows;
        self.changed.clear();
    }

    /// Refuses keys that the store below cannot hold. Its own check of them is a panic.
    pub(super) fn check_keys(&self, since: Mark) -> Result<()> {
        let longest = self.operations[since.operations..].iter().map(|operation| operation.key.len()).max();
        validate::limit("a key".into(), longest.unwrap_or(0), "bytes", STORE_KEY_BYTES_MAX)
    }

    pub(super) fn put(&mut self, keyspace: &Keyspace, key: Vec<u8>, value: Vec<u8>) {
        self.operations.push(Operation { keyspace: keyspace.clone(), key, value: Some(value) });
    }

    pub(super) fn remove(&mut self, keyspace: &Keyspace, key: Vec<u8>) {
        self.operations.push(Operation { keyspace: keyspace.clone(), key, value: None });
    }

    pub(super) fn remove_window(&mut self, table: &str, window: i64) {
        self.remove(&self.catalog.clone(), window_key(table, window).into_bytes());
    }

    /// The window of a row, created if it does not exist.
    fn window(&mut self, table: &OpenTable, window: i64) -> Result<Keyspace> {
        if let Some(keyspace) = table.existing(window) {
            return Ok(keyspace);
        }
        let name = table.declaration.name;
        let keyspace = open_keyspace(&self.shared.database, &keyspace_name(name, window))?;
        // Committed at once: the catalog must name the window before a row is in it, whatever becomes of this call.
        let put = self.catalog.insert(window_key(name, window), []);
        put.map_err(|error| store_error(name, &error))?;
        table.windows.write().insert(window, keyspace.clone());
        Ok(keyspace)
    }

    /// The stored row as of this commit.
    fn current(&self, table: &OpenTable, keyspace: &Keyspace, key: &[u8]) -> Result<Option<Slice>> {
        if let Some(changed) = self.changed.get(&(keyspace.id(), key.to_vec())) {
            return Ok(changed.as_ref().map(Slice::from));
        }
        keyspace.get(key).map_err(|error| store_error(table.declaration.name, &error))
    }

    /// Changes rows of a table. `reads` = later changes of this commit read what is written here.
    pub(super) fn write(
        &mut self,
        table: &OpenTable,
        writes: Vec<Write>,
        reads: bool,
        now: i64,
    ) -> Result<Written> {
        let mut written = Written::default();
        for write in writes {
            let done = match write {
                Write::Insert(row) => self.insert(table, &row, &[], reads, now)?,
                Write::Upsert(row) => self.upsert(table, &row, now)?,
                Write::Delete(key) => self.delete(table, &table.row_of_key(&key), now)?,
            };
            written.rows += usize::from(done);
            written.expired += usize::from(!done);
        }
        self.rows += written.rows;
        Ok(written)
    }

    /// `false` = the row's TTL has ended already.
    fn insert(
        &mut self,
        table: &OpenTable,
        row: &[Option<Value>],
        unknown: &[u8],
        reads: bool,
        now: i64,
    ) -> Result<bool> {
        let Some(expires) = table.expires_after(row, now) else { return Ok(false) };
        let keyspace = self.window(table, table.window_of(row))?;
        let incomplete = || table.damaged("a row without its key reached the writer");
        let key = table.rows.key_of_row(row).ok_or_else(incomplete)?;
        for lookup in &table.lookups {
            self.put(&keyspace, lookup.key_of_row(row).ok_or_else(incomplete)?, Vec::new());
        }
        let value = row::encode(&key, expires, table.stored_columns(row), unknown);
        if reads {
            self.changed.insert((keyspace.id(), key.clone()), Some(value.clone()));
        }
        self.put(&keyspace, key, value);
        Ok(true)
    }

    fn upsert(&mut self, table: &OpenTable, row: &[Option<Value>], now: i64) -> Result<bool> {
        // A row that is not written leaves the stored one as it is, with its lookup entries.
        if table.expires_after(row, now).is_none() {
            return Ok(false);
        }
        let mut unknown = Vec::new();
        if let Some(keyspace) = table.existing(table.window_of(row))
            && let Some(key) = table.rows.key_of_row(row)
            && let Some(bytes) = self.current(table, &keyspace, &key)?
        {
            let damaged = || table.damaged("a row does not have its checksum");
            let stored = Stored::read(&key, &bytes).ok_or_else(damaged)?;
            if !stored.is_expired(now) {
                unknown = stored.unknown(|id| table.knows(id)).ok_or_else(damaged)?;
            }
            self.remove_lookups(table, &keyspace, &key, &bytes)?;
        }
        self.insert(table, row, &unknown, true, now)
    }

    /// Removes the lookup entries of a stored row.
    fn remove_lookups(
        &mut self,
        table: &OpenTable,
        keyspace: &Keyspace,
        key: &[u8],
        bytes: &[u8],
    ) -> Result<()> {
        // Expired rows have entries, too: as of the beginning of time no row has expired.
        let Some(old) = table.read_row(key, bytes, i64::MIN)? else { return Ok(()) };
        for lookup in &table.lookups {
            if let Some(entry) = lookup.key_of_row(&old) {
                self.remove(keyspace, entry);
            }
        }
        Ok(())
    }

    /// Always `true`: an absent row is removed, too.
    fn delete(&mut self, table: &OpenTable, row: &[Option<Value>], _now: i64) -> Result<bool> {
        let Some(keyspace) = table.existing(table.window_of(row)) else { return Ok(true) };
        let Some(key) = table.rows.key_of_row(row) else { return Ok(true) };
        if let Some(bytes) = self.current(table, &keyspace, &key)? {
            self.remove_lookups(table, &keyspace, &key, &bytes)?;
            self.changed.insert((keyspace.id(), key.clone()), None);
            self.remove(&keyspace, key);
        }
        Ok(true)
    }

    /// Removes a row that retention found expired.
    pub(super) fn remove_expired(
        &mut self,
        table: &OpenTable,
        keyspace: &Keyspace,
        key: &[u8],
        bytes: &[u8],
    ) -> Result<()> {
        self.remove_lookups(table, keyspace, key, bytes)?;
        self.remove(keyspace, key.to_vec());
        Ok(())
    }

    /// Writes the row, or returns the one that exists.
    pub(super) fn insert_if_absent(
        &mut self,
        table: &OpenTable,
        row: &[Option<Value>],
        now: i64,
    ) -> Result<Inserted<RawRow>> {
        if let Some(keyspace) = table.existing(table.window_of(row))
            && let Some(key) = table.rows.key_of_row(row)
            && let Some(bytes) = self.current(table, &keyspace, &key)?
            && let Some(existing) = table.read_row(&key, &bytes, now)?
        {
            return Ok(Inserted::No(existing));
        }
        if !self.insert(table, row, &[], true, now)? {
            return Ok(Inserted::Expired);
        }
        self.rows += 1;
        Ok(Inserted::Yes)
    }

    /// Commits under the number after `last`, which it returns.
    pub(super) fn finish(self, last: Batch, mode: PersistMode) -> std::result::Result<Batch, fjall::Error> {
        let mut digest = 0;
        let mut batch = self.shared.database.batch().durability(Some(mode));
        for Operation { keyspace, key, value } in self.operations {
            digest = crc32c::crc32c_append(digest, &key);
            match value {
                Some(value) => {
                    digest = crc32c::crc32c_append(digest, &value);
                    batch.insert(&keyspace, key, value);
                }
                None => batch.remove(&keyspace, key),
            }
        }
        let next = last.next(digest);
        batch.insert(self.catalog, BATCH_KEY, next.to_bytes());
        batch.commit()?;
        Ok(next)
    }
}
