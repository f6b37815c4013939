//! Reads: one row, and pages of ranges over the windows of a table.

use super::table::{OpenTable, RowOrder, Window};
use super::{Shared, store_error};
use crate::contract::{Position, RangeRequest, RawPage, RawRow, UnreadableRow};
use crate::error::{Error, Result};
use crate::limits::{PAGE_BYTES_MAX, PAGE_ENTRIES_READ_MAX, PAGE_ROWS_DEFAULT};
use emberkeep_schema::{Day, Order, Value};
use fjall::{Iter, Keyspace, Slice};
use std::ops::Bound;

/// The row of a primary key.
pub(super) fn get(shared: &Shared, table: &OpenTable, key: &[Value]) -> Result<Option<RawRow>> {
    let Some(window) = table.existing(table.window_of(&table.row_of_key(key))) else { return Ok(None) };
    let key = table.rows.key_of(key);
    let bytes = window.rows.get(&key).map_err(|error| store_error(table.declaration.name, &error))?;
    match bytes {
        Some(bytes) => table.read_row(&key, &bytes, shared.ticker.now()),
        None => Ok(None),
    }
}

/// One page of a range: partitions in the order of the request, windows of a partition merged by key.
pub(super) fn range(shared: &Shared, table: &OpenTable, request: &RangeRequest) -> Result<RawPage> {
    let order = table.order(request.lookup);
    let mut page = PageInProgress::new(request.rows_max, shared.ticker.now());
    let first = request.after.as_ref().map_or(0, |after| after.partition);
    for (index, partition) in request.partitions.iter().enumerate().skip(first) {
        let after = request.after.as_ref().filter(|after| after.partition == index);
        let bounds = Bounds::new(order, request, partition, after);
        let mut merged =
            Merged::new(windows(table, order, request, partition), order, &bounds, request.reversed, table)?;
        while let Some((source, key, bytes)) = merged.next()? {
            if page.is_full() {
                return page.end(order, table);
            }
            let entry = match resolve(table, order, &merged.windows[source].rows, &key, &bytes, page.now) {
                Ok(Some(row)) => Entry::Row(row),
                Ok(None) => Entry::Hidden,
                Err(error @ Error::Damaged { .. }) => Entry::Unreadable(error),
                Err(error) => return Err(error),
            };
            page.add(index, order, table, key, entry)?;
            if page.overflowed {
                return page.end(order, table);
            }
        }
    }
    page.last = None;
    page.end(order, table)
}

/// What an entry of a range stands for.
enum Entry {
    Row(RawRow),
    /// An expired row, or a former content of one.
    Hidden,
    Unreadable(Error),
}

/// A page while it is filled.
struct PageInProgress {
    rows: Vec<RawRow>,
    unreadable: Vec<UnreadableRow>,
    /// Partition and key of the last entry.
    last: Option<(usize, Slice)>,
    rows_max: usize,
    bytes: usize,
    entries: usize,
    now: i64,
    /// A row more than fits was found.
    overflowed: bool,
}

impl PageInProgress {
    fn new(rows_max: usize, now: i64) -> PageInProgress {
        PageInProgress {
            rows: Vec::with_capacity(rows_max.min(PAGE_ROWS_DEFAULT)),
            unreadable: Vec::new(),
            last: None,
            rows_max,
            bytes: 0,
            entries: 0,
            now,
            overflowed: false,
        }
    }

    /// Enough was read, although the page may have fewer rows than asked for.
    fn is_full(&self) -> bool {
        self.entries >= PAGE_ENTRIES_READ_MAX || self.bytes >= PAGE_BYTES_MAX
    }

