//! The declaration of a history table as plain data: everything else derives from it.

use super::column::{ColumnType, Value};
use super::time::{Day, Timestamp};
use crate::limits::DEPRECATED_DAYS;

/// A table as data. Made by [`table!`](crate::table!), never by hand.
#[derive(Debug)]
pub struct TableDeclaration {
    /// Name of the row type, as in code.
    pub row: &'static str,
    /// Name of the table.
    pub name: &'static str,
    /// The documentation comment of the declaration, as the generated documents print it.
    pub doc: &'static str,
    /// All columns: first the derived bucket, if there is one, then the fields of the row in their order.
    pub columns: &'static [ColumnDeclaration],
    /// Names of the partition key's columns.
    pub partition: &'static [&'static str],
    /// The clustering columns with their order.
    pub clustering: &'static [(&'static str, Order)],
    /// How long rows live.
    pub ttl: RowTtl,
    /// How the files of the table are compacted.
    pub compaction: Compaction,
    /// Layout `scaled`: the partition's parts.
    pub slices: Option<Slices>,
    /// Second orders of the same rows.
    pub lookups: &'static [Lookup],
    /// Columns that rows had and have no more.
    pub deprecated: &'static [DeprecatedColumn],
    /// The service that writes it.
    pub owner: &'static str,
    /// How its rows change.
    pub writes: Writes,
}

/// How the rows of a table change. It decides which calls a table has, and how they are written on CQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// `writes: events`. The key decides the content: writing a row again changes nothing. Rows are never changed or
    /// deleted; they leave by their TTL. CQL: `USING TIMESTAMP` is the row's time, absent columns are not written.
    Events,
    /// `writes: rows`. Rows are replaced and deleted; the last write wins. CQL: the timestamp is the client's clock,
    /// and absent columns are written as null.
    Rows,
    /// `writes: versioned`. Every write has a version, and the highest one wins in whatever order they arrive.
    /// CQL: `USING TIMESTAMP` is the version, so with a time-window compaction it should be a time in microseconds.
    Versioned,
    /// `writes: conditional`. A row is inserted if absent, and replaced or deleted if it is as expected; one of several
    /// concurrent callers wins. CQL: lightweight transactions only.
    Conditional,
}

/// A column as data.
#[derive(Debug, Clone, Copy)]
pub struct ColumnDeclaration {
    /// The name in CQL and in code.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnType,
    /// Whether a row may lack it.
    pub optional: bool,
    /// The time column whose UTC day it holds, if it is a bucket.
    pub day_of: Option<&'static str>,
    /// The documentation comment of the field.
    pub doc: &'static str,
}

/// A column that is not written any more. Rows of before keep its values until they end, or it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeprecatedColumn {
    /// Its name.
    pub name: &'static str,
    /// The type that it has.
    pub kind: ColumnType,
    /// The day on which it was declared deprecated.
    pub since: Day,
}

impl DeprecatedColumn {
    /// The first day on which it may be removed: by then no program that reads it should run any more.
    pub const fn removable_from(&self) -> Day {
        match Day::from_number(self.since.number() + DEPRECATED_DAYS) {
            Some(day) => day,
            None => Day::MAX,
        }
    }
}

/// The order of a clustering column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The smallest value comes first.
    Ascending,
    /// The largest value comes first.
    Descending,
}

/// How long the rows of a table live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowTtl {
    /// Until they are deleted.
    Persistent,
    /// Counted from the last write of the row.
    Written {
        /// The lifetime in milliseconds.
        ms: i64,
    },
    /// Counted from a time in the row's key, so that writing the row again does not prolong it.
    Since {
        /// The lifetime in milliseconds.
        ms: i64,
        /// The `Timestamp` column of the key from which it is counted.
        column: &'static str,
    },
}

/// How the files of a table are compacted by a CQL server. The embedded store takes its windows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compaction {
    /// The server's default: files of similar size are merged.
    SizeTiered,
    /// For rows that are rewritten and read often.
    Leveled,
    /// For rows in the order of time that end together.
    TimeWindow {
        /// Milliseconds; whole hours or days.
        ms: i64,
    },
}

