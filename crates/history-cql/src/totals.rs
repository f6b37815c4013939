//! Totals by source: absolute sums as of a position, written with the position as their timestamp.
//!
//! The sum of a source up to a position is the same for everyone who adds it up, so a replay and a second deliverer write
//! what is there already, and the highest position wins. After its row of the source, a fold writes the projection that
//! readers see: the sum over all sources as of the sum of their positions.
//!
//! A source that has ended is closed by a conditional insert, and later folds of it are refused. A fold under way at that
//! moment still counts. The rows of closed sources stay beside the others.

use crate::cluster::{Cluster, Mode, Statement};
use crate::conditional;
use crate::plan::TablePlan;
use crate::values::Cell;
use emberkeep_history::{
    ClosedSource, ConditionalWrite, Error, Fold, FoldEntry, Folded, RawTotals, Result, Source,
};
use emberkeep_schema::{CqlLayout, Table, Timestamp, TotalsDeclaration, Value, cql_name};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use scylla::value::{CqlTimestamp, CqlValue, Row};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Declared totals on the cluster.
#[derive(Debug)]
pub(crate) struct TotalsPlan {
    declaration: &'static TotalsDeclaration,
    /// Key, source, position, sums, last_updated, timestamp.
    insert_source: Arc<str>,
    /// Key, sums, last_updated, timestamp.
    insert_projection: Arc<str>,
    /// Key. It returns source, position, last_updated and the sums.
    select_sources: Arc<str>,
    /// Key, source. It returns the row of one source.
    select_source: Arc<str>,
}

/// The row of a source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourceRow {
    source: String,
    position: i64,
    last_updated: i64,
    sums: Vec<i64>,
}

/// The changed rows of one source, by key.
pub(crate) type SourceRows = Vec<(Value, Option<SourceRow>)>;

/// Sources that are known to be closed. A source is never opened again.
#[derive(Debug)]
pub(crate) struct ClosedSources {
    plan: TablePlan,
    known: Mutex<HashSet<(&'static str, String)>>,
}

/// Closed sources that are remembered at most.
const CLOSED_REMEMBERED_MAX: usize = 100_000;

impl TotalsPlan {
    pub(crate) fn new(declaration: &'static TotalsDeclaration, keyspace: &str) -> TotalsPlan {
        let key = cql_name(declaration.key.0);
        let sums: Vec<_> = declaration.sums.iter().map(|sum| cql_name(sum.name)).collect();
        let (sums, marks) = (sums.join(", "), vec!["?"; sums.len()].join(", "));
        let (name, by_source) =
            (format!("{keyspace}.{}", declaration.name), format!("{keyspace}.{}", declaration.by_source));
        let select =
            format!("SELECT source, position, last_updated, {sums} FROM {by_source} WHERE {key} = ?");
        TotalsPlan {
            declaration,
            insert_source: format!(
                "INSERT INTO {by_source} ({key}, source, position, {sums}, last_updated) VALUES (?, ?, ?, {marks}, ?) USING TIMESTAMP ?"
            )
            .into(),
            insert_projection: format!(
                "INSERT INTO {name} ({key}, {sums}, last_updated) VALUES (?, {marks}, ?) USING TIMESTAMP ?"
            )
            .into(),
            select_source: format!("{select} AND source = ?").into(),
            select_sources: select.into(),
        }
    }

    fn source_statement(&self, key: &Value, row: &SourceRow) -> Statement {
        let mut cells = cells_of(key, row);
        cells.push(Cell::Value(Value::BigInt(row.position)));
        Statement { text: self.insert_source.clone(), cells }
    }

    fn corrupt(&self) -> Error {
        let reason = "it is absent or of another type".into();
        Error::Corrupt { table: self.declaration.by_source, column: "position", reason }
    }

    fn parse(&self, row: Row) -> Result<SourceRow> {
        let mut columns = row.columns.into_iter();
        let (Some(Some(CqlValue::Text(source))), Some(Some(CqlValue::BigInt(position)))) =
            (columns.next(), columns.next())
        else {
            return Err(self.corrupt());
        };
        let last_updated = match columns.next() {
            Some(Some(CqlValue::Timestamp(CqlTimestamp(ms)))) => ms,
            _ => 0,
        };
        // A sum that was declared later is absent in older rows.
        let sum = |value| match value {
            Some(CqlValue::BigInt(sum)) => sum,
            _ => 0,
        };
        Ok(SourceRow { source, position, last_updated, sums: columns.map(sum).collect() })
    }

