//! Storing the batches of many entries by few calls, and dead letters.

use super::batch::{Amounts, Batch, Change, Insert, Rejection, VersionedWrite};
use crate::contract::{Fold, FoldEntry, RawRow, Source, Write};
use crate::error::{Error, Result};
use crate::history::History;
use crate::limits::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, FOLD_ENTRIES_MAX};
use crate::validate;
use bytes::Bytes;
use emberkeep_schema::{TableDeclaration, Timestamp, TotalsDeclaration};
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An entry of a log or of a spool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// Its number in the log, or in the opening of a spool that recorded it.
    pub(crate) sequence: u64,
    /// Its position in the source that it is delivered for.
    pub(crate) position: u64,
    /// Identifies the entry together with its sequence.
    pub(crate) mark: u32,
    /// The event as its codec encoded it; `Err` if it is not an entry: the bytes that stand in its place.
    pub(crate) event: Result<Bytes, Bytes>,
}

impl Entry {
    /// Its bytes, also if they are not an entry.
    pub(crate) fn bytes(&self) -> &Bytes {
        self.event.as_ref().unwrap_or_else(|bytes| bytes)
    }
}

/// Decodes an event and projects it.
pub(crate) type ProjectBytes = Arc<dyn Fn(&[u8], &mut Batch) -> Result<(), Rejection> + Send + Sync>;

/// Stores entries in history.
#[derive(Clone)]
pub(crate) struct Deliverer {
    pub(crate) history: History,
    pub(crate) project: ProjectBytes,
}

/// How many entries of a page became rows, and how many dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) entries: usize,
    pub(crate) dead_letters: usize,
    /// Those of them that were not entries: an external client overwrote them.
    pub(crate) overwritten: usize,
}

/// What entries become, by table and totals.
#[derive(Default)]
struct Collected {
    inserts: Vec<(&'static TableDeclaration, Vec<Insert>)>,
    versioned: Vec<VersionedWrite>,
    folds: Vec<(&'static TotalsDeclaration, Vec<FoldEntry>)>,
}

impl Deliverer {
    /// Stores entries of one source, in order. On an error some of them may be stored: repeat it.
    pub(crate) async fn deliver(
        &self,
        log: &str,
        incarnation: &str,
        source: &Source,
        entries: &[Entry],
    ) -> Result<Delivered> {
        let lettered = self.lettered(log, incarnation, entries).await?;
        let is_new = |entry: &Entry| !lettered.iter().any(|letter| letter.is_of(entry));
        let new: Vec<Entry> = match lettered.is_empty() {
            true => Vec::new(),
            false => entries.iter().filter(|entry| is_new(entry)).cloned().collect(),
        };
        let new = if lettered.is_empty() { entries } else { &new };
        let mut dead_letters = entries.len() - new.len();
        // Parts in order, the next one last. A part that the store refuses is cut in half until the entry that it
        // refuses stands alone.
        let mut parts = vec![new];
        while let Some(part) = parts.pop() {
            let dead = match self.store(source, part).await {
                Ok(rejected) => rejected,
                Err(error) if is_refusal(&error) && part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                    continue;
                }
                Err(error) if is_refusal(&error) => vec![(&part[0], error.into())],
                Err(error) => return Err(error),
            };
            // Before the next part: an entry behind this one moves the position of its source over it, and it would count as
            // stored when it comes again.
            self.put_letters(log, incarnation, &dead).await?;
            dead_letters += dead.len();
        }
        let overwritten = entries.iter().filter(|entry| entry.event.is_err()).count();
        Ok(Delivered { entries: entries.len(), dead_letters, overwritten })
    }

    /// Projects and stores entries by one call for each table and each totals. Returns those that were rejected.
    async fn store<'e>(&self, source: &Source, entries: &'e [Entry]) -> Result<Vec<(&'e Entry, Rejection)>> {
        let (mut collected, mut rejected, now) =
            (Collected::default(), Vec::new(), self.history.store().now());
        for entry in entries {
            let mut batch = Batch::new(now);
            match self.project(entry, &mut batch) {
                Ok(()) => collected.push(entry.position, batch),
                Err(rejection) => rejected.push((entry, rejection)),
            }
        }
        let Collected { inserts, versioned, folds } = collected;
        // All totals first and by one call: an entry that one of them refuses, by overflow, has no amount in another one and
        // no row. Rows and keys were checked when they were projected; no store refuses them for good.
        let amounts = folds.iter().map(|(_, entries)| entries.len()).sum();
        validate::limit("the amounts of an event".into(), amounts, "keys", FOLD_ENTRIES_MAX)?;
        let fold = |(totals, entries)| Fold { totals, source: source.clone(), entries };
        let folds: Vec<_> = folds.into_iter().map(fold).collect();
        if !folds.is_empty() {
            self.history.store().fold(folds).await?;
        }
        let inserts = inserts
            .into_iter()
            .flat_map(|(table, rows)| chunks(rows).into_iter().map(move |rows| (table, Write::Insert(rows))));
        let writes =
            inserts.chain(highest(versioned)).map(|(table, write)| self.history.store().write(table, write));
        try_join_all(writes.collect::<Vec<_>>()).await?;
        Ok(rejected)
    }