    fn add(
        &mut self,
        partition: usize,
        order: &RowOrder,
        table: &OpenTable,
        key: Slice,
        entry: Entry,
    ) -> Result<()> {
        self.entries += 1;
        let is_hidden = matches!(entry, Entry::Hidden);
        if self.rows.len() + self.unreadable.len() == self.rows_max {
            // Hidden entries after the last row: the next page may begin behind that row as well.
            self.overflowed = !is_hidden;
            return Ok(());
        }
        match entry {
            Entry::Row(row) => {
                self.bytes += row.iter().flatten().map(Value::size_bytes).sum::<usize>();
                self.rows.push(row);
            }
            Entry::Unreadable(error) => {
                let values = values_of(&key, order, table)?;
                let key = table.rows.columns.iter().filter_map(|column| values[column.place].clone());
                self.unreadable.push(UnreadableRow { key: key.collect(), error });
            }
            Entry::Hidden => {}
        }
        self.last = Some((partition, key));
        Ok(())
    }

    fn end(self, order: &RowOrder, table: &OpenTable) -> Result<RawPage> {
        let position = |(partition, key): (usize, Slice)| {
            let mut values = values_of(&key, order, table)?;
            let clustering = order.columns[order.partition_width..].iter();
            let clustering = clustering.filter_map(|column| values[column.place].take()).collect();
            Ok(Position { partition, clustering })
        };
        let next = self.last.map(position).transpose()?;
        Ok(RawPage { rows: self.rows, unreadable: self.unreadable, next })
    }
}

/// The values of an entry's key, in the places of their columns.
fn values_of(key: &[u8], order: &RowOrder, table: &OpenTable) -> Result<RawRow> {
    let mut values = vec![None; table.declaration.columns.len()];
    order.read_key(key, &mut values).ok_or_else(|| table.damaged("a key cannot be read"))?;
    Ok(values)
}

/// The row that an entry stands for; `None` if it has expired, or if the entry is of a former content.
fn resolve(
    table: &OpenTable,
    order: &RowOrder,
    keyspace: &Keyspace,
    key: &[u8],
    bytes: &[u8],
    now: i64,
) -> Result<Option<RawRow>> {
    if order.first_byte == table.rows.first_byte {
        return table.read_row(key, bytes, now);
    }
    let named = values_of(key, order, table)?;
    let incomplete = || table.damaged("an entry does not have the key of its row");
    let row_key = table.rows.key_of_row(&named).ok_or_else(incomplete)?;
    let stored = keyspace.get(&row_key).map_err(|error| store_error(table.declaration.name, &error))?;
    let Some(stored) = stored else { return Ok(None) };
    let row = table.read_row(&row_key, &stored, now)?;
    Ok(row.filter(|row| order.columns.iter().all(|column| row[column.place] == named[column.place])))
}

/// The windows that rows of a partition can lie in.
fn windows(table: &OpenTable, order: &RowOrder, request: &RangeRequest, partition: &[Value]) -> Vec<Window> {
    let (mut first, mut last) = (i64::MIN, i64::MAX);
    let Some((window_place, _)) = table.window else { return table.windows_between(first, last) };
    let bucket = table
        .declaration
        .bucket()
        .filter(|bucket| bucket.day_of == Some(table.declaration.columns[window_place].name));
    if let Some(place) = bucket.and_then(|bucket| table.declaration.index(bucket.name)) {
        let column = order.columns[..order.partition_width].iter().position(|column| column.place == place);
        if let Some(Value::Text(text)) = column.and_then(|column| partition.get(column))
            && let Ok(day) = text.parse::<Day>()
        {
            (first, last) = (day.start().0, day.end().0);
        }
    }
    let next = order.columns.get(order.partition_width + request.equal.len());
    if next.is_some_and(|column| column.place == window_place) {
        if let Bound::Included(Value::Timestamp(ms)) | Bound::Excluded(Value::Timestamp(ms)) = &request.low {
            first = first.max(*ms);
        }
        if let Bound::Included(Value::Timestamp(ms)) | Bound::Excluded(Value::Timestamp(ms)) = &request.high {
            last = last.min(*ms);
        }
    }
    table.windows_between(first, last)
}