    fn add(&self, sums: &mut [i64], amounts: &[i64]) -> Result<()> {
        for ((sum, amount), declared) in sums.iter_mut().zip(amounts).zip(self.declaration.sums) {
            let overflow = || Error::Overflow { table: self.declaration.name, sum: declared.name };
            *sum = sum.checked_add(*amount).ok_or_else(overflow)?;
        }
        Ok(())
    }
}

/// Key, source, position, sums, last_updated.
fn cells_of(key: &Value, row: &SourceRow) -> Vec<Cell> {
    let head = [key.clone(), Value::Text(row.source.clone()), Value::BigInt(row.position)];
    let sums = row.sums.iter().map(|sum| Value::BigInt(*sum));
    head.into_iter().chain(sums).chain([Value::Timestamp(row.last_updated)]).map(Cell::Value).collect()
}

impl ClosedSources {
    pub(crate) fn new(keyspace: &str, layout: CqlLayout) -> ClosedSources {
        ClosedSources {
            plan: TablePlan::new(ClosedSource::DECLARATION, keyspace, layout),
            known: Mutex::default(),
        }
    }

    pub(crate) async fn close(
        &self,
        cluster: &Cluster,
        totals: &'static TotalsDeclaration,
        source: &Source,
        now_ms: i64,
    ) -> Result<()> {
        let row = ClosedSource {
            totals: totals.name.to_owned(),
            source: source.text().to_owned(),
            closed_at: Timestamp(now_ms),
        };
        let write = ConditionalWrite::InsertIfAbsent(row.into_values());
        conditional::write_if(cluster, &self.plan, write, now_ms).await?;
        self.remember(totals.name, source.text());
        Ok(())
    }

    fn remember(&self, totals: &'static str, source: &str) {
        let mut known = self.known.lock();
        if known.len() >= CLOSED_REMEMBERED_MAX {
            known.clear();
        }
        known.insert((totals, source.to_owned()));
    }

    async fn is_closed(&self, cluster: &Cluster, totals: &'static str, source: &str) -> Result<bool> {
        if self.known.lock().contains(&(totals, source.to_owned())) {
            return Ok(true);
        }
        let cells = [totals, source].map(|text| Cell::Value(Value::Text(text.to_owned()))).to_vec();
        let statement = Statement { text: self.plan.rows.get.clone(), cells };
        let name = ClosedSource::DECLARATION.name;
        let (rows, _) = cluster.read(name, Mode::Idempotent, &statement, 1, usize::MAX).await?;
        if !rows.is_empty() {
            self.remember(totals, source);
        }
        Ok(!rows.is_empty())
    }
}

/// Totals of a store.
pub(crate) struct Totals<'t> {
    pub(crate) cluster: &'t Cluster,
    pub(crate) plan: &'t TotalsPlan,
    pub(crate) closed: &'t ClosedSources,
}

