//! A batch: the rows and amounts that one event becomes.

use crate::contract::{FoldEntry, RawRow};
use crate::error::{Error, Result};
use crate::history::{checked_key, checked_totals_key};
use crate::validate;
use emberkeep_schema::{
    RowKey, Table, TableDeclaration, Timestamp, Totals, TotalsDeclaration, Value, Writes,
};
use std::fmt;

/// Why an event does not go into history. It becomes a dead letter with this reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection(String);

impl Rejection {
    /// A rejection with a reason, for the people who read dead letters.
    pub fn new(reason: impl Into<String>) -> Rejection {
        Rejection(reason.into())
    }

    /// The reason, as the dead letter has it.
    pub fn reason(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Rejection {}

impl From<Error> for Rejection {
    fn from(error: Error) -> Rejection {
        Rejection(error.to_string())
    }
}

/// What an event becomes in history. Closures of this form are projections.
///
/// It must be a pure function of the event: an event may be projected again after a crash, and a row or an amount that
/// differs then would be a second one.
pub trait Projection<E>: Send + Sync + 'static {
    /// Adds the rows and amounts of an event to the batch. A rejected event leaves nothing of its batch.
    fn project(&self, event: &E, batch: &mut Batch) -> Result<(), Rejection>;
}

impl<E, F> Projection<E> for F
where
    F: Fn(&E, &mut Batch) -> Result<(), Rejection> + Send + Sync + 'static,
{
    fn project(&self, event: &E, batch: &mut Batch) -> Result<(), Rejection> {
        self(event, batch)
    }
}

/// The rows and amounts of one event.
#[derive(Debug)]
pub struct Batch {
    now: i64,
    pub(super) inserts: Vec<Insert>,
    pub(super) versioned: Vec<VersionedWrite>,
    pub(super) amounts: Vec<Amounts>,
}

/// A row of a table of events.
#[derive(Debug)]
pub(super) struct Insert {
    pub(super) table: &'static TableDeclaration,
    pub(super) row: RawRow,
    pub(super) bytes: usize,
}

/// A change of a row as of a version.
#[derive(Debug)]
pub(super) struct VersionedWrite {
    pub(super) table: &'static TableDeclaration,
    /// The primary key as bytes.
    pub(super) key: Vec<u8>,
    /// The partition key as bytes.
    pub(super) partition: Vec<u8>,
    pub(super) version: i64,
    pub(super) change: Change,
}

impl VersionedWrite {
    /// Whether it stands against a later write of the same key, by the rule of a store.
    pub(super) fn wins_over(&self, later: &VersionedWrite) -> bool {
        let is_removal = matches!(self.change, Change::Remove(_));
        self.version > later.version || self.version == later.version && is_removal
    }
}

#[derive(Debug)]
pub(super) enum Change {
    Write(RawRow),
    Remove(Vec<Value>),
}

/// The values of a change's primary key, those of the partition first.
fn change_key<'c>(table: &TableDeclaration, change: &'c Change) -> Vec<&'c Value> {
    match change {
        Change::Remove(key) => key.iter().collect(),
        Change::Write(row) => {
            let places = table.partition.iter().filter_map(|name| table.index(name));
            places.filter_map(|place| row[place].as_ref()).collect()
        }
    }
}

/// Amounts for one key of totals.
#[derive(Debug)]
pub(super) struct Amounts {
    pub(super) totals: &'static TotalsDeclaration,
    pub(super) entry: FoldEntry,
}

impl Batch {
    pub(super) fn new(now: i64) -> Batch {
        Batch { now, inserts: Vec::new(), versioned: Vec::new(), amounts: Vec::new() }
    }

    /// The earliest time of its amounts and rows; `None` if none of them has one.
    pub(super) fn time(&self) -> Option<Timestamp> {
        let of_row = |insert: &Insert| {
            let place = insert.table.time_column().and_then(|name| insert.table.index(name))?;
            match insert.row.get(place)? {
                Some(Value::Timestamp(at)) => Some(*at),
                _ => None,
            }
        };
        let amounts = self.amounts.iter().map(|amounts| amounts.entry.at_ms);
        self.inserts.iter().filter_map(of_row).chain(amounts).min().map(Timestamp)
    }

