//! Reads of ranges: pages over several partitions, in the order of the table or of a lookup.

use crate::cluster::{Cluster, Mode};
use crate::place::Placer;
use crate::plan::{LookupPlan, StoredTable, TablePlan};
use crate::scan::{Scan, ScanResult};
use crate::sliced_scan;
use crate::{order, write};
use emberkeep_history::limits::{PAGE_BYTES_MAX, REVERSED_INDEX_ROWS_MAX};
use emberkeep_history::{Error, Position, RangeRequest, RawPage, RawRow, Result, UnreadableRow};
use emberkeep_schema::{Lookup, Order, Value, Writes};
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::cmp::Ordering;
use std::ops::Bound;

/// Partitions that are read at once at most, after empty ones.
const PARTITIONS_AT_ONCE_MAX: usize = 16;

/// A range of one table.
pub(crate) struct RangeReader<'r> {
    pub(crate) cluster: &'r Cluster,
    pub(crate) plan: &'r TablePlan,
    pub(crate) placer: Placer<'r>,
    pub(crate) request: &'r RangeRequest,
}

impl RangeReader<'_> {
    /// The rows of one page, and where the next one begins.
    pub(crate) async fn page(&self) -> Result<RawPage> {
        let request = self.request;
        let lookup = match request.lookup {
            Some(name) => Some(self.plan.lookup(name).ok_or_else(|| self.unknown_lookup(name))?),
            None => None,
        };
        self.check_position()?;
        let mut page = RawPage::default();
        let (mut bytes, mut at_once) = (0, 1);
        let mut index = request.after.as_ref().map_or(0, |after| after.partition);
        while index < request.partitions.len() {
            let end = (index + at_once).min(request.partitions.len());
            let wanted = request.rows_max - page.rows.len() + 1;
            let scans = (index..end).map(|index| self.partition(index, lookup, wanted));
            let mut has_rows = false;
            for (number, found) in try_join_all(scans).await?.into_iter().enumerate() {
                has_rows |= !found.rows.is_empty();
                if self.fill(&mut page, &mut bytes, index + number, lookup, found).await? {
                    return Ok(page);
                }
            }
            index = end;
            // A sparse range is read by several partitions at once; a dense one needs no more than the first.
            at_once = if has_rows { 1 } else { (at_once * 2).min(PARTITIONS_AT_ONCE_MAX) };
        }
        page.next = None;
        Ok(page)
    }

    /// Adds what a partition had; `true` = the page is complete and more follows.
    async fn fill(
        &self,
        page: &mut RawPage,
        bytes: &mut usize,
        partition: usize,
        lookup: Option<&LookupPlan>,
        found: ScanResult,
    ) -> Result<bool> {
        let table = lookup.and_then(|lookup| lookup.table.as_ref());
        let room = self.request.rows_max - page.rows.len();
        let (mut rows, mut is_cut) = (found.rows, found.is_cut);
        if rows.len() > room {
            rows.truncate(room);
            is_cut = true;
        }
        if let Some(last) = rows.last() {
            let clustering = last.clustering.clone();
            page.next = Some(Position { partition, clustering });
        }
        // Entries of rows that change may be left over from a former content.
        let is_checked = table.is_some() && self.plan.declaration.writes != Writes::Events;
        let checked = |row: crate::scan::FoundRow| async move {
            match (&row.values, is_checked) {
                (Ok(values), true) => self.checked(lookup, values).await,
                _ => Ok(Some(row.values.map_err(|(column, reason)| (row.key, column, reason)))),
            }
        };
        let count = self.cluster.bounds.requests_max();
        let rows: Vec<_> = stream::iter(rows).map(checked).buffered(count).try_collect().await?;
        for row in rows.into_iter().flatten() {
            match row {
                Ok(row) => {
                    *bytes += row.iter().flatten().map(Value::size_bytes).sum::<usize>();
                    page.rows.push(row);
                }
                Err((key, column, reason)) => {
                    let table = self.plan.declaration.name;
                    let error = Error::Corrupt { table, column, reason };
                    page.unreadable.push(UnreadableRow { key, error });
                }
            }
        }
        Ok(is_cut || *bytes >= PAGE_BYTES_MAX)
    }

    /// The row of an entry; `None` if it has another content by now.
    async fn checked(
        &self,
        lookup: Option<&LookupPlan>,
        entry: &RawRow,
    ) -> Result<Option<std::result::Result<RawRow, (Vec<Value>, &'static str, String)>>> {
        let key = self.plan.key_of_row(entry);
        let row = match write::get(self.cluster, self.plan, &self.placer, &key, Mode::Idempotent).await {
            Ok(row) => row,
            Err(Error::Corrupt { column, reason, .. }) => return Ok(Some(Err((key, column, reason)))),
            Err(error) => return Err(error),
        };
        let columns = lookup.map_or(&[][..], |lookup| lookup.lookup.partition);
        let places: Vec<_> = columns.iter().filter_map(|name| self.plan.declaration.index(name)).collect();
        Ok(row.filter(|row| places.iter().all(|place| row[*place] == entry[*place])).map(Ok))
    }

    async fn partition(
        &self,
        index: usize,
        lookup: Option<&LookupPlan>,
        wanted: usize,
    ) -> Result<ScanResult> {
        let partition = &self.request.partitions[index];
        let after = self.request.after.as_ref().filter(|after| after.partition == index);
        let after = after.map(|after| after.clustering.as_slice());
        match lookup {
            Some(LookupPlan { table: Some(table), .. }) => {
                self.ordered(table, partition, after, wanted).await
            }
            Some(LookupPlan { lookup, table: None }) => {
                let fixed = lookup.partition.iter().copied().zip(partition.iter().cloned()).collect();
                self.indexed(lookup, fixed, after, wanted).await
            }
            None if self.plan.rows.has_slices => {
                let scan = |fixed, after| self.scan(&self.plan.rows, fixed, after, wanted);
                sliced_scan::day(
                    self.cluster,
                    self.plan,
                    self.placer.book,
                    self.request,
                    partition,
                    after,
                    wanted,
                    scan,
                )
                .await
            }
            None => self.ordered(&self.plan.rows, partition, after, wanted).await,
        }
    }

    async fn ordered(
        &self,
        table: &StoredTable,
        partition: &[Value],
        after: Option<&[Value]>,
        wanted: usize,
    ) -> Result<ScanResult> {
        let names = table.partition.iter().map(|place| self.plan.declaration.columns[*place].name);
        let fixed = names.zip(partition.iter().cloned()).collect();
        self.scan(table, fixed, after, wanted).rows(self.cluster).await
    }

    fn scan<'s>(
        &'s self,
        table: &'s StoredTable,
        fixed: Vec<(&'static str, Value)>,
        after: Option<&'s [Value]>,
        wanted: usize,
    ) -> Scan<'s> {
        Scan { plan: self.plan, table, fixed, request: self.request, after, wanted, index: None }
    }

    /// Rows of a secondary index. Servers return those of one partition in the table's order, and others in none, so that a
    /// range against the order, or over partitions, is read whole and sorted here.
    async fn indexed(
        &self,
        lookup: &Lookup,
        fixed: Vec<(&'static str, Value)>,
        after: Option<&[Value]>,
        wanted: usize,
    ) -> Result<ScanResult> {
        let declaration = self.plan.declaration;
        let key = declaration.lookup_key(lookup).split_off(lookup.partition.len());
        let places: Vec<usize> = key.iter().filter_map(|(name, _)| declaration.index(name)).collect();
        let mut scan = self.scan(&self.plan.rows, fixed, after, wanted);
        scan.index = Some(&places);
        if !self.request.reversed && key == declaration.clustering {
            return scan.rows(self.cluster).await;
        }
        let (low, high) = (Bound::Unbounded, Bound::Unbounded);
        let whole = RangeRequest { equal: Vec::new(), low, high, reversed: false, ..self.request.clone() };
        (scan.request, scan.after, scan.wanted) = (&whole, None, REVERSED_INDEX_ROWS_MAX + 1);
        let mut found = scan.rows(self.cluster).await?;
        if found.rows.len() > REVERSED_INDEX_ROWS_MAX || found.is_cut {
            return Err(Error::TooLarge {
                what: format!("a range of a secondary index of {} against its order", declaration.name),
                found: found.rows.len(),
                unit: "rows",
                max: REVERSED_INDEX_ROWS_MAX,
                remedy: "read it forward, or use the layout `scaled`",
            });
        }
        let orders: Vec<Order> = key.iter().map(|(_, order)| *order).collect();
        let compare = |a: &[Value], b: &[Value]| order::compare_rows(a, b, &orders, self.request.reversed);
        found.rows.retain(|row| {
            self.is_inside(&row.clustering)
                && after.is_none_or(|after| compare(&row.clustering, after) == Ordering::Greater)
        });
        found.rows.sort_by(|a, b| compare(&a.clustering, &b.clustering));
        found.is_cut = found.rows.len() > wanted;
        found.rows.truncate(wanted);
        Ok(found)
    }

    /// Whether clustering values lie in the bounds of the range.
    fn is_inside(&self, clustering: &[Value]) -> bool {
        let request = self.request;
        let is_equal = clustering.iter().zip(&request.equal).all(|(a, b)| a == b);
        let Some(value) = clustering.get(request.equal.len()) else { return is_equal };
        let is_low = match &request.low {
            Bound::Included(low) => order::compare(value, low).is_ge(),
            Bound::Excluded(low) => order::compare(value, low).is_gt(),
            Bound::Unbounded => true,
        };
        let is_high = match &request.high {
            Bound::Included(high) => order::compare(value, high).is_le(),
            Bound::Excluded(high) => order::compare(value, high).is_lt(),
            Bound::Unbounded => true,
        };
        is_equal && is_low && is_high
    }

    /// A position out of the range's bounds would show rows that the range does not have.
    fn check_position(&self) -> Result<()> {
        match &self.request.after {
            Some(after) if !self.is_inside(&after.clustering) => {
                Err(Error::InvalidCursor { problem: "its position is not one of this query" })
            }
            _ => Ok(()),
        }
    }

    fn unknown_lookup(&self, name: &str) -> Error {
        let problem = format!("{name} is not a lookup of {}", self.plan.declaration.name);
        Error::Invalid { what: "lookup".into(), problem }
    }
}
