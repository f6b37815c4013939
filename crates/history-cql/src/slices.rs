//! The layout `scaled`: which partition of a day a row lies in.
//!
//! A day of a sliced table is divided into buckets of time, and each bucket into slices. How, is fixed for a day by the
//! first writer (`ember_slices`, insert if absent), so that a changed declaration does not lose the rows of a day.
//! A bucket is registered before its first row (`ember_buckets`), so that a reader asks only for those that have rows.

use crate::cluster::{Cluster, Mode, Statement};
use crate::conditional;
use crate::limits::SLICES_KEPT_AFTER_TTL;
use crate::plan::TablePlan;
use crate::values::{self, Cell};

use emberkeep_history::{Applied, ConditionalWrite, Error, Result};
use emberkeep_schema::{Day, RowTtl, Slices, Table, Value, table};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Days that are remembered at most; beyond them all are forgotten and asked for again.
const DAYS_REMEMBERED_MAX: usize = 1_000;

table! {
    /// How a day of a table is divided in the layout `scaled`. Fixed by the first writer of the day.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DaySlices = "ember_slices" {
        /// The name of the table that is divided.
        pub table_name: String,
        /// The day, as `2024-01-10`.
        pub day: String,
        /// Length of a bucket.
        pub bucket_ms: i64,
        /// Slices of a bucket.
        pub slices: i32,
    }
    partition: (table_name, day),
    clustering: (),
    ttl: persistent,
    writes: conditional,
    owner: "history",
}

table! {
    /// The buckets of a day that have rows, in the layout `scaled`. They end a week after their rows.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DayBucket = "ember_buckets" {
        /// The name of the table that is divided.
        pub table_name: String,
        /// The day, as `2024-01-10`.
        pub day: String,
        /// The bucket, from 0 on.
        pub bucket: i32,
    }
    partition: (table_name, day),
    clustering: (bucket asc),
    ttl: persistent,
    writes: rows,
    owner: "history",
}

/// What is known about the days of sliced tables.
#[derive(Debug)]
pub(crate) struct SliceBook {
    days: Mutex<HashMap<(&'static str, String), KnownDay>>,
    slices: TablePlan,
    insert_bucket: Arc<str>,
    insert_bucket_for: Arc<str>,
    select_buckets: Arc<str>,
}

#[derive(Debug, Clone)]
struct KnownDay {
    slices: Slices,
    buckets: HashSet<i32>,
}

impl SliceBook {
    pub(crate) fn new(keyspace: &str, layout: emberkeep_schema::CqlLayout) -> SliceBook {
        let buckets = format!("{keyspace}.{}", DayBucket::DECLARATION.name);
        let insert = format!("INSERT INTO {buckets} (table_name, day, bucket) VALUES (?, ?, ?)");
        SliceBook {
            days: Mutex::default(),
            slices: TablePlan::new(DaySlices::DECLARATION, keyspace, layout),
            insert_bucket_for: format!("{insert} USING TTL ?").into(),
            insert_bucket: insert.into(),
            select_buckets: format!("SELECT bucket FROM {buckets} WHERE table_name = ? AND day = ?").into(),
        }
    }

    fn known(&self, table: &'static str, day: &str) -> Option<Slices> {
        self.days.lock().get(&(table, day.to_owned())).map(|known| known.slices)
    }

    fn remember(&self, table: &'static str, day: &str, slices: Slices) {
        let mut days = self.days.lock();
        if days.len() >= DAYS_REMEMBERED_MAX {
            days.clear();
        }
        days.entry((table, day.to_owned())).or_insert(KnownDay { slices, buckets: HashSet::new() });
    }

    /// How a day is divided; `None` if nothing was written to it yet.
    pub(crate) async fn find(
        &self,
        cluster: &Cluster,
        plan: &TablePlan,
        day: &str,
    ) -> Result<Option<Slices>> {
        let table = plan.declaration.name;
        if let Some(slices) = self.known(table, day) {
            return Ok(Some(slices));
        }
        let key = [Value::Text(table.to_owned()), Value::Text(day.to_owned())];
        let statement = Statement {
            text: self.slices.rows.get.clone(),
            cells: key.into_iter().map(Cell::Value).collect(),
        };
        // Completed if it is in progress: rows may be written by the process that knows of it.
        let (rows, _) = cluster.read(DaySlices::DECLARATION.name, Mode::SerialRead, &statement, 1, 1).await?;
        let Some(row) = rows.into_iter().next() else { return Ok(None) };
        let row = values::read_row(DaySlices::DECLARATION, row).map_err(|(column, reason)| {
            Error::Corrupt { table: DaySlices::DECLARATION.name, column, reason }
        })?;
        let slices = slices_of(&row)?;
        self.remember(table, day, slices);
        Ok(Some(slices))
    }

    /// How a day is divided, fixed now if it was not yet.
    pub(crate) async fn fix(
        &self,
        cluster: &Cluster,
        plan: &TablePlan,
        declared: Slices,
        day: &str,
    ) -> Result<Slices> {
        let table = plan.declaration.name;
        if let Some(slices) = self.known(table, day) {
            return Ok(slices);
        }
        let row = DaySlices {
            table_name: table.to_owned(),
            day: day.to_owned(),
            bucket_ms: declared.bucket_ms,
            slices: i32::from(declared.count),
        };
        let write = ConditionalWrite::InsertIfAbsent(row.into_values());
        let slices = match conditional::write_if(cluster, &self.slices, write, 0).await? {
            Applied::Yes | Applied::No(None) => declared,
            Applied::No(Some(row)) => slices_of(&row)?,
        };
        self.remember(table, day, slices);
        Ok(slices)
    }

