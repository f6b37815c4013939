//! The history that a game uses: a store, and typed calls on its tables and totals.

use crate::contract::{
    Applied, ConditionalWrite, Fold, FoldEntry, Folded, HistoryStore, RawRow, Source, Stats, Write, Written,
};
use crate::error::{Error, Result};
use crate::key_encoding;
use crate::limits::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, FOLD_ENTRIES_MAX, SOURCE_BYTES_MAX};
use crate::query::{Query, typed};
use crate::validate::{self, distinct_keys};
use emberkeep_schema::{Column, RowKey, Rows, Table, Timestamp, Totals, Writes};
use std::collections::HashSet;
use std::sync::Arc;

/// History on some store. Cheap to clone.
#[derive(Clone)]
pub struct History {
    store: Arc<dyn HistoryStore>,
}

/// The totals of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct TotalsOf<T> {
    /// The sums as readers see them: a sum declared `per n` counts whole units.
    pub sums: T,
    /// The sums as recorded.
    pub recorded: T,
    /// The latest time of an entry.
    pub last_updated: Timestamp,
}

/// An entry of a source, to be added to totals.
#[derive(Debug, Clone, PartialEq)]
pub struct TotalsEntry<T: Totals> {
    /// Its position in the source, from 1 on. Several entries may have the same one if their keys differ.
    pub position: u64,
    /// The key of the totals.
    pub key: T::Key,
    /// When it happened. The latest one of a key is returned with its sums.
    pub at: Timestamp,
    /// What is added to each sum.
    pub amounts: T,
}

impl History {
    /// History on a store.
    pub fn new(store: Arc<dyn HistoryStore>) -> History {
        History { store }
    }

    /// The store to which calls go.
    pub fn store(&self) -> &Arc<dyn HistoryStore> {
        &self.store
    }

