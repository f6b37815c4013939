//! The store that runs in this process: one folder, one writer, retention by dropping windows.
//!
//! A folder holds `LOCK` (one process), `LEDGER` (the last committed batch, see `ledger.rs`), `CLEAN` (after a
//! proper stop) and `store/`, the files of fjall. Every table has a keyspace per retention window; a row and its
//! lookup entries lie in the same one, so retention drops whole keyspaces.
//!
//! All changes go through one writer thread behind a bounded queue (`writer.rs`). Reads run beside it.

mod catalog;
mod clock;
mod commit;
mod flush;
mod folder_lock;
mod journal_files;
mod ledger;
mod open;
mod options;
mod read;
mod retention;
mod row;
mod store_files;
mod table;
mod totals;
mod writer;

pub use emberkeep_hot::embedded::{Clock, ManualClock};
pub use open::HistorySchema;
pub use options::{Durability, Options};

use crate::contract::{
    Fold, Folded, HistoryStore, Inserted, Pending, RangeRequest, RawPage, RawRow, RawTotals, Source, Stats,
    Write, Written,
};
use crate::error::{Error, Result};
use clock::Ticker;
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use fjall::Database;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use table::OpenTable;
use totals::OpenTotals;
use writer::{Change, WriterHandle};

/// The embedded store.
pub struct Embedded {
    shared: Arc<Shared>,
    writer: WriterHandle,
}

/// What reads and the writer share.
struct Shared {
    database: Database,
    folder: PathBuf,
    tables: HashMap<&'static str, OpenTable>,
    totals: HashMap<&'static str, OpenTotals>,
    ticker: Ticker,
    /// The lock of the folder. Last, because the fields above have the files of the store below open.
    _lock: File,
}

impl Shared {
    fn table(&self, declaration: &'static TableDeclaration) -> Result<&OpenTable> {
        let table = self.tables.get(declaration.name);
        table.ok_or_else(|| not_opened(declaration.name))
    }

    fn totals(&self, declaration: &'static TotalsDeclaration) -> Result<&OpenTotals> {
        self.totals.get(declaration.name).ok_or_else(|| not_opened(declaration.name))
    }
}

fn not_opened(name: &str) -> Error {
    Error::invalid("table", format!("{name} is not among those that the store was opened with"))
}

/// An error of the store below, with the table or folder that it is about.
fn store_error(place: &str, error: &fjall::Error) -> Error {
    let is_io = match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => Some(error),
        _ => None,
    };
    match (error, is_io) {
        (fjall::Error::Poisoned, _) => Error::Stopped { reason: "an earlier write failed".into() },
        // A short file is damage, not a failing disk.
        (_, Some(error)) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Error::Stopped { reason: format!("{place}: {error}") }
        }
        _ => {
            Error::Damaged { place: place.to_owned(), problem: format!("{error:?}"), remedy: ledger::REMEDY }
        }
    }
}

impl Embedded {
    /// Opens a folder, which is created if it does not exist, with the tables that the caller will use.
    pub fn open(folder: impl AsRef<Path>, schema: HistorySchema, options: Options) -> Result<Embedded> {
        let opened = open::open(folder.as_ref(), schema, &options)?;
        let shared = Arc::new(opened.shared);
        let writer = WriterHandle::start(shared.clone(), opened.ledger, opened.catalog, &options)?;
        Ok(Embedded { shared, writer })
    }

    /// Drops windows whose rows have all expired, and removes some expired rows of tables without windows. The
    /// writer does the same every minute.
    pub async fn retain(&self) -> Result<()> {
        self.writer.submit(Change::Retain, 0).await.map(drop)
    }

    /// Runs a read on a thread that may wait for the disk.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Pending<'_, Result<T>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            if self.writer.is_closed() {
                return Err(Error::Closed);
            }
            let run = move || read(&shared);
            match tokio::task::spawn_blocking(run).await {
                Ok(result) => result,
                Err(error) => Err(Error::Stopped { reason: format!("a read failed: {error}") }),
            }
        })
    }
}

impl HistoryStore for Embedded {
    fn name(&self) -> String {
        format!("embedded history in {}", self.shared.folder.display())
    }

    fn now(&self) -> i64 {
        self.shared.ticker.now()
    }

    fn write(&self, table: &'static TableDeclaration, writes: Vec<Write>) -> Pending<'_, Result<Written>> {
        let rows = writes.len();
        Box::pin(async move {
            self.shared.table(table)?;
            Ok(self.writer.submit(Change::Write { table, writes }, rows).await?.written)
        })
    }

    fn insert_if_absent(
        &self,
        table: &'static TableDeclaration,
        row: RawRow,
    ) -> Pending<'_, Result<Inserted<RawRow>>> {
        Box::pin(async move {
            self.shared.table(table)?;
            let outcome = self.writer.submit(Change::InsertIfAbsent { table, row }, 1).await?;
            let missing = || Error::Internal { reason: "a conditional insert without a result".into() };
            outcome.inserted.ok_or_else(missing)
        })
    }

    fn get(&self, table: &'static TableDeclaration, key: Vec<Value>) -> Pending<'_, Result<Option<RawRow>>> {
        self.read(move |shared| read::get(shared, shared.table(table)?, &key))
    }

    fn range(&self, request: RangeRequest) -> Pending<'_, Result<RawPage>> {
        self.read(move |shared| read::range(shared, shared.table(request.table)?, &request))
    }

    fn fold(&self, fold: Fold) -> Pending<'_, Result<Folded>> {
        let rows = fold.entries.len().min(crate::limits::BATCH_ROWS_MAX);
        Box::pin(async move {
            self.shared.totals(fold.totals)?;
            Ok(self.writer.submit(Change::Fold(fold), rows).await?.folded)
        })
    }

    fn totals(
        &self,
        totals: &'static TotalsDeclaration,
        key: Value,
    ) -> Pending<'_, Result<Option<RawTotals>>> {
        self.read(move |shared| shared.totals(totals)?.read(&key))
    }

    fn close_source(&self, totals: &'static TotalsDeclaration, source: Source) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            self.shared.totals(totals)?;
            self.writer.submit(Change::CloseSource { totals, source }, 1).await.map(drop)
        })
    }

    fn stats(&self) -> Stats {
        let windows = self.shared.tables.values().map(|table| table.windows.read().len()).sum();
        Stats { windows, ..self.writer.stats() }
    }

    fn close(&self) -> Pending<'_, Result<()>> {
        Box::pin(self.writer.close())
    }
}
