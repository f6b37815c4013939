//! Writes: rows become statements, those of one partition become batches, and batches are sent side by side.
//!
//! A row is written to its table and to the query table of each lookup. Events are written without a read. A row that
//! changes may leave an entry in a query table whose column had another value before. Therefore:
//! 1. new entries are written first, then the row, then the old entries are removed, all with one timestamp;
//! 2. a reader of such a query table compares each entry with its row (`read.rs`), so an entry that a crash or a
//!    concurrent writer left behind is not seen.

use crate::cluster::{Cluster, Mode, Statement};
use crate::limits::{BATCH_BYTES_MAX, BATCH_STATEMENTS_MAX};
use crate::place::Placer;
use crate::plan::{StoredTable, TablePlan};
use crate::values::{self, Cell};
use emberkeep_history::{Error, RawRow, Result, Write, Written};
use emberkeep_schema::{Value, Writes};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Statements of one partition.
struct Group {
    statements: Vec<Statement>,
    bytes: usize,
    /// Rows of the table itself among them.
    rows: usize,
}

/// Statements by partition, in the order of their first one.
#[derive(Default)]
struct Groups {
    groups: Vec<Group>,
    open: HashMap<(usize, Vec<u8>), usize>,
}

impl Groups {
    /// Adds a statement of a partition. A group that is full is closed, unless its statements belong together.
    fn add(&mut self, table: usize, partition: &[&Value], statement: Statement, is_atomic: bool) {
        let mut key = Vec::new();
        partition.iter().for_each(|value| values::push_bytes(value, &mut key));
        let bytes = statement.cells.iter().map(Cell::size_bytes).sum::<usize>();
        let row = usize::from(table == 0);
        let is_full = |group: &Group| {
            group.statements.len() >= BATCH_STATEMENTS_MAX || group.bytes + bytes > BATCH_BYTES_MAX
        };
        let next = self.groups.len();
        match self.open.entry((table, key)) {
            Entry::Occupied(open) if is_atomic || !is_full(&self.groups[*open.get()]) => {
                let group = &mut self.groups[*open.get()];
                group.statements.push(statement);
                (group.bytes, group.rows) = (group.bytes + bytes, group.rows + row);
                return;
            }
            Entry::Occupied(mut open) => *open.get_mut() = next,
            Entry::Vacant(vacant) => {
                vacant.insert(next);
            }
        }
        self.groups.push(Group { statements: vec![statement], bytes, rows: row });
    }

    /// Sends all of them side by side, within the bounds of the store.
    async fn send(self, cluster: &Cluster, table: &str) -> Result<()> {
        let (all, count) = (self.groups.len(), cluster.bounds.requests_max());
        let send = |group: Group| cluster.write(table, group.statements, group.rows);
        let sent = stream::iter(self.groups).map(send).buffer_unordered(count).try_collect::<()>().await;
        match sent {
            // Others of the call may have been sent before.
            Err(Error::Unavailable { backend, reason }) if all > 1 => {
                Err(Error::OutcomeUnknown { reason: format!("{backend}: {reason}") })
            }
            sent => sent,
        }
    }
}

/// A write of a table.
pub(crate) struct Writer<'w> {
    pub(crate) cluster: &'w Cluster,
    pub(crate) plan: &'w TablePlan,
    pub(crate) placer: Placer<'w>,
    /// The timestamp of rows that have none of their own.
    pub(crate) timestamp: i64,
    pub(crate) now_ms: i64,
}