    /// Counters of the store, and how full its queue is.
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }

    /// Writes an event: its key decides its content, so writing it again changes nothing.
    ///
    /// Each kind of table has its own calls. This does not compile, because a visit is declared as an event:
    ///
    /// ```compile_fail
    /// # use emberkeep_history::*;
    /// # emberkeep_schema::table! {
    /// #     /// Visits.
    /// #     pub struct Visit = "visits" { pub player: i64, pub at: emberkeep_schema::Timestamp }
    /// #     partition: (player), clustering: (at desc), ttl: days(3) of at, writes: events, owner: "test",
    /// # }
    /// # let (history, visit): (fn() -> History, fn() -> Visit) = (|| panic!(), || panic!());
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// history().upsert(visit()).await.unwrap();
    /// # });
    /// ```
    pub async fn insert<T: Table>(&self, row: T) -> Result<Written> {
        self.insert_many([row]).await
    }

    /// Writes events as [`insert`](Self::insert) does, by one call of the store. Rows of one key must be identical.
    pub async fn insert_many<T: Table>(&self, rows: impl IntoIterator<Item = T>) -> Result<Written> {
        const {
            assert!(
                matches!(T::DECLARATION.writes, Writes::Events),
                "`insert` is for tables declared `writes: events`; use `upsert` for `rows`, `upsert_at` for `versioned`, `insert_if_absent` for `conditional`"
            );
        }
        let rows = self.checked_rows(rows)?;
        if rows.is_empty() {
            return Ok(Written::default());
        }
        self.store.write(T::DECLARATION, Write::Insert(rows)).await
    }

    /// Writes a row that changes: all declared columns are replaced, lookups follow, and the last write wins.
    pub async fn upsert<T: Table>(&self, row: T) -> Result<Written> {
        self.upsert_many([row]).await
    }

    /// Writes rows as [`upsert`](Self::upsert) does, by one call of the store. Each key may stand once.
    pub async fn upsert_many<T: Table>(&self, rows: impl IntoIterator<Item = T>) -> Result<Written> {
        const { assert_rows::<T>() }
        let rows = self.checked_rows(rows)?;
        distinct_keys(T::DECLARATION, &rows)?;
        if rows.is_empty() {
            return Ok(Written::default());
        }
        self.store.write(T::DECLARATION, Write::Upsert(rows)).await
    }

    /// Removes a row; an absent one is not an error.
    pub async fn delete<T: Table>(&self, key: RowKey<T>) -> Result<()> {
        const { assert_rows::<T>() }
        self.store.write(T::DECLARATION, Write::Delete(checked_key(key)?)).await.map(drop)
    }

    /// Writes a row as of a version above 0. The highest version of a key wins, in whatever order they arrive.
    /// Writes of one key and version must have the same content.
    pub async fn upsert_at<T: Table>(&self, row: T, version: i64) -> Result<Written> {
        self.replace_at([], [row], version).await
    }

    /// Removes a row as of a version; a row of a higher version stays. At equal versions the removal wins.
    pub async fn delete_at<T: Table>(&self, key: RowKey<T>, version: i64) -> Result<()> {
        self.replace_at([key], [], version).await.map(drop)
    }

    /// Removes and writes rows of one partition together, as of a version. A key that is removed and written is
    /// only written. Each key may stand once among those removed and once among the rows.
    pub async fn replace_at<T: Table>(
        &self,
        removed: impl IntoIterator<Item = RowKey<T>>,
        rows: impl IntoIterator<Item = T>,
        version: i64,
    ) -> Result<Written> {
        const {
            assert!(
                matches!(T::DECLARATION.writes, Writes::Versioned),
                "`upsert_at`, `delete_at` and `replace_at` are for tables declared `writes: versioned`"
            );
        }
        let table = T::DECLARATION;
        if version <= 0 {
            return Err(Error::invalid(format!("version of {}", table.name), "it must be above 0"));
        }
        let rows = self.checked_rows(rows)?;
        let removed = removed.into_iter().map(checked_key).collect::<Result<Vec<_>>>()?;
        validate::limit(format!("a batch of {}", table.name), removed.len(), "rows", BATCH_ROWS_MAX)?;
        let written = distinct_keys(table, &rows)?;
        let removed = validate::removed_keys(table, removed, &written)?;
        validate::one_partition(table, &rows, &removed)?;
        if rows.is_empty() && removed.is_empty() {
            return Ok(Written::default());
        }
        self.store.write(table, Write::Replace { version, removed, rows }).await
    }

    /// Writes a row if its key does not exist; one of several concurrent callers wins.
    pub async fn insert_if_absent<T: Table>(&self, row: T) -> Result<Applied<T>> {
        self.write_if(ConditionalWrite::InsertIfAbsent(self.checked_row(row)?)).await
    }

    /// Writes `row` if the stored row of its key is `expected` in all declared columns; one of several concurrent
    /// callers wins.
    pub async fn replace_if<T: Table>(&self, expected: T, row: T) -> Result<Applied<T>> {
        let (expected, row) = (self.checked_row(expected)?, self.checked_row(row)?);
        if validate::encoded_key(T::DECLARATION, &expected) != validate::encoded_key(T::DECLARATION, &row) {
            let problem = "the expected row has another key than the new one";
            return Err(Error::invalid(T::DECLARATION.name, problem));
        }
        self.write_if(ConditionalWrite::ReplaceIf { expected, row }).await
    }

    /// Removes the row if it is `expected` in all declared columns.
    pub async fn delete_if<T: Table>(&self, expected: T) -> Result<Applied<T>> {
        self.write_if(ConditionalWrite::DeleteIf(self.checked_row(expected)?)).await
    }

    async fn write_if<T: Table>(&self, write: ConditionalWrite) -> Result<Applied<T>> {
        const {
            assert!(
                matches!(T::DECLARATION.writes, Writes::Conditional),
                "`insert_if_absent`, `replace_if` and `delete_if` are for tables declared `writes: conditional`"
            );
        }
        Ok(match self.store.write_if(T::DECLARATION, write).await? {
            Applied::Yes => Applied::Yes,
            Applied::No(current) => Applied::No(current.map(typed).transpose()?),
        })
    }

    fn checked_row<T: Table>(&self, row: T) -> Result<RawRow> {
        let row = row.into_values();
        validate::row(T::DECLARATION, &row, self.store.now())?;
        Ok(row)
    }

    fn checked_rows<T: Table>(&self, rows: impl IntoIterator<Item = T>) -> Result<Vec<RawRow>> {
        let (table, now) = (T::DECLARATION, self.store.now());
        let rows: Vec<RawRow> = rows.into_iter().map(Table::into_values).collect();
        let what = || format!("a batch of {}", table.name);
        validate::limit(what(), rows.len(), "rows", BATCH_ROWS_MAX)?;
        let mut bytes = 0;
        for row in &rows {
            bytes += validate::row(table, row, now)?;
        }
        validate::limit(what(), bytes, "bytes", BATCH_BYTES_MAX)?;
        Ok(rows)
    }

    /// The row of a key.
    pub async fn get<T: Table>(&self, key: RowKey<T>) -> Result<Option<T>> {
        let row = self.store.get(T::DECLARATION, checked_key(key)?).await?;
        row.map(typed).transpose()
    }

    /// The rows of a partition, of several days, or of a lookup.
    pub fn range<T: Table>(&self, rows: Rows<T>) -> Query<T> {
        Query::new(self.store.clone(), rows)
    }

    /// Adds entries of a source to totals, each once, positions ascending. Entries that were added before change
    /// nothing, so a source may be delivered again after a crash, and by two callers at once.
    pub async fn fold<T: Totals>(
        &self,
        source: &Source,
        entries: impl IntoIterator<Item = TotalsEntry<T>>,
    ) -> Result<Folded> {
        let totals = T::DECLARATION;
        check_source(source)?;
        let entry = |TotalsEntry { position, key, at, amounts }: TotalsEntry<T>| {
            let key = checked_totals_key::<T>(key)?;
            if !at.is_valid() {
                let problem =
                    format!("the time {}, expected milliseconds from 1970 to the end of 9999", at.0);
                return Err(Error::invalid(format!("entries of {}", source.text()), problem));
            }
            Ok(FoldEntry { position, key, amounts: amounts.amounts(), at_ms: at.0 })
        };
        let entries = entries.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
        validate::limit(format!("a fold of {}", totals.name), entries.len(), "entries", FOLD_ENTRIES_MAX)?;
        let is_ordered = entries.is_sorted_by(|a, b| a.position <= b.position);
        let is_in_range = |entry: &FoldEntry| (1..=i64::MAX as u64).contains(&entry.position);
        if !is_ordered || !entries.iter().all(is_in_range) {
            let problem = "positions must begin at 1, ascend, and be below 2^63";
            return Err(Error::invalid(format!("entries of {}", source.text()), problem));
        }
        // A second amount of a key at one position would look like a replay of the first.
        let is_repeated = |run: &[FoldEntry]| {
            if run.len() == 1 {
                return false;
            }
            let mut keys = HashSet::with_capacity(run.len());
            !run.iter().all(|entry| keys.insert(key_encoding::encoded(&entry.key)))
        };
        if entries.chunk_by(|a, b| a.position == b.position).any(is_repeated) {
            let problem = "one key has two entries at one position; add their amounts up first";
            return Err(Error::invalid(format!("entries of {}", source.text()), problem));
        }
        if entries.is_empty() {
            return Ok(Folded::default());
        }
        self.store.fold(vec![Fold { totals, source: source.clone(), entries }]).await
    }

    /// The totals of a key over all sources; `None` if nothing was added.
    pub async fn totals<T: Totals>(&self, key: T::Key) -> Result<Option<TotalsOf<T>>> {
        let totals = T::DECLARATION;
        let found = self.store.totals(totals, checked_totals_key::<T>(key)?).await?;
        Ok(found.map(|found| {
            let whole = found.sums.iter().zip(totals.sums).map(|(sum, of)| sum.div_euclid(of.per));
            TotalsOf {
                sums: T::from_amounts(&whole.collect::<Vec<_>>()),
                recorded: T::from_amounts(&found.sums),
                last_updated: Timestamp(found.last_updated),
            }
        }))
    }

    /// Ends a source: later folds of it are refused, its sums stay.
    pub async fn close_source<T: Totals>(&self, source: &Source) -> Result<()> {
        check_source(source)?;
        self.store.close_source(T::DECLARATION, source.clone()).await
    }

    /// Waits until everything that was acknowledged before survives a crash of the system, whatever the store's mode.
    pub async fn sync(&self) -> Result<()> {
        self.store.sync().await
    }

    /// Waits for writes in progress, makes them durable and closes the store.
    pub async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}

const fn assert_rows<T: Table>() {
    assert!(
        matches!(T::DECLARATION.writes, Writes::Rows),
        "`upsert` and `delete` are for tables declared `writes: rows`; use `insert` for `events`, `upsert_at` for `versioned`, `replace_if` for `conditional`"
    );
}

fn check_source(source: &Source) -> Result<()> {
    validate::limit("the name of a source".into(), source.text().len(), "bytes", SOURCE_BYTES_MAX)
}

pub(crate) fn checked_totals_key<T: Totals>(key: T::Key) -> Result<emberkeep_schema::Value> {
    let key = key.into_value().filter(|key| !key.is_non_finite());
    let key = key.ok_or_else(|| Error::invalid(T::DECLARATION.name, "a key that is absent or not finite"))?;
    validate::key_limit(format!("the key of {}", T::DECLARATION.name), [&key])?;
    Ok(key)
}

pub(crate) fn checked_key<T: Table>(key: RowKey<T>) -> Result<Vec<emberkeep_schema::Value>> {
    let names = T::DECLARATION.primary_key();
    validate::key(T::DECLARATION, names.iter().map(|(name, _)| *name), key.into_values())
}