/// How the layout `scaled` divides a day of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Length of a bucket of time, in milliseconds.
    pub bucket_ms: i64,
    /// Partitions that share the rows of a bucket.
    pub count: u16,
}

/// A second order of a table's rows.
#[derive(Debug, Clone, Copy)]
pub struct Lookup {
    /// Its name, as in code: `by_attacker`.
    pub name: &'static str,
    /// Its partition key. The other columns of the primary key follow as clustering columns.
    pub partition: &'static [&'static str],
    /// The secondary index that serves it in the CQL layout `document`, for a conditional table in both layouts;
    /// `None` = the query table does.
    pub index: Option<&'static str>,
    /// The name of its query table on CQL, if it is not `ember_{table}_{lookup}`.
    pub table: Option<&'static str>,
}

impl TableDeclaration {
    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&'static ColumnDeclaration> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The place of a column among [`columns`](Self::columns).
    pub fn index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The primary key: names and orders of the partition's columns (ascending) and the clustering columns.
    pub fn primary_key(&self) -> Vec<(&'static str, Order)> {
        let partition = self.partition.iter().map(|name| (*name, Order::Ascending));
        partition.chain(self.clustering.iter().copied()).collect()
    }

    /// The key of a lookup: its partition, then the rest of the primary key.
    pub fn lookup_key(&self, lookup: &Lookup) -> Vec<(&'static str, Order)> {
        let rest = self.primary_key().into_iter().filter(|(name, _)| !lookup.partition.contains(name));
        lookup.partition.iter().map(|name| (*name, Order::Ascending)).chain(rest).collect()
    }

    /// The lookup of this name.
    pub fn lookup(&self, name: &str) -> Option<&'static Lookup> {
        self.lookups.iter().find(|lookup| lookup.name == name)
    }

    /// Whether a column belongs to the primary key.
    pub fn is_key(&self, name: &str) -> bool {
        self.partition.contains(&name) || self.clustering.iter().any(|(column, _)| *column == name)
    }

    /// The bucket of the partition, if it has one.
    pub fn bucket(&self) -> Option<&'static ColumnDeclaration> {
        self.columns.first().filter(|column| column.day_of.is_some())
    }

    /// The time in the key that decides in which window of retention a row lies: that of the TTL.
    pub fn window_column(&self) -> Option<&'static str> {
        match self.ttl {
            RowTtl::Since { column, .. } => Some(column),
            _ => None,
        }
    }

    /// The time of a row: the column that its TTL is counted from, otherwise that of its bucket. Events have one.
    pub fn time_column(&self) -> Option<&'static str> {
        self.window_column().or_else(|| self.bucket().and_then(|bucket| bucket.day_of))
    }

    /// The values of all columns from those of the fields: the bucket is derived.
    pub fn with_bucket(&self, fields: Vec<Option<Value>>) -> Vec<Option<Value>> {
        let Some(source) = self.bucket().and_then(|bucket| bucket.day_of) else { return fields };
        let place = self.columns[1..].iter().position(|column| column.name == source);
        let time = place.and_then(|place| fields.get(place)).and_then(Option::as_ref);
        let bucket = day_text(time);
        std::iter::once(bucket).chain(fields).collect()
    }

    /// The values of the primary key, in its order, from named ones. The bucket is derived.
    pub fn key_values(&self, mut named: Vec<(&'static str, Option<Value>)>) -> Vec<Option<Value>> {
        if let Some(bucket) = self.bucket() {
            let time = named.iter().find(|(name, _)| Some(*name) == bucket.day_of);
            let text = day_text(time.and_then(|(_, value)| value.as_ref()));
            named.push((bucket.name, text));
        }
        let find = |name: &str| named.iter().find(|(other, _)| *other == name).and_then(|(_, v)| v.clone());
        self.primary_key().into_iter().map(|(name, _)| find(name)).collect()
    }
}

fn day_text(time: Option<&Value>) -> Option<Value> {
    match time {
        Some(Value::Timestamp(ms)) if Timestamp(*ms).is_valid() => {
            Some(Value::Text(Timestamp(*ms).day().to_string()))
        }
        _ => None,
    }
}
