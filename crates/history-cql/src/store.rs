//! The store: the contract of history over one cluster.

use crate::clock::StoreClock;
use crate::cluster::{Cluster, Mode};
use crate::connect::{self, ConnectError};
use crate::options::CqlOptions;
use crate::place::Placer;
use crate::plan::TablePlan;
use crate::read::RangeReader;
use crate::slices::SliceBook;
use crate::totals::{ClosedSources, Totals, TotalsPlan};
use crate::url::CqlUrl;
use crate::write::{self, Writer};
use crate::{conditional, schema};
use emberkeep_history::{
    Applied, ConditionalWrite, Error, Fold, Folded, HistorySchema, HistoryStore, Pending, RangeRequest,
    RawPage, RawRow, RawTotals, Result, Source, Stats, Write, Written,
};
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// History on ScyllaDB or Cassandra.
pub struct CqlStore {
    cluster: Cluster,
    url: CqlUrl,
    tables: HashMap<&'static str, TablePlan>,
    totals: HashMap<&'static str, TotalsPlan>,
    book: SliceBook,
    closed_sources: ClosedSources,
    clock: StoreClock,
    is_closed: AtomicBool,
}

impl fmt::Debug for CqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CqlStore({})", self.url)
    }
}

impl CqlStore {
    /// Connects to a cluster, and compares its keyspace with the tables that the caller will use.
    pub async fn connect(
        url: &str,
        schema: HistorySchema,
        options: CqlOptions,
    ) -> Result<CqlStore, ConnectError> {
        let url = CqlUrl::parse(url)?;
        schema.check().map_err(ConnectError::Declaration)?;
        if !schema.all_totals().is_empty() {
            connect::check_totals(&url)?;
        }
        let cluster = connect::connect(&url, &options).await?;
        schema::prepare(&cluster, &url, &schema, options.schema).await?;
        let (keyspace, layout) = (url.keyspace(), url.layout());
        let table = |table: &&'static TableDeclaration| (table.name, TablePlan::new(table, keyspace, layout));
        let totals = |totals: &&'static TotalsDeclaration| (totals.name, TotalsPlan::new(totals, keyspace));
        Ok(CqlStore {
            tables: schema.tables().iter().map(table).collect(),
            totals: schema.all_totals().iter().map(totals).collect(),
            book: SliceBook::new(keyspace, layout),
            closed_sources: ClosedSources::new(keyspace, layout),
            clock: StoreClock::new(options.clock),
            is_closed: AtomicBool::new(false),
            cluster,
            url,
        })
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    fn plan(&self, table: &TableDeclaration) -> Result<&TablePlan> {
        self.check_open()?;
        self.tables.get(table.name).ok_or_else(|| not_opened(table.name))
    }

    fn totals_of(&self, totals: &TotalsDeclaration) -> Result<Totals<'_>> {
        self.check_open()?;
        let plan = self.totals.get(totals.name).ok_or_else(|| not_opened(totals.name))?;
        Ok(Totals { cluster: &self.cluster, plan, closed: &self.closed_sources })
    }

    fn placer(&self) -> Placer<'_> {
        Placer { cluster: &self.cluster, book: &self.book }
    }
}

fn not_opened(name: &str) -> Error {
    Error::not_declared(name)
}

/// Rows and bytes of a write.
fn size(write: &Write) -> (usize, usize) {
    let bytes = |rows: &[RawRow]| rows.iter().flatten().flatten().map(Value::size_bytes).sum();
    match write {
        Write::Insert(rows) | Write::Upsert(rows) => (rows.len(), bytes(rows)),
        Write::Delete(_) => (1, 0),
        Write::Replace { removed, rows, .. } => (removed.len() + rows.len(), bytes(rows)),
    }
}

impl HistoryStore for CqlStore {
    fn name(&self) -> String {
        self.url.to_string()
    }

    fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    fn write(&self, table: &'static TableDeclaration, write: Write) -> Pending<'_, Result<Written>> {
        Box::pin(async move {
            let plan = self.plan(table)?;
            let (rows, bytes) = size(&write);
            let _place = self.cluster.bounds.enter(rows, bytes).await?;
            let (timestamp, now_ms) = (self.clock.write_timestamp(), self.clock.now_ms());
            let writer = Writer { cluster: &self.cluster, plan, placer: self.placer(), timestamp, now_ms };
            writer.write(write).await
        })
    }

    fn write_if(
        &self,
        table: &'static TableDeclaration,
        write: ConditionalWrite,
    ) -> Pending<'_, Result<Applied<RawRow>>> {
        Box::pin(async move {
            let plan = self.plan(table)?;
            let _place = self.cluster.bounds.enter(1, 0).await?;
            conditional::write_if(&self.cluster, plan, write, self.clock.now_ms()).await
        })
    }

    fn get(&self, table: &'static TableDeclaration, key: Vec<Value>) -> Pending<'_, Result<Option<RawRow>>> {
        Box::pin(async move {
            let plan = self.plan(table)?;
            write::get(&self.cluster, plan, &self.placer(), &key, Mode::Idempotent).await
        })
    }

    fn range(&self, request: RangeRequest) -> Pending<'_, Result<RawPage>> {
        Box::pin(async move {
            let plan = self.plan(request.table)?;
            let placer = self.placer();
            RangeReader { cluster: &self.cluster, plan, placer, request: &request }.page().await
        })
    }

    fn fold(&self, folds: Vec<Fold>) -> Pending<'_, Result<Folded>> {
        Box::pin(async move {
            let entries = folds.iter().map(|fold| fold.entries.len()).sum();
            let _place = self.cluster.bounds.enter(entries, 0).await?;
            // All sums first: nothing is written if one of them does not fit.
            let mut sums = Vec::with_capacity(folds.len());
            for fold in folds {
                let totals = self.totals_of(fold.totals)?;
                let added = totals.add_up(fold).await?;
                sums.push((totals, added));
            }
            let mut folded = Folded::default();
            for (totals, (added, rows)) in sums {
                totals.write(rows).await?;
                folded.added += added.added;
                folded.repeated += added.repeated;
            }
            Ok(folded)
        })
    }

    fn totals(
        &self,
        totals: &'static TotalsDeclaration,
        key: Value,
    ) -> Pending<'_, Result<Option<RawTotals>>> {
        Box::pin(async move { self.totals_of(totals)?.read(&key).await })
    }

    fn close_source(&self, totals: &'static TotalsDeclaration, source: Source) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            self.totals_of(totals)?;
            self.closed_sources.close(&self.cluster, totals, &source, self.clock.now_ms()).await
        })
    }

    fn stats(&self) -> Stats {
        self.cluster.bounds.stats()
    }

    fn close(&self) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            if !self.is_closed.swap(true, Ordering::Relaxed) {
                self.cluster.bounds.close().await;
            }
            Ok(())
        })
    }
}
