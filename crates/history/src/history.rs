//! The history that a game uses: a store, and typed calls on its tables and totals.

use crate::contract::{Fold, FoldEntry, Folded, HistoryStore, Inserted, Source, Stats, Write, Written};
use crate::error::{Error, Result};
use crate::key_encoding;
use crate::limits::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, FOLD_ENTRIES_MAX, SOURCE_BYTES_MAX};
use crate::query::{Query, typed};
use crate::validate;
use emberkeep_schema::{Column, RowKey, Rows, Table, Timestamp, Totals};
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
    /// When the last entry was added.
    pub last_updated: Timestamp,
}

impl History {
    /// History on a store.
    pub fn new(store: Arc<dyn HistoryStore>) -> History {
        History { store }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn HistoryStore> {
        &self.store
    }

    /// Counters of the store, and how full its queue is.
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }

    /// Writes a row whose key decides its content, such as an event: writing it again changes nothing. If the key
    /// exists with another content, the last write wins, and lookups may keep entries of the former one, which
    /// readers do not see.
    pub async fn insert<T: Table>(&self, row: T) -> Result<Written> {
        self.insert_many([row]).await
    }

    /// Writes rows as [`insert`](Self::insert) does, by one call of the store.
    pub async fn insert_many<T: Table>(&self, rows: impl IntoIterator<Item = T>) -> Result<Written> {
        self.write::<T>(rows.into_iter().map(|row| Write::Insert(row.into_values())).collect()).await
    }

    /// Writes a row whose content changes: all declared columns are replaced, and lookups follow.
    pub async fn upsert<T: Table>(&self, row: T) -> Result<Written> {
        self.upsert_many([row]).await
    }

    /// Writes rows as [`upsert`](Self::upsert) does, by one call of the store.
    pub async fn upsert_many<T: Table>(&self, rows: impl IntoIterator<Item = T>) -> Result<Written> {
        self.write::<T>(rows.into_iter().map(|row| Write::Upsert(row.into_values())).collect()).await
    }

    /// Removes a row; an absent one is not an error.
    pub async fn delete<T: Table>(&self, key: RowKey<T>) -> Result<()> {
        let key = checked_key(key)?;
        self.store.write(T::DECLARATION, vec![Write::Delete(key)]).await.map(drop)
    }

    async fn write<T: Table>(&self, writes: Vec<Write>) -> Result<Written> {
        let (table, now) = (T::DECLARATION, self.store.now());
        let what = || format!("a batch of {}", table.name);
        validate::limit(what(), writes.len(), "rows", BATCH_ROWS_MAX)?;
        let mut bytes = 0;
        for write in &writes {
            if let Write::Insert(row) | Write::Upsert(row) = write {
                bytes += validate::row(table, row, now)?;
            }
        }
        validate::limit(what(), bytes, "bytes", BATCH_BYTES_MAX)?;
        if writes.is_empty() {
            return Ok(Written::default());
        }
        self.store.write(table, writes).await
    }

    /// Writes a row if its key does not exist; one of several concurrent callers wins. For tables without
    /// lookups: on CQL a condition covers one table.
    pub async fn insert_if_absent<T: Table>(&self, row: T) -> Result<Inserted<T>> {
        const {
            assert!(T::DECLARATION.lookups.is_empty(), "a conditional insert needs a table without lookups");
        }
        let row = row.into_values();
        validate::row(T::DECLARATION, &row, self.store.now())?;
        Ok(match self.store.insert_if_absent(T::DECLARATION, row).await? {
            Inserted::Yes => Inserted::Yes,
            Inserted::No(existing) => Inserted::No(typed(existing)?),
            Inserted::Expired => Inserted::Expired,
        })
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

    /// Adds entries of a source to totals, each once: position, key and amounts, positions ascending. Entries
    /// that were added before change nothing, so a source may be delivered again after a crash, and by two
    /// callers at once.
    pub async fn fold<T: Totals>(
        &self,
        source: &Source,
        entries: impl IntoIterator<Item = (u64, T::Key, T)>,
    ) -> Result<Folded> {
        let totals = T::DECLARATION;
        check_source(source)?;
        let entry = |(position, key, amounts): (u64, T::Key, T)| {
            let key = checked_totals_key::<T>(key)?;
            Ok(FoldEntry { position, key, amounts: amounts.amounts() })
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
            let mut keys = HashSet::with_capacity(run.len());
            run.len() > 1 && !run.iter().all(|entry| keys.insert(key_encoding::encoded(&entry.key)))
        };
        if entries.chunk_by(|a, b| a.position == b.position).any(is_repeated) {
            let problem = "one key has two entries at one position; add their amounts up first";
            return Err(Error::invalid(format!("entries of {}", source.text()), problem));
        }
        if entries.is_empty() {
            return Ok(Folded::default());
        }
        self.store.fold(Fold { totals, source: source.clone(), entries }).await
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

    /// Waits for writes in progress, makes them durable and closes the store.
    pub async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}

fn check_source(source: &Source) -> Result<()> {
    validate::limit("the name of a source".into(), source.text().len(), "bytes", SOURCE_BYTES_MAX)
}

fn checked_totals_key<T: Totals>(key: T::Key) -> Result<emberkeep_schema::Value> {
    let key = key.into_value().filter(|key| !key.is_non_finite());
    let key = key.ok_or_else(|| Error::invalid(T::DECLARATION.name, "a key that is absent or not finite"))?;
    validate::key_limit(format!("the key of {}", T::DECLARATION.name), [&key])?;
    Ok(key)
}

fn checked_key<T: Table>(key: RowKey<T>) -> Result<Vec<emberkeep_schema::Value>> {
    let names = T::DECLARATION.primary_key();
    validate::key(T::DECLARATION, names.iter().map(|(name, _)| *name), key.into_values())
}
