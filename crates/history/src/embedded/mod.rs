//! The store that runs in this process: one folder, one writer, retention by dropping windows.
//!
//! A folder holds `LOCK` (one process), `FORMAT` (its version, see `format.rs`), `LEDGER` (the last committed batch, see `ledger.rs`), `CLEAN` (after a
//! proper stop) and `store/`, the files of fjall. Every table has two keyspaces per retention window, one for its
//! rows and one for their lookup entries, so retention drops whole keyspaces.
//!
//! All changes go through one writer thread behind a bounded queue (`writer.rs`). Reads run beside it.

mod catalog;
mod clock;
mod commit;
mod encode;
mod flush;
mod fold_log;
mod folder_lock;
mod format;
mod journal_files;
mod ledger;
mod open;
mod operations;
mod options;
mod queue;
mod read;
mod retention;
mod row;
mod store_files;
mod table;
mod totals;
mod totals_cache;
mod writer;

pub use clock::Ticker;
pub use options::{Durability, Options};

use crate::contract::{
    Applied, ConditionalWrite, Fold, Folded, HistoryStore, Pending, RangeRequest, RawPage, RawRow, RawTotals,
    Source, Stats, Write, Written,
};
use crate::error::{Error, Result};
use crate::schema::HistorySchema;
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use encode::EncodedRows;
use fjall::Database;
use queue::{Change, Size, WriterHandle};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use table::OpenTable;
use totals::OpenTotals;

/// History in a folder of this process.
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
    Error::not_declared(name)
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
        let writer = writer::start(shared.clone(), opened.ledger, opened.catalog, &options)?;
        Ok(Embedded { shared, writer })
    }

    /// Drops windows whose rows have all expired, and removes some expired rows of tables without windows. The
    /// writer does the same every minute.
    pub async fn retain(&self) -> Result<()> {
        self.writer.submit(Change::Retain, Size::default()).await.map(drop)
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

    fn write(&self, table: &'static TableDeclaration, write: Write) -> Pending<'_, Result<Written>> {
        Box::pin(async move {
            let open = self.shared.table(table)?;
            let change = match write {
                Write::Insert(rows) => {
                    let rows = EncodedRows::new(open, &rows, self.shared.ticker.now())?;
                    Change::Insert { table, rows }
                }
                write => Change::Write { table, write },
            };
            let size = change.size();
            Ok(self.writer.submit(change, size).await?.written)
        })
    }

    fn write_if(
        &self,
        table: &'static TableDeclaration,
        write: ConditionalWrite,
    ) -> Pending<'_, Result<Applied<RawRow>>> {
        Box::pin(async move {
            self.shared.table(table)?;
            let change = Change::WriteIf { table, write };
            let size = change.size();
            let missing = || Error::Internal { reason: "a conditional write without a result".into() };
            self.writer.submit(change, size).await?.applied.ok_or_else(missing)
        })
    }

    fn get(&self, table: &'static TableDeclaration, key: Vec<Value>) -> Pending<'_, Result<Option<RawRow>>> {
        self.read(move |shared| read::get(shared, shared.table(table)?, &key))
    }

    fn range(&self, request: RangeRequest) -> Pending<'_, Result<RawPage>> {
        self.read(move |shared| read::range(shared, shared.table(request.table)?, &request))
    }

    fn fold(&self, folds: Vec<Fold>) -> Pending<'_, Result<Folded>> {
        Box::pin(async move {
            for fold in &folds {
                self.shared.totals(fold.totals)?;
            }
            let change = Change::Fold(folds);
            let size = change.size();
            Ok(self.writer.submit(change, size).await?.folded)
        })
    }

    fn totals(
        &self,
        totals: &'static TotalsDeclaration,
        key: Value,
    ) -> Pending<'_, Result<Option<RawTotals>>> {
        self.read(move |shared| shared.totals(totals)?.read(&key))
    }

    fn sync(&self) -> Pending<'_, Result<()>> {
        Box::pin(async move { self.writer.submit(Change::Sync, Size::default()).await.map(drop) })
    }

    fn close_source(&self, totals: &'static TotalsDeclaration, source: Source) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            self.shared.totals(totals)?;
            self.writer
                .submit(Change::CloseSource { totals, source }, Size { rows: 1, bytes: 0 })
                .await
                .map(drop)
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