    /// When an event happened, as its rows and amounts say.
    pub(crate) fn time_of(&self, entry: &Entry) -> Option<Timestamp> {
        let mut batch = Batch::new(self.history.store().now());
        self.project(entry, &mut batch).ok()?;
        batch.time()
    }

    fn project(&self, entry: &Entry, batch: &mut Batch) -> Result<(), Rejection> {
        let Ok(event) = &entry.event else {
            return Err(Rejection::new("it is not an entry of the log; an external client overwrote it"));
        };
        // A projection that panics must not stop the entries behind this one for ever.
        let projected = catch_unwind(AssertUnwindSafe(|| (self.project)(event, batch)));
        projected.unwrap_or_else(|_| Err(Rejection::new("the projection panicked")))
    }
}

/// Whether the store refuses what is written, and would refuse it again. Other errors say nothing of the entries.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Invalid { .. } | Error::TooLarge { .. } | Error::Overflow { .. })
}

impl Collected {
    fn push(&mut self, position: u64, batch: Batch) {
        for insert in batch.inserts {
            of_name(&mut self.inserts, insert.table, |table| table.name).push(insert);
        }
        self.versioned.extend(batch.versioned);
        for Amounts { totals, entry } in batch.amounts {
            let entry = FoldEntry { position, ..entry };
            of_name(&mut self.folds, totals, |totals| totals.name).push(entry);
        }
    }
}

/// The list of a table or of totals. There are few of them.
fn of_name<'l, D, T>(
    lists: &'l mut Vec<(&'static D, Vec<T>)>,
    declaration: &'static D,
    name: impl Fn(&'static D) -> &'static str,
) -> &'l mut Vec<T> {
    let found = lists.iter().position(|(other, _)| name(other) == name(declaration));
    let place = found.unwrap_or_else(|| {
        lists.push((declaration, Vec::new()));
        lists.len() - 1
    });
    &mut lists[place].1
}

/// Rows in groups that one call may take.
fn chunks(rows: Vec<Insert>) -> Vec<Vec<RawRow>> {
    let (mut chunks, mut chunk, mut bytes) = (Vec::new(), Vec::new(), 0);
    for Insert { row, bytes: row_bytes, .. } in rows {
        if chunk.len() == BATCH_ROWS_MAX || bytes + row_bytes > BATCH_BYTES_MAX {
            chunks.push(std::mem::take(&mut chunk));
            bytes = 0;
        }
        bytes += row_bytes;
        chunk.push(row);
    }
    chunks.push(chunk);
    chunks
}

/// Name of the table, version, and the partition's key.
type PartitionVersion = (&'static str, i64, Vec<u8>);
type TableChanges = (&'static TableDeclaration, Vec<Change>);

/// The highest version of each key: one key stands once in what is stored together.
fn highest(writes: Vec<VersionedWrite>) -> Vec<(&'static TableDeclaration, Write)> {
    let mut by_key: HashMap<(&'static str, Vec<u8>), VersionedWrite> = HashMap::new();
    for write in writes {
        let newest = by_key.entry((write.table.name, write.key.clone()));
        match newest {
            std::collections::hash_map::Entry::Occupied(found) if found.get().wins_over(&write) => {}
            std::collections::hash_map::Entry::Occupied(mut found) => {
                found.insert(write);
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(write);
            }
        }
    }
    // What changes in one partition as of one version changes together.
    let mut groups: HashMap<PartitionVersion, TableChanges> = HashMap::new();
    for VersionedWrite { table, version, partition, change, .. } in by_key.into_values() {
        let group = groups.entry((table.name, version, partition));
        group.or_insert_with(|| (table, Vec::new())).1.push(change);
    }
    let writes = groups.into_iter().flat_map(|((_, version, _), (table, mut changes))| {
        let mut writes = Vec::new();
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(BATCH_ROWS_MAX));
            let (mut removed, mut rows) = (Vec::new(), Vec::new());
            for change in std::mem::replace(&mut changes, rest) {
                match change {
                    Change::Write(row) => rows.push(row),
                    Change::Remove(key) => removed.push(key),
                }
            }
            writes.push((table, Write::Replace { version, removed, rows }));
        }
        writes
    });
    writes.collect()
}
