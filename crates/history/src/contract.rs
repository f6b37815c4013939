//! The interface that every history store implements. Users call it through `History`.
//!
//! What a store promises:
//! 1. A write that returned `Ok` is stored in all orders of its rows: the table and its lookups.
//! 2. A write that returned an error may have stored some of its rows. Rows overwrite themselves by key, so it
//!    can be repeated. (The embedded store writes all of a call or nothing.) A conditional write whose outcome
//!    cannot be found out is `OutcomeUnknown`: read the row.
//! 3. An expired row is never returned. The TTL of a row is counted from the time that its declaration names.
//! 4. Rows of a range come in the declared order, partitions in the order of the request. Values compare as in CQL.
//! 5. One row that cannot be read does not hide the rest of its range: the page names its key.
//! 6. A fold of totals changes nothing for entries at or below the position that the source has reached.
//! 7. Only conditional writes are linearizable; other reads may be older than a concurrent write.
//!
//! Calls get values that `History` has validated: every value is of its column's type, every key is complete, and
//! the write is of the kind that the table declares.

use crate::error::{Error, Result};
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;

/// A boxed future of a store.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The values of all columns of a row, in the order of the declaration.
pub type RawRow = Vec<Option<Value>>;

/// A change of rows of one table. Which of them a table takes is declared by `writes:`.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// `events`: rows whose key decides their content. Nothing is read. Rows of one key are identical.
    Insert(Vec<RawRow>),
    /// `rows`: all declared columns are replaced, an absent value removes the stored one, and the last write wins.
    /// Columns that the caller's declaration does not know are preserved. Each key stands once.
    Upsert(Vec<RawRow>),
    /// `rows`: removes the row of this primary key, if there is one.
    Delete(Vec<Value>),
    /// `versioned`: removes and writes rows of one partition together, as of a version. For each key the highest
    /// version wins, in whatever order the writes arrive; at equal versions a removal wins. Each key stands once.
    Replace {
        /// The version, above 0: for each key the highest one wins.
        version: i64,
        /// Primary keys of rows to remove.
        removed: Vec<Vec<Value>>,
        /// Rows to write, all of the partition.
        rows: Vec<RawRow>,
    },
}

/// A change of one row of a table of `writes: conditional`.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionalWrite {
    /// Writes the row if its key does not exist.
    InsertIfAbsent(RawRow),
    /// Writes `row` if the row of its key has the values of `expected` in all declared columns.
    ReplaceIf {
        /// The row as it must be. It has the same key.
        expected: RawRow,
        /// The row as it shall be.
        row: RawRow,
    },
    /// Removes the row if it has these values in all declared columns.
    DeleteIf(RawRow),
}

/// What a write did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows that were written or removed. Those that a higher version had replaced already are counted, too: a
    /// store may not know.
    pub rows: usize,
    /// Rows that were not written, because their TTL had ended already.
    pub expired: usize,
}

/// What became of a conditional write.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied<T> {
    /// The condition held, and the row is written or removed.
    Yes,
    /// The condition did not hold, and nothing was written: the row as it is, `None` if there is none.
    No(Option<T>),
}

/// A position in a range: after a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// Index of the partition in the request.
    pub partition: usize,
    /// The values of the row's key in the order of the range, without the partition's.
    pub clustering: Vec<Value>,
}

/// A range of rows.
#[derive(Debug, Clone)]
pub struct RangeRequest {
    /// The table whose rows are read.
    pub table: &'static TableDeclaration,
    /// Name of the lookup; `None` = the table's own order.
    pub lookup: Option<&'static str>,
    /// The partition keys, in the order in which their rows are returned.
    pub partitions: Vec<Vec<Value>>,
    /// Values that the first clustering columns must have.
    pub equal: Vec<Value>,
    /// Bounds of the clustering column after those, by value: low is the smaller one in any order.
    pub low: Bound<Value>,
    /// The upper bound, as `low`.
    pub high: Bound<Value>,
    /// Against the declared order.
    pub reversed: bool,
    /// Where an earlier page ended.
    pub after: Option<Position>,
    /// Most rows to return.
    pub rows_max: usize,
}

/// A page of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawPage {
    /// The rows; possibly none although more follow.
    pub rows: Vec<RawRow>,
    /// Rows that are there and cannot be read. They do not hide the others.
    pub unreadable: Vec<UnreadableRow>,
    /// Where the next page continues; `None` at the end.
    pub next: Option<Position>,
}

/// A row of a range that is stored and cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadableRow {
    /// The values of its primary key.
    pub key: Vec<Value>,
    /// What is wrong with it: `Corrupt` or `Damaged`.
    pub error: Error,
}