impl Writer<'_> {
    pub(crate) async fn write(self, write: Write) -> Result<Written> {
        let (rows, removed, timestamp) = match write {
            Write::Insert(rows) => return self.insert(rows).await,
            Write::Upsert(rows) => (rows, Vec::new(), self.timestamp),
            Write::Delete(key) => (Vec::new(), vec![key], self.timestamp),
            Write::Replace { version, removed, rows } => (rows, removed, version),
        };
        let count = rows.len() + removed.len();
        let (rows, expired) = self.living(rows);
        let old = self.old_rows(&rows, &removed).await?;
        self.replace(rows, removed, old, timestamp).await?;
        Ok(Written { rows: count - expired, expired })
    }

    /// Seconds that a row lives from now on; `None` = as long as the table says, `Some(0)` = it has ended.
    fn seconds_left(&self, row: &RawRow) -> Option<i64> {
        let (ttl_ms, place) = (self.plan.ttl_ms?, self.plan.time?);
        let Some(Value::Timestamp(ms)) = row[place] else { return None };
        // A part of a second counts: a row must not end early.
        Some((ms + ttl_ms - self.now_ms + 999).div_euclid(1_000).max(0))
    }

    /// The rows that have not ended, and how many have.
    fn living(&self, rows: Vec<RawRow>) -> (Vec<RawRow>, usize) {
        let count = rows.len();
        let rows: Vec<_> = rows.into_iter().filter(|row| self.seconds_left(row) != Some(0)).collect();
        let expired = count - rows.len();
        (rows, expired)
    }

    async fn insert(self, rows: Vec<RawRow>) -> Result<Written> {
        let (rows, expired) = self.living(rows);
        let (count, mut groups) = (rows.len(), Groups::default());
        let query_tables = self.plan.query_tables();
        for row in rows {
            for (number, table) in query_tables.iter().enumerate() {
                let statement = self.insert_statement(table, &row, self.time_us(&row)).await?;
                groups.add(number + 1, &table.partition_of(&row), statement, false);
            }
            self.add_row(&mut groups, row, None, false).await?;
        }
        groups.send(self.cluster, self.plan.declaration.name).await?;
        Ok(Written { rows: count, expired })
    }

    /// The timestamp of an event: its time, so that a replay lands in the same compaction window.
    fn time_us(&self, row: &RawRow) -> i64 {
        match self.plan.time.and_then(|place| row[place].as_ref()) {
            Some(Value::Timestamp(ms)) => ms.saturating_mul(1_000),
            _ => self.timestamp,
        }
    }

    async fn add_row(
        &self,
        groups: &mut Groups,
        row: RawRow,
        timestamp: Option<i64>,
        is_atomic: bool,
    ) -> Result<()> {
        let table = &self.plan.rows;
        let timestamp = timestamp.unwrap_or_else(|| self.time_us(&row));
        let statement = self.insert_statement(table, &row, timestamp).await?;
        let mut partition = table.partition_of(&row);
        let slices: Vec<Value> = self.slice_cells(&statement);
        partition.extend(&slices);
        groups.add(0, &partition, statement, is_atomic);
        Ok(())
    }

    /// Bucket and slice of a statement of a sliced table, which are a part of its partition.
    fn slice_cells(&self, statement: &Statement) -> Vec<Value> {
        if !self.plan.rows.has_slices {
            return Vec::new();
        }
        let columns = self.plan.declaration.columns.len();
        let cells = statement.cells[columns..columns + 2].iter();
        cells
            .filter_map(|cell| if let Cell::Value(value) = cell { Some(value.clone()) } else { None })
            .collect()
    }

    async fn insert_statement(&self, table: &StoredTable, row: &RawRow, timestamp: i64) -> Result<Statement> {
        let is_event = self.plan.declaration.writes == Writes::Events;
        let cell = |value: &Option<Value>| match is_event {
            true => Cell::adding(value.clone()),
            false => Cell::replacing(value.clone()),
        };
        let mut cells: Vec<Cell> = row.iter().map(cell).collect();
        if table.has_slices {
            let (bucket, slice) = self.placer.place_of_write(self.plan, row, self.now_ms).await?;
            cells.extend([Value::Int(bucket), Value::Int(slice)].map(Cell::Value));
        }
        cells.push(Cell::Value(Value::BigInt(timestamp)));
        if let Some(seconds) = self.seconds_left(row) {
            // The server takes at most 20 years.
            cells.push(Cell::Value(Value::Int(seconds.min(630_720_000) as i32)));
        }
        Ok(Statement { text: table.insert.clone(), cells })
    }

    /// The stored rows of all keys, if entries of them may have to be removed.
    async fn old_rows(&self, rows: &[RawRow], removed: &[Vec<Value>]) -> Result<Vec<RawRow>> {
        if self.plan.query_tables().is_empty() {
            return Ok(Vec::new());
        }
        let keys = rows.iter().map(|row| self.plan.key_of_row(row)).chain(removed.iter().cloned());
        let keys: Vec<Vec<Value>> = keys.collect();
        let get = |key: Vec<Value>| async move {
            get(self.cluster, self.plan, &self.placer, &key, Mode::Idempotent).await
        };
        let count = self.cluster.bounds.requests_max();
        let found: Vec<_> = stream::iter(keys).map(get).buffer_unordered(count).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn replace(
        self,
        rows: Vec<RawRow>,
        removed: Vec<Vec<Value>>,
        old: Vec<RawRow>,
        timestamp: i64,
    ) -> Result<()> {
        let name = self.plan.declaration.name;
        let (mut entries, mut main, mut leftovers) =
            (Groups::default(), Groups::default(), Groups::default());
        for (number, table) in self.plan.query_tables().into_iter().enumerate() {
            let key = |row: &RawRow| {
                (table.partition_of(row).into_iter().cloned().collect::<Vec<_>>(), table.clustering_of(row))
            };
            let current: Vec<_> = rows.iter().map(key).collect();
            for row in &rows {
                let statement = self.insert_statement(table, row, timestamp).await?;
                entries.add(number + 1, &table.partition_of(row), statement, false);
            }
            for row in old.iter().filter(|row| !current.contains(&key(row))) {
                let (partition, clustering) = key(row);
                let mut cells = vec![Cell::Value(Value::BigInt(timestamp))];
                cells.extend(partition.into_iter().chain(clustering).map(Cell::Value));
                let statement = Statement { text: table.delete.clone(), cells };
                leftovers.add(number + 1, &table.partition_of(row), statement, false);
            }
        }
        // A replacement of rows of one partition is one batch, whatever its size.
        let is_atomic = self.plan.declaration.writes == Writes::Versioned;
        for key in removed {
            self.add_removal(&mut main, &key, timestamp, is_atomic).await?;
        }
        for row in rows {
            self.add_row(&mut main, row, Some(timestamp), is_atomic).await?;
        }
        entries.send(self.cluster, name).await?;
        main.send(self.cluster, name).await?;
        leftovers.send(self.cluster, name).await
    }

    async fn add_removal(
        &self,
        groups: &mut Groups,
        key: &[Value],
        timestamp: i64,
        is_atomic: bool,
    ) -> Result<()> {
        let table = &self.plan.rows;
        let width = table.partition.len();
        let mut partition: Vec<Value> = key[..width].to_vec();
        if table.has_slices {
            let row = self.plan.row_of_key(key);
            let (bucket, slice) = self.placer.place_of_write(self.plan, &row, self.now_ms).await?;
            partition.extend([Value::Int(bucket), Value::Int(slice)]);
        }
        let mut cells = vec![Cell::Value(Value::BigInt(timestamp))];
        cells.extend(partition.iter().chain(&key[width..]).cloned().map(Cell::Value));
        let statement = Statement { text: table.delete.clone(), cells };
        groups.add(0, &partition.iter().collect::<Vec<_>>(), statement, is_atomic);
        Ok(())
    }
}

/// The row of a primary key.
pub(crate) async fn get(
    cluster: &Cluster,
    plan: &TablePlan,
    placer: &Placer<'_>,
    key: &[Value],
    mode: Mode,
) -> Result<Option<RawRow>> {
    let width = plan.rows.partition.len();
    let mut cells: Vec<Cell> = key[..width].iter().cloned().map(Cell::Value).collect();
    if plan.rows.has_slices {
        let Some((bucket, slice)) = placer.place_of_read(plan, &plan.row_of_key(key)).await? else {
            return Ok(None);
        };
        cells.extend([Value::Int(bucket), Value::Int(slice)].map(Cell::Value));
    }
    cells.extend(key[width..].iter().cloned().map(Cell::Value));
    let statement = Statement { text: plan.rows.get.clone(), cells };
    let (rows, _) = cluster.read(plan.declaration.name, mode, &statement, 1, usize::MAX).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let table = plan.declaration.name;
    let row = values::read_row(plan.declaration, row);
    row.map(Some).map_err(|(column, reason)| Error::Corrupt { table, column, reason })
}
