//! A table that is open: its columns by id, its keys, and its windows, each a keyspace of the store below.

use super::catalog::Entry;
use super::row::{RESERVED_IDS, Stored};
use crate::error::{Error, Result};
use crate::key_encoding;
use crate::limits::{STORE_LOOKUPS_MEMTABLE_BYTES, STORE_LOOKUPS_UNMERGED_FILES, STORE_MEMTABLE_BYTES};
use emberkeep_schema::{ColumnType, Order, RowTtl, TableDeclaration, Value};
use fjall::compaction::Leveled;
use fjall::config::FilterPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first byte of a row's key; those of lookups are their ids.
const ROWS: u8 = 0;

/// A column of a key: its place in the row, its type, its order.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyColumn {
    pub(super) place: usize,
    pub(super) kind: ColumnType,
    pub(super) order: Order,
}

/// An order of the rows: the table's own or a lookup's.
#[derive(Debug)]
pub(super) struct RowOrder {
    pub(super) first_byte: u8,
    pub(super) columns: Vec<KeyColumn>,
    pub(super) partition_width: usize,
}

impl RowOrder {
    /// The stored key of values that stand in the order's own sequence; fewer values make a prefix.
    pub(super) fn key_of<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Vec<u8> {
        let mut key = vec![self.first_byte];
        for (column, value) in self.columns.iter().zip(values) {
            key_encoding::push(&mut key, value, column.order);
        }
        key
    }

    /// The stored key of a row; `None` if a column of it is absent.
    pub(super) fn key_of_row(&self, row: &[Option<Value>]) -> Option<Vec<u8>> {
        let mut key = Vec::with_capacity(64);
        self.push_key_of_row(&mut key, row)?;
        Some(key)
    }

    /// Appends the stored key of a row; `None` if a column of it is absent.
    pub(super) fn push_key_of_row(&self, out: &mut Vec<u8>, row: &[Option<Value>]) -> Option<()> {
        out.push(self.first_byte);
        for column in &self.columns {
            key_encoding::push(out, row[column.place].as_ref()?, column.order);
        }
        Some(())
    }

    /// Puts the values of a stored key into a row; `None` if the key is damaged.
    pub(super) fn read_key(&self, key: &[u8], row: &mut [Option<Value>]) -> Option<()> {
        let mut rest = key.strip_prefix(&[self.first_byte])?;
        for column in &self.columns {
            row[column.place] = Some(key_encoding::take(&mut rest, column.kind, column.order)?);
        }
        rest.is_empty().then_some(())
    }
}

/// A declared table with its keyspaces in the folder.
pub(super) struct OpenTable {
    pub(super) declaration: &'static TableDeclaration,
    pub(super) rows: RowOrder,
    pub(super) lookups: Vec<RowOrder>,
    /// Id of each column; `None` for those of the key.
    ids: Vec<Option<u16>>,
    /// Place and length of the time that decides the window.
    pub(super) window: Option<(usize, i64)>,
    /// Longest TTL that rows were written with.
    pub(super) ttl_ms: i64,
    pub(super) windows: RwLock<BTreeMap<i64, Window>>,
}

/// A window of a table. Rows and lookup entries lie apart: rows mostly come in their order and their files need no
/// merging, while lookup entries come in any order.
#[derive(Clone)]
pub(super) struct Window {
    pub(super) rows: Keyspace,
    /// `None` for a table without lookups.
    pub(super) lookups: Option<Keyspace>,
}

impl Window {
    /// Opens or creates the keyspaces of a window.
    pub(super) fn open(database: &Database, table: &TableDeclaration, window: i64) -> Result<Window> {
        let rows = open_keyspace(database, &keyspace_name(table.name, window))?;
        let has_lookups = !table.lookups.is_empty();
        let lookups = has_lookups.then(|| open_lookups(database, &lookups_name(table.name, window)));
        Ok(Window { rows, lookups: lookups.transpose()? })
    }

    pub(super) fn keyspaces(self) -> impl Iterator<Item = Keyspace> {
        [Some(self.rows), self.lookups].into_iter().flatten()
    }
}

impl OpenTable {
    pub(super) fn new(declaration: &'static TableDeclaration, entry: &Entry) -> OpenTable {
        let column = |(name, order): &(&'static str, Order)| {
            let place = declaration.index(name).expect("keys name columns, checked at compile time");
            KeyColumn { place, kind: declaration.columns[place].kind, order: *order }
        };
        let order = |first_byte, key: Vec<_>, partition_width| RowOrder {
            first_byte,
            columns: key.iter().map(column).collect(),
            partition_width,
        };
        let lookups = declaration.lookups.iter().map(|lookup| {
            let id = entry.lookup_id(lookup.name).expect("the entry has every declared lookup");
            order(id, declaration.lookup_key(lookup), lookup.partition.len())
        });
        let window = declaration.window_column().and_then(|name| declaration.index(name));
        OpenTable {
            declaration,
            rows: order(ROWS, declaration.primary_key(), declaration.partition.len()),
            lookups: lookups.collect(),
            ids: declaration.columns.iter().map(|column| entry.column_id(column.name)).collect(),
            window: window.map(|place| (place, entry.window_ms)),
            ttl_ms: entry.ttl_ms,
            windows: RwLock::new(BTreeMap::new()),
        }
    }