    /// Adds a row to a table of events. Its key must derive from the event, such as from the event's id: delivered
    /// again, it is the same row.
    ///
    /// Only tables of `writes: events` and `writes: versioned` take rows of an outbox. Of rows whose last write
    /// wins, an event that is delivered again would overwrite newer ones:
    ///
    /// ```compile_fail
    /// # use emberkeep_history::*;
    /// # emberkeep_schema::table! {
    /// #     /// Names.
    /// #     pub struct Name = "names" { pub player: i64, pub name: String }
    /// #     partition: (player), clustering: (), ttl: persistent, writes: rows, owner: "test",
    /// # }
    /// fn project(name: &(i64, String), batch: &mut Batch) -> Result<(), Rejection> {
    ///     batch.insert(Name { player: name.0, name: name.1.clone() })
    /// }
    /// # let _: fn(&(i64, String), &mut Batch) -> Result<(), Rejection> = project;
    /// ```
    pub fn insert<T: Table>(&mut self, row: T) -> Result<(), Rejection> {
        const {
            assert!(
                matches!(T::DECLARATION.writes, Writes::Events),
                "`insert` is for tables declared `writes: events`; use `upsert_at` for `versioned`. Tables of `rows` and `conditional` cannot be written through an outbox or a spool"
            );
        }
        let (table, row) = (T::DECLARATION, row.into_values());
        let bytes = validate::row(table, &row, self.now)?;
        self.inserts.push(Insert { table, row, bytes });
        Ok(())
    }

    /// Writes a row as of a version above 0. The highest version of a key wins, so it must derive from the event, such as
    /// its time in microseconds.
    pub fn upsert_at<T: Table>(&mut self, row: T, version: i64) -> Result<(), Rejection> {
        let row = row.into_values();
        validate::row(T::DECLARATION, &row, self.now)?;
        let key = validate::encoded_key(T::DECLARATION, &row);
        self.change::<T>(key, version, Change::Write(row))
    }

    /// Removes a row as of a version; a row of a higher version stays.
    pub fn delete_at<T: Table>(&mut self, key: RowKey<T>, version: i64) -> Result<(), Rejection> {
        let values = checked_key(key)?;
        self.change::<T>(validate::encoded_values(&values), version, Change::Remove(values))
    }

    fn change<T: Table>(&mut self, key: Vec<u8>, version: i64, change: Change) -> Result<(), Rejection> {
        const {
            assert!(
                matches!(T::DECLARATION.writes, Writes::Versioned),
                "`upsert_at` and `delete_at` are for tables declared `writes: versioned`; use `insert` for `events`"
            );
        }
        if version <= 0 {
            return Err(Rejection::new(format!("version {version} of {}: above 0", T::DECLARATION.name)));
        }
        let partition = validate::encoded_partition(T::DECLARATION, &change_key(T::DECLARATION, &change));
        self.versioned.push(VersionedWrite { table: T::DECLARATION, key, partition, version, change });
        Ok(())
    }

    /// Adds amounts to the totals of a key. Amounts of one key in one event are added up.
    pub fn add<T: Totals>(&mut self, key: T::Key, at: Timestamp, amounts: T) -> Result<(), Rejection> {
        let (totals, key) = (T::DECLARATION, checked_totals_key::<T>(key)?);
        if !at.is_valid() {
            return Err(Rejection::new(format!("an amount of {} at the time {}", totals.name, at.0)));
        }
        let amounts = amounts.amounts();
        let is_same = |added: &&mut Amounts| added.totals.name == totals.name && added.entry.key == key;
        let Some(Amounts { entry, .. }) = self.amounts.iter_mut().find(is_same) else {
            // The position is set when the batch is stored.
            self.amounts
                .push(Amounts { totals, entry: FoldEntry { position: 0, key, amounts, at_ms: at.0 } });
            return Ok(());
        };
        for (place, more) in amounts.into_iter().enumerate() {
            let sum = entry.amounts[place].checked_add(more);
            entry.amounts[place] =
                sum.ok_or_else(|| Error::Overflow { table: totals.name, sum: totals.sums[place].name })?;
        }
        entry.at_ms = entry.at_ms.max(at.0);
        Ok(())
    }
}