/// The stored keys of a range: from `start` on, before `end`.
struct Bounds {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl Bounds {
    fn new(
        order: &RowOrder,
        request: &RangeRequest,
        partition: &[Value],
        after: Option<&Position>,
    ) -> Bounds {
        let fixed = || partition.iter().chain(&request.equal);
        let prefix = order.key_of(fixed());
        let mut bounds = Bounds { end: after_prefix(&prefix), start: prefix };
        let column = order.columns.get(order.partition_width + request.equal.len());
        let is_ascending = column.is_none_or(|column| column.order == Order::Ascending);
        let (from, to) =
            if is_ascending { (&request.low, &request.high) } else { (&request.high, &request.low) };
        let key = |value: &Value| order.key_of(fixed().chain([value]));
        match from {
            Bound::Included(value) => bounds.start = key(value),
            // Nothing can follow the last key of all.
            Bound::Excluded(value) => {
                bounds.start = after_prefix(&key(value)).unwrap_or_else(|| vec![0xFF; 2])
            }
            Bound::Unbounded => {}
        }
        match to {
            Bound::Included(value) => bounds.end = after_prefix(&key(value)),
            Bound::Excluded(value) => bounds.end = Some(key(value)),
            Bound::Unbounded => {}
        }
        if let Some(after) = after {
            let mut at = order.key_of(partition.iter().chain(&after.clustering));
            if request.reversed {
                bounds.end = Some(bounds.end.map_or(at.clone(), |end| end.min(at)));
            } else {
                at.push(0);
                bounds.start = bounds.start.max(at);
            }
        }
        bounds
    }

    fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// The first key after all that begin with `prefix`.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

/// The entries of several keyspaces, merged by key.
struct Merged<'t> {
    windows: Vec<Window>,
    iterators: Vec<Iter>,
    heads: Vec<Option<(Slice, Slice)>>,
    reversed: bool,
    table: &'t OpenTable,
}

impl<'t> Merged<'t> {
    fn new(
        windows: Vec<Window>,
        order: &RowOrder,
        bounds: &Bounds,
        reversed: bool,
        table: &'t OpenTable,
    ) -> Result<Merged<'t>> {
        let mut windows = if bounds.is_empty() { Vec::new() } else { windows };
        let is_lookup = order.first_byte != table.rows.first_byte;
        windows.retain(|window| !is_lookup || window.lookups.is_some());
        let start = Bound::Included(bounds.start.clone());
        let end = bounds.end.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let keyspace = |window: &'_ Window| match &window.lookups {
            Some(lookups) if is_lookup => lookups.clone(),
            _ => window.rows.clone(),
        };
        let range = |window| keyspace(window).range((start.clone(), end.clone()));
        let iterators = windows.iter().map(range).collect();
        let mut merged = Merged { heads: vec![None; windows.len()], windows, iterators, reversed, table };
        for source in 0..merged.iterators.len() {
            merged.advance(source)?;
        }
        Ok(merged)
    }

    fn advance(&mut self, source: usize) -> Result<()> {
        let iterator = &mut self.iterators[source];
        let guard = if self.reversed { iterator.next_back() } else { iterator.next() };
        let entry = guard.map(|guard| guard.into_inner()).transpose();
        self.heads[source] = entry.map_err(|error| store_error(self.table.declaration.name, &error))?;
        Ok(())
    }

    /// The next entry and the place of its keyspace.
    fn next(&mut self) -> Result<Option<(usize, Slice, Slice)>> {
        let heads =
            self.heads.iter().enumerate().filter_map(|(source, head)| Some((source, &head.as_ref()?.0)));
        let best =
            if self.reversed { heads.max_by(|a, b| a.1.cmp(b.1)) } else { heads.min_by(|a, b| a.1.cmp(b.1)) };
        let Some(source) = best.map(|(source, _)| source) else { return Ok(None) };
        let head = self.heads[source].take();
        self.advance(source)?;
        Ok(head.map(|(key, bytes)| (source, key, bytes)))
    }
}