    /// The order of a range.
    pub(super) fn order(&self, lookup: Option<&str>) -> &RowOrder {
        let place =
            lookup.and_then(|name| self.declaration.lookups.iter().position(|lookup| lookup.name == name));
        place.map_or(&self.rows, |place| &self.lookups[place])
    }

    /// The window of a row; 0 for tables without windows.
    pub(super) fn window_of(&self, row: &[Option<Value>]) -> i64 {
        match self.window {
            Some((place, length)) => match &row[place] {
                Some(Value::Timestamp(ms)) => ms.div_euclid(length),
                _ => 0,
            },
            None => 0,
        }
    }

    /// A row with only the values of a primary key.
    pub(super) fn row_of_key(&self, key: &[Value]) -> Vec<Option<Value>> {
        let mut row = vec![None; self.declaration.columns.len()];
        for (column, value) in self.rows.columns.iter().zip(key) {
            row[column.place] = Some(value.clone());
        }
        row
    }

    /// When a row expires if it is written now, 0 = never; `None` if its TTL has ended already.
    pub(super) fn expires_after(&self, row: &[Option<Value>], now: i64) -> Option<i64> {
        Some(self.expires(row, now)).filter(|expires| *expires == 0 || *expires > now)
    }

    fn expires(&self, row: &[Option<Value>], now: i64) -> i64 {
        match self.declaration.ttl {
            RowTtl::Persistent => 0,
            RowTtl::Written { ms } => now.saturating_add(ms),
            RowTtl::Since { ms, column } => {
                match self.declaration.index(column).and_then(|at| row[at].as_ref()) {
                    Some(Value::Timestamp(time)) => time.saturating_add(ms),
                    _ => 0,
                }
            }
        }
    }

    /// The columns of a row that are not part of its key.
    pub(super) fn stored_columns<'r>(
        &self,
        row: &'r [Option<Value>],
    ) -> impl Iterator<Item = (u16, &'r Value)> {
        self.ids.iter().zip(row).filter_map(|(id, value)| Some(((*id)?, value.as_ref()?)))
    }

    pub(super) fn knows(&self, id: u16) -> bool {
        id >= RESERVED_IDS || self.ids.contains(&Some(id))
    }

    /// A row from its stored key and value; `Ok(None)` if it has expired or was removed.
    pub(super) fn read_row(&self, key: &[u8], bytes: &[u8], now: i64) -> Result<Option<Vec<Option<Value>>>> {
        let damaged = || self.damaged("a row does not have its checksum");
        let stored = Stored::read(key, bytes).ok_or_else(damaged)?;
        if stored.is_expired(now) || stored.is_removed() {
            return Ok(None);
        }
        let mut row = vec![None; self.declaration.columns.len()];
        self.rows.read_key(key, &mut row).ok_or_else(damaged)?;
        let find = |id: u16| {
            let place = self.ids.iter().position(|known| *known == Some(id))?;
            Some((place, self.declaration.columns[place].kind))
        };
        stored.values(find, &mut row).ok_or_else(damaged)?;
        Ok(Some(row))
    }

    pub(super) fn damaged(&self, problem: &str) -> Error {
        Error::Damaged {
            place: format!("table {}", self.declaration.name),
            problem: problem.to_owned(),
            remedy: "write or delete the row if its table allows it, or restore the folder from a copy",
        }
    }

    /// The window, if it exists.
    pub(super) fn existing(&self, window: i64) -> Option<Window> {
        self.windows.read().get(&window).cloned()
    }

    /// Windows from the first to the last one that a range of time touches.
    pub(super) fn windows_between(&self, first_ms: i64, last_ms: i64) -> Vec<Window> {
        let windows = self.windows.read();
        match self.window {
            Some((_, length)) => {
                let (first, last) = (first_ms.div_euclid(length), last_ms.div_euclid(length));
                if first > last {
                    return Vec::new();
                }
                windows.range(first..=last).map(|(_, window)| window.clone()).collect()
            }
            None => windows.values().cloned().collect(),
        }
    }
}

/// Name of the keyspace with the rows of a table's window.
pub(super) fn keyspace_name(table: &str, window: i64) -> String {
    format!("{table}@{window}")
}

/// Name of the keyspace with the lookup entries of a table's window.
pub(super) fn lookups_name(table: &str, window: i64) -> String {
    format!("{table}@{window}@lookups")
}

/// Opens or creates a keyspace.
pub(super) fn open_keyspace(database: &Database, name: &str) -> Result<Keyspace> {
    let options = || KeyspaceCreateOptions::default().max_memtable_size(STORE_MEMTABLE_BYTES);
    database.keyspace(name, options).map_err(|error| super::store_error(name, &error))
}

/// Opens or creates a keyspace of lookup entries: only ranges of it are read, so filters would never be used, and
/// its keys come in any order, so that merging its files is most of the work.
fn open_lookups(database: &Database, name: &str) -> Result<Keyspace> {
    let merging = Leveled::default().with_l0_threshold(STORE_LOOKUPS_UNMERGED_FILES);
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(STORE_LOOKUPS_MEMTABLE_BYTES)
            .filter_policy(FilterPolicy::disabled())
            .compaction_strategy(Arc::new(merging))
    };
    database.keyspace(name, options).map_err(|error| super::store_error(name, &error))
}
