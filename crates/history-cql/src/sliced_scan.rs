//! A scan of a day that is divided into buckets and slices: the slices of a bucket are merged in the order of their rows.

use crate::cluster::Cluster;
use crate::limits::{BUCKETS_READ_AT_ONCE_MAX, SLICES_READ_AT_ONCE_MAX};
use crate::order;
use crate::plan::{BUCKET_COLUMN, SLICE_COLUMN, TablePlan};
use crate::scan::{Scan, ScanResult};
use crate::slices::{SliceBook, bucket_of};
use emberkeep_history::{RangeRequest, Result};
use emberkeep_schema::{Order, Slices, Value};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::ops::Bound;

/// The rows of one day.
#[expect(clippy::too_many_arguments, reason = "one caller, and each is another thing")]
pub(crate) async fn day<'s>(
    cluster: &Cluster,
    plan: &'s TablePlan,
    book: &SliceBook,
    request: &RangeRequest,
    partition: &[Value],
    after: Option<&'s [Value]>,
    wanted: usize,
    scan: impl Fn(Vec<(&'static str, Value)>, Option<&'s [Value]>) -> Scan<'s>,
) -> Result<ScanResult> {
    let place = plan.rows.partition.iter().position(|place| *place == 0);
    let Some(Value::Text(day)) = place.and_then(|place| partition.get(place)) else {
        return Ok(ScanResult::default());
    };
    let Some(slices) = book.find(cluster, plan, day).await? else { return Ok(ScanResult::default()) };
    let (first, last) = bounds(plan, slices, day, request, after);
    let mut buckets = book.buckets(cluster, plan, day).await?;
    buckets.retain(|bucket| (first..=last).contains(bucket));
    let orders: Vec<Order> = plan.rows.clustering.iter().map(|(_, _, order)| *order).collect();
    if (orders[0] == Order::Descending) != request.reversed {
        buckets.reverse();
    }
    let names: Vec<&'static str> = plan.declaration.partition.to_vec();
    let (scan, names, orders) = (&scan, &names, &orders);
    let position = after.and_then(|after| match after.first() {
        Some(Value::Timestamp(ms)) => Some(bucket_of(slices, day, *ms)),
        _ => None,
    });
    let read_bucket = |bucket: i32| async move {
        // Buckets behind that of the position are read from their beginning.
        let after = after.filter(|_| position == Some(bucket));
        let read_slice = |slice: i32| {
            let mut fixed: Vec<_> = names.iter().copied().zip(partition.iter().cloned()).collect();
            fixed.extend([(BUCKET_COLUMN, Value::Int(bucket)), (SLICE_COLUMN, Value::Int(slice))]);
            let scan = scan(fixed, after);
            async move { scan.rows(cluster).await }
        };
        let slices = stream::iter(0..i32::from(slices.count)).map(read_slice);
        let parts: Vec<ScanResult> = slices.buffered(SLICES_READ_AT_ONCE_MAX).try_collect().await?;
        Ok(merged(parts, orders, request.reversed))
    };
    let mut found = ScanResult::default();
    let mut read = stream::iter(buckets).map(read_bucket).buffered(BUCKETS_READ_AT_ONCE_MAX);
    while let Some(bucket) = read.next().await {
        let bucket: Result<ScanResult> = bucket;
        let bucket = bucket?;
        found.rows.extend(bucket.rows);
        found.is_cut = bucket.is_cut;
        if found.is_cut || found.rows.len() >= wanted {
            break;
        }
    }
    if found.rows.len() > wanted {
        found.rows.truncate(wanted);
        found.is_cut = true;
    }
    Ok(found)
}

/// The rows of all slices in order. Behind the end of a slice that was cut nothing is known.
fn merged(parts: Vec<ScanResult>, orders: &[Order], is_reversed: bool) -> ScanResult {
    let compare = |a: &[Value], b: &[Value]| order::compare_rows(a, b, orders, is_reversed);
    let ends =
        parts.iter().filter(|part| part.is_cut).filter_map(|part| Some(part.rows.last()?.clustering.clone()));
    let end = ends.min_by(|a, b| compare(a, b));
    let mut rows: Vec<_> = parts.into_iter().flat_map(|part| part.rows).collect();
    rows.sort_by(|a, b| compare(&a.clustering, &b.clustering));
    if let Some(end) = &end {
        rows.retain(|row| compare(&row.clustering, end).is_le());
    }
    ScanResult { rows, is_cut: end.is_some() }
}

/// The first and the last bucket that can have rows of the range.
fn bounds(
    plan: &TablePlan,
    slices: Slices,
    day: &str,
    request: &RangeRequest,
    after: Option<&[Value]>,
) -> (i32, i32) {
    let bucket = |value: &Value| match value {
        Value::Timestamp(ms) => Some(bucket_of(slices, day, *ms)),
        _ => None,
    };
    let of_bound = |bound: &Bound<Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => bucket(value),
        Bound::Unbounded => None,
    };
    let (mut first, mut last) = (i32::MIN, i32::MAX);
    if let Some(equal) = request.equal.first().and_then(bucket) {
        (first, last) = (equal, equal);
    } else {
        first = of_bound(&request.low).unwrap_or(first);
        last = of_bound(&request.high).unwrap_or(last);
    }
    if let Some(position) = after.and_then(|after| after.first()).and_then(bucket) {
        let is_ascending = (plan.rows.clustering[0].2 == Order::Ascending) != request.reversed;
        if is_ascending { first = first.max(position) } else { last = last.min(position) }
    }
    (first, last)
}