impl Totals<'_> {
    /// The sums with the entries of a fold: the rows to write, `None` for a key whose row has them. It writes nothing.
    pub(crate) async fn add_up(&self, fold: Fold) -> Result<(Folded, SourceRows)> {
        let (name, source) = (self.plan.declaration.name, fold.source.text());
        if self.closed.is_closed(self.cluster, name, source).await? {
            return Err(self.is_closed_error(source));
        }
        let count = self.cluster.bounds.requests_max();
        let read = |(key, entries): (Value, Vec<FoldEntry>)| async move {
            let row = self.source_row(&key, source).await?;
            Ok::<_, Error>((key, entries, row))
        };
        let rows = stream::iter(by_key(fold.entries)).map(read).buffer_unordered(count);
        let rows: Vec<_> = rows.try_collect().await?;
        let (mut folded, mut changed) = (Folded::default(), Vec::with_capacity(rows.len()));
        for (key, entries, mut row) in rows {
            let before = row.position;
            for entry in entries {
                if entry.position as i64 <= row.position {
                    folded.repeated += 1;
                    continue;
                }
                self.plan.add(&mut row.sums, &entry.amounts)?;
                (row.position, row.last_updated) = (entry.position as i64, row.last_updated.max(entry.at_ms));
                folded.added += 1;
            }
            changed.push((key, (row.position > before).then_some(row)));
        }
        Ok((folded, changed))
    }

    /// Writes rows of a source and the projections of their keys.
    pub(crate) async fn write(&self, changed: SourceRows) -> Result<()> {
        let (name, count) = (self.plan.declaration.name, self.cluster.bounds.requests_max());
        let write = |(key, row): (Value, Option<SourceRow>)| async move {
            if let Some(row) = row {
                let statement = self.plan.source_statement(&key, &row);
                self.cluster.write(name, vec![statement], 1).await?;
            }
            // Also for entries that were added before: a process that was killed may not have written it.
            self.project(&key).await
        };
        stream::iter(changed).map(write).buffer_unordered(count).try_collect().await
    }

    fn is_closed_error(&self, source: &str) -> Error {
        Error::SourceClosed { table: self.plan.declaration.name, name: source.to_owned() }
    }

    async fn source_row(&self, key: &Value, source: &str) -> Result<SourceRow> {
        let cells = [key.clone(), Value::Text(source.to_owned())].map(Cell::Value).to_vec();
        let rows = self.rows(&self.plan.select_source, cells).await?;
        let sums = || vec![0; self.plan.declaration.sums.len()];
        let new = || SourceRow { source: source.to_owned(), position: 0, last_updated: 0, sums: sums() };
        Ok(rows.into_iter().next().unwrap_or_else(new))
    }

    async fn rows(&self, text: &Arc<str>, cells: Vec<Cell>) -> Result<Vec<SourceRow>> {
        let statement = Statement { text: text.clone(), cells };
        let name = self.plan.declaration.by_source;
        let (rows, _) = self.cluster.read(name, Mode::Idempotent, &statement, usize::MAX, usize::MAX).await?;
        rows.into_iter().map(|row| self.plan.parse(row)).collect()
    }

    async fn sources(&self, key: &Value) -> Result<Vec<SourceRow>> {
        self.rows(&self.plan.select_sources, vec![Cell::Value(key.clone())]).await
    }

    /// The totals of a key; `None` if nothing was added.
    pub(crate) async fn read(&self, key: &Value) -> Result<Option<RawTotals>> {
        let rows = self.sources(key).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut totals = RawTotals { sums: vec![0; self.plan.declaration.sums.len()], last_updated: 0 };
        for row in &rows {
            self.plan.add(&mut totals.sums, &row.sums)?;
            totals.last_updated = totals.last_updated.max(row.last_updated);
        }
        Ok(Some(totals))
    }

    /// Writes the row that readers see, as of the positions that were read.
    async fn project(&self, key: &Value) -> Result<()> {
        let rows = self.sources(key).await?;
        let (mut sums, mut last_updated, mut position) =
            (vec![0_i64; self.plan.declaration.sums.len()], 0, 0_i64);
        for row in &rows {
            // The sources themselves are exact, and a read of the totals reports an overflow.
            sums.iter_mut().zip(&row.sums).for_each(|(sum, of)| *sum = sum.saturating_add(*of));
            last_updated = last_updated.max(row.last_updated);
            position = position.saturating_add(row.position);
        }
        let shown = sums
            .iter()
            .zip(self.plan.declaration.sums)
            .map(|(sum, of)| Value::BigInt(sum.div_euclid(of.per)));
        let tail = [Value::Timestamp(last_updated), Value::BigInt(position)];
        let cells = [key.clone()].into_iter().chain(shown).chain(tail).map(Cell::Value).collect();
        let statement = Statement { text: self.plan.insert_projection.clone(), cells };
        self.cluster.write(self.plan.declaration.name, vec![statement], 0).await?;
        Ok(())
    }
}

/// The entries of each key, in order.
fn by_key(entries: Vec<FoldEntry>) -> Vec<(Value, Vec<FoldEntry>)> {
    let mut groups: Vec<(Value, Vec<FoldEntry>)> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    for entry in entries {
        let mut key = Vec::new();
        crate::values::push_bytes(&entry.key, &mut key);
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push((entry.key.clone(), Vec::new()));
        }
        groups[place].1.push(entry);
    }
    groups
}