/// Where the entries of a fold come from: a log with the incarnation that it had.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source(String);

impl Source {
    /// The source of a log: partition, name of the log, and its incarnation.
    pub fn of_log(partition: &str, log: &str, incarnation: &str) -> Source {
        Source(format!("{partition}/{log}/{incarnation}"))
    }

    /// Its text, as stored.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// One entry of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldEntry {
    /// Its position in the source, from 1 on.
    pub position: u64,
    /// The key of the totals.
    pub key: Value,
    /// What is added to each sum.
    pub amounts: Vec<i64>,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Entries of one source in ascending order. A caller delivers a source's entries in order and without gaps;
/// it may deliver entries again, also beside another caller that does the same.
#[derive(Debug, Clone)]
pub struct Fold {
    /// The totals to which they are added.
    pub totals: &'static TotalsDeclaration,
    /// Where the entries come from.
    pub source: Source,
    /// The entries; several may have the same position if their keys differ.
    pub entries: Vec<FoldEntry>,
}

/// What a fold did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Folded {
    /// Entries that were added.
    pub added: usize,
    /// Entries that had been added before.
    pub repeated: usize,
}

/// The totals of one key over all sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawTotals {
    /// The recorded sums, in the order of the declaration.
    pub sums: Vec<i64>,
    /// The latest time of an entry, in milliseconds since 1970. A replay gives the same.
    pub last_updated: i64,
}

/// Counters of a store since it was opened, and what is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Rows that were written or removed.
    pub rows_written: u64,
    /// Commits to the backend.
    pub commits: u64,
    /// Rows that wait for the writer now.
    pub queued_rows: usize,
    /// Rows that may wait.
    pub queue_rows_max: usize,
    /// Bytes of the rows that wait.
    pub queued_bytes: usize,
    /// Bytes that may wait.
    pub queue_bytes_max: usize,
    /// Calls that waited for a place in the queue.
    pub waits: u64,
    /// Calls that got `Busy`.
    pub refused: u64,
    /// Retention windows that exist (embedded).
    pub windows: usize,
    /// Retention windows that were dropped (embedded).
    pub windows_dropped: u64,
}

/// A backend that stores history.
pub trait HistoryStore: Send + Sync + 'static {
    /// The store's name in messages, without credentials.
    fn name(&self) -> String;

    /// The store's time, in milliseconds since 1970.
    fn now(&self) -> i64;

    /// Changes rows of one table.
    fn write(&self, table: &'static TableDeclaration, write: Write) -> Pending<'_, Result<Written>>;

    /// Changes a row if it is as expected. One of several concurrent callers wins.
    fn write_if(
        &self,
        table: &'static TableDeclaration,
        write: ConditionalWrite,
    ) -> Pending<'_, Result<Applied<RawRow>>>;

    /// The row of a primary key.
    fn get(&self, table: &'static TableDeclaration, key: Vec<Value>) -> Pending<'_, Result<Option<RawRow>>>;

    /// One page of a range.
    fn range(&self, request: RangeRequest) -> Pending<'_, Result<RawPage>>;

    /// Adds entries of a source to totals, each once. A sum that does not fit, or a source that is closed, refuses all of them.
    fn fold(&self, folds: Vec<Fold>) -> Pending<'_, Result<Folded>>;

    /// The totals of a key; `None` if nothing was added.
    fn totals(
        &self,
        totals: &'static TotalsDeclaration,
        key: Value,
    ) -> Pending<'_, Result<Option<RawTotals>>>;

    /// Ends a source: later folds of it are refused with `SourceClosed`, for ever. Its sums stay. Close a source for
    /// all totals that it feeds, and only after its consumer has acknowledged everything: an entry that was added
    /// and not acknowledged would be delivered under another source, and count again. The store may
    /// merge its rows into the key's base row (source `""`), whose position is the sum of those merged.
    fn close_source(&self, totals: &'static TotalsDeclaration, source: Source) -> Pending<'_, Result<()>>;

    /// Waits until everything that was acknowledged before this call survives a crash of the system. A server has
    /// settings of its own for that; there it does nothing.
    fn sync(&self) -> Pending<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether it was opened; `false` only while a [`Deferred`](crate::Deferred) store waits for it.
    fn is_open(&self) -> bool {
        true
    }

    /// Counters since the store was opened, and how full its queue is.
    fn stats(&self) -> Stats;

    /// Waits for writes in progress, makes them durable and closes the store.
    fn close(&self) -> Pending<'_, Result<()>>;
}
