//! The bucket and slice of rows of sliced tables.

use crate::cluster::Cluster;
use crate::plan::TablePlan;
use crate::slices::{SliceBook, bucket_of, slice_of};
use emberkeep_history::{Error, Result};
use emberkeep_schema::{Slices, Value};

/// Finds places of rows with what the store knows about days.
#[derive(Clone, Copy)]
pub(crate) struct Placer<'p> {
    pub(crate) cluster: &'p Cluster,
    pub(crate) book: &'p SliceBook,
}

impl Placer<'_> {
    /// The place of a row that will be written. Its day is fixed and its bucket registered.
    pub(crate) async fn place_of_write(
        &self,
        plan: &TablePlan,
        row: &[Option<Value>],
        now_ms: i64,
    ) -> Result<(i32, i32)> {
        let (day, ms) = day_and_time(plan, row)?;
        let declared = plan.slices.ok_or_else(|| not_sliced(plan))?;
        let slices = self.book.fix(self.cluster, plan, declared, day).await?;
        let place = place(plan, row, slices, day, ms);
        self.book.register(self.cluster, plan, day, place.0, now_ms).await?;
        Ok(place)
    }

    /// The place of a row that may exist; `None` if its day has no rows.
    pub(crate) async fn place_of_read(
        &self,
        plan: &TablePlan,
        row: &[Option<Value>],
    ) -> Result<Option<(i32, i32)>> {
        let (day, ms) = day_and_time(plan, row)?;
        let slices = self.book.find(self.cluster, plan, day).await?;
        Ok(slices.map(|slices| place(plan, row, slices, day, ms)))
    }
}

fn place(plan: &TablePlan, row: &[Option<Value>], slices: Slices, day: &str, ms: i64) -> (i32, i32) {
    (bucket_of(slices, day, ms), slice_of(slices, &plan.rows.clustering_of(row)))
}

/// The day bucket of a row and the time that it is of.
fn day_and_time<'r>(plan: &TablePlan, row: &'r [Option<Value>]) -> Result<(&'r str, i64)> {
    let bucket = plan.declaration.bucket().ok_or_else(|| not_sliced(plan))?;
    let time = bucket.day_of.and_then(|name| plan.declaration.index(name));
    match (&row[0], time.and_then(|place| row[place].as_ref())) {
        (Some(Value::Text(day)), Some(Value::Timestamp(ms))) => Ok((day, *ms)),
        _ => Err(not_sliced(plan)),
    }
}

fn not_sliced(plan: &TablePlan) -> Error {
    Error::Internal { reason: format!("{} has no day that could be divided", plan.declaration.name) }
}