    /// Registers a bucket before its first row.
    pub(crate) async fn register(
        &self,
        cluster: &Cluster,
        plan: &TablePlan,
        day: &str,
        bucket: i32,
        now_ms: i64,
    ) -> Result<()> {
        let key = (plan.declaration.name, day.to_owned());
        if self.days.lock().get(&key).is_some_and(|known| known.buckets.contains(&bucket)) {
            return Ok(());
        }
        let mut cells = vec![
            Cell::Value(Value::Text(key.0.to_owned())),
            Cell::Value(Value::Text(key.1.clone())),
            Cell::Value(Value::Int(bucket)),
        ];
        let text = match remembered_s(plan, day, now_ms) {
            Some(seconds) => {
                cells.push(Cell::Value(Value::Int(seconds)));
                self.insert_bucket_for.clone()
            }
            None => self.insert_bucket.clone(),
        };
        cluster.write(DayBucket::DECLARATION.name, vec![Statement { text, cells }], 0).await?;
        if let Some(known) = self.days.lock().get_mut(&key) {
            known.buckets.insert(bucket);
        }
        Ok(())
    }

    /// The buckets of a day that have rows, ascending.
    pub(crate) async fn buckets(&self, cluster: &Cluster, plan: &TablePlan, day: &str) -> Result<Vec<i32>> {
        let key = [Value::Text(plan.declaration.name.to_owned()), Value::Text(day.to_owned())];
        let cells = key.into_iter().map(Cell::Value).collect();
        let statement = Statement { text: self.select_buckets.clone(), cells };
        let name = DayBucket::DECLARATION.name;
        let (rows, _) = cluster.read(name, Mode::Idempotent, &statement, usize::MAX, usize::MAX).await?;
        let bucket = |row: scylla::value::Row| match row.columns.into_iter().next().flatten() {
            Some(scylla::value::CqlValue::Int(bucket)) => Some(bucket),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(bucket).collect())
    }
}

/// For how many seconds a bucket of a day is remembered; `None` = for ever.
fn remembered_s(plan: &TablePlan, day: &str, now_ms: i64) -> Option<i32> {
    let ttl_ms = match plan.declaration.ttl {
        RowTtl::Persistent => return None,
        RowTtl::Written { ms } | RowTtl::Since { ms, .. } => ms,
    };
    let end_ms = day.parse::<Day>().map_or(now_ms, |day| day.end().0).max(now_ms);
    let left_ms = end_ms - now_ms + ttl_ms + SLICES_KEPT_AFTER_TTL.as_millis() as i64;
    // The server's longest TTL is 20 years; what lives longer than that is not remembered for a shorter time.
    i32::try_from(left_ms / 1_000).ok().filter(|seconds| *seconds < 630_720_000)
}

fn slices_of(row: &[Option<Value>]) -> Result<Slices> {
    let corrupt = |column| Error::Corrupt {
        table: DaySlices::DECLARATION.name,
        column,
        reason: "it is absent or out of range".into(),
    };
    let (Some(Value::BigInt(bucket_ms)), Some(Value::Int(slices))) = (&row[2], &row[3]) else {
        return Err(corrupt("bucket_ms"));
    };
    match u16::try_from(*slices) {
        Ok(count @ 1..) if *bucket_ms > 0 => Ok(Slices { bucket_ms: *bucket_ms, count }),
        _ => Err(corrupt("slices")),
    }
}

/// The bucket of a time in its day.
pub(crate) fn bucket_of(slices: Slices, day: &str, ms: i64) -> i32 {
    let start = day.parse::<Day>().map_or(0, |day| day.start().0);
    // Bounds of a range may lie far outside of the day.
    ((ms - start).div_euclid(slices.bucket_ms)).clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// The slice of a row by its clustering values. It must never change: a replay overwrites its row only in the same slice.
pub(crate) fn slice_of(slices: Slices, clustering: &[Value]) -> i32 {
    let mut bytes = Vec::new();
    clustering.iter().for_each(|value| values::push_bytes(value, &mut bytes));
    // FNV-1a, with its high half folded in: the low bits of the plain one follow the last byte too closely.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((hash ^ hash >> 32) % u64::from(slices.count)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn the_slice_of_a_row_is_fixed_and_spread() {
        let slices = Slices { bucket_ms: 60_000, count: 16 };
        let key = |id: u128| [Value::Timestamp(1_704_888_000_000), Value::Uuid(Uuid::from_u128(id))];
        let of = (0..4).map(|id| slice_of(slices, &key(id))).collect::<Vec<_>>();
        assert_eq!(of, [6, 5, 12, 3], "stored rows depend on these numbers");
        let used: HashSet<i32> = (0..1_000).map(|id| slice_of(slices, &key(id * 7))).collect();
        assert_eq!(used.len(), 16);
        assert_eq!(bucket_of(slices, "2024-01-10", 1_704_888_000_000 + 59_999), 720);
    }
}
