//! Checks of what callers pass, the same for every store: types, limits, times, floats.

use crate::contract::RawRow;
use crate::error::{Error, Result};
use crate::key_encoding;
use crate::limits::{FUTURE_MAX, KEY_BYTES_MAX, ROW_BYTES_MAX};
use emberkeep_schema::{ColumnDeclaration, Order, TableDeclaration, Timestamp, Value};
use std::collections::HashSet;

fn place(table: &TableDeclaration, column: &str) -> String {
    format!("{}.{column}", table.name)
}

/// One value that is there: its type, its number, its time.
fn check_value(table: &TableDeclaration, column: &ColumnDeclaration, value: &Value) -> Result<()> {
    let invalid = |problem: String| Err(Error::invalid(place(table, column.name), problem));
    if !value.is_of(column.kind) {
        return invalid(format!("a value of another type, expected {}", column.kind));
    }
    if value.is_non_finite() {
        return invalid("a number that is infinite or not a number, expected a finite one".into());
    }
    if let Value::Timestamp(ms) = value
        && !Timestamp(*ms).is_valid()
    {
        return invalid(format!("the time {ms}, expected milliseconds from 1970 to the end of 9999"));
    }
    Ok(())
}

/// The bytes of a row, if every value of it may be stored.
pub(crate) fn row(table: &TableDeclaration, row: &RawRow, now: i64) -> Result<usize> {
    if row.len() != table.columns.len() {
        return Err(Error::invalid(
            table.name,
            format!("{} values, expected {}", row.len(), table.columns.len()),
        ));
    }
    // Times come first: a bucket is absent because its time is not valid, and the caller knows the time only.
    for (column, value) in table.columns.iter().zip(row).rev() {
        match value {
            Some(value) => check_value(table, column, value)?,
            None if column.optional => {}
            None => return Err(Error::invalid(place(table, column.name), "no value, expected one")),
        }
    }
    let time_columns = [table.window_column(), table.bucket().and_then(|bucket| bucket.day_of)];
    for name in time_columns.into_iter().flatten() {
        let time = table.index(name).and_then(|index| row[index].as_ref());
        if let Some(Value::Timestamp(ms)) = time
            && *ms > now.saturating_add(FUTURE_MAX.as_millis() as i64)
        {
            let problem =
                format!("the time {ms} is more than a day after now ({now}); is it in milliseconds?");
            return Err(Error::invalid(place(table, name), problem));
        }
    }
    // No lookup's key is longer than that of all its columns and the row's key together.
    let is_in_a_key = |name: &str| {
        table.is_key(name) || table.lookups.iter().any(|lookup| lookup.partition.contains(&name))
    };
    let in_keys = table.columns.iter().zip(row).filter(|(column, _)| is_in_a_key(column.name));
    key_limit(
        format!("the key of a row of {}", table.name),
        in_keys.filter_map(|(_, value)| value.as_ref()),
    )?;
    let bytes = row.iter().flatten().map(Value::size_bytes).sum();
    limit(format!("a row of {}", table.name), bytes, "bytes", ROW_BYTES_MAX)?;
    Ok(bytes)
}

/// The values of a primary key, or of a partition's columns.
pub(crate) fn key<'n>(
    table: &TableDeclaration,
    names: impl Iterator<Item = &'n str>,
    values: Vec<Option<Value>>,
) -> Result<Vec<Value>> {
    let mut checked = Vec::with_capacity(values.len());
    let named: Vec<_> = names.zip(values).collect();
    for (name, value) in named.iter().rev() {
        let column = table.column(name).expect("keys name columns, checked at compile time");
        let Some(value) = value else {
            return Err(Error::invalid(place(table, name), "no value, expected one"));
        };
        check_value(table, column, value)?;
    }
    key_limit(format!("the key of {}", table.name), named.iter().filter_map(|(_, value)| value.as_ref()))?;
    checked.extend(named.into_iter().filter_map(|(_, value)| value));
    Ok(checked)
}

/// A value for a named column.
pub(crate) fn column_value(table: &TableDeclaration, name: &str, value: &Value) -> Result<()> {
    let column = table.column(name).expect("keys name columns, checked at compile time");
    check_value(table, column, value)
}

/// Refuses the values of a key whose stored form would be too long.
pub(crate) fn key_limit<'v>(what: String, values: impl IntoIterator<Item = &'v Value>) -> Result<()> {
    let bytes = values.into_iter().map(key_encoding::encoded_bytes).sum();
    limit(what, bytes, "bytes", KEY_BYTES_MAX)
}

/// Refuses what is larger than a limit.
pub(crate) fn limit(what: String, found: usize, unit: &'static str, max: usize) -> Result<()> {
    if found > max { Err(Error::TooLarge { what, found, unit, max, remedy: "split it" }) } else { Ok(()) }
}

/// The primary key of a row that was checked, as bytes.
pub(crate) fn encoded_key(table: &TableDeclaration, row: &RawRow) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, _) in table.primary_key() {
        if let Some(value) = table.index(name).and_then(|place| row[place].as_ref()) {
            key_encoding::push(&mut out, value, Order::Ascending);
        }
    }
    out
}

/// The values of a primary key, as bytes.
pub(crate) fn encoded_values(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|value| key_encoding::push(&mut out, value, Order::Ascending));
    out
}

/// The values of a partition key, which come first in a primary key, as bytes.
pub(crate) fn encoded_partition(table: &TableDeclaration, key: &[&Value]) -> Vec<u8> {
    let mut out = Vec::new();
    let of_partition = key.iter().take(table.partition.len());
    of_partition.for_each(|value| key_encoding::push(&mut out, value, Order::Ascending));
    out
}

/// The keys of rows, if each stands once: on CQL two writes of one key and timestamp would mix their columns.
pub(crate) fn distinct_keys(table: &TableDeclaration, rows: &[RawRow]) -> Result<HashSet<Vec<u8>>> {
    let keys: HashSet<_> = rows.iter().map(|row| encoded_key(table, row)).collect();
    if keys.len() == rows.len() { Ok(keys) } else { Err(twice(table)) }
}

fn twice(table: &TableDeclaration) -> Error {
    Error::invalid(format!("batch of {}", table.name), "one key stands twice; keep one of its rows")
}

/// The keys to remove without those that are written.
pub(crate) fn removed_keys(
    table: &TableDeclaration,
    removed: Vec<Vec<Value>>,
    written: &HashSet<Vec<u8>>,
) -> Result<Vec<Vec<Value>>> {
    let mut seen = HashSet::new();
    if !removed.iter().all(|key| seen.insert(encoded_values(key))) {
        return Err(twice(table));
    }
    Ok(removed.into_iter().filter(|key| !written.contains(&encoded_values(key))).collect())
}

/// Refuses rows and keys of several partitions: only those of one are written together on CQL.
pub(crate) fn one_partition(table: &TableDeclaration, rows: &[RawRow], keys: &[Vec<Value>]) -> Result<()> {
    let place = |name: &&'static str| table.index(name).expect("keys name columns, checked at compile time");
    let places: Vec<usize> = table.partition.iter().map(place).collect();
    let of_rows = rows.iter().map(|row| places.iter().map(|place| row[*place].as_ref()).collect::<Vec<_>>());
    let of_keys = keys.iter().map(|key| key[..places.len()].iter().map(Some).collect());
    let mut partitions = of_rows.chain(of_keys);
    let Some(first) = partitions.next() else { return Ok(()) };
    if partitions.all(|partition| partition == first) {
        return Ok(());
    }
    let problem = "rows of several partitions, expected those of one; make a call for each partition";
    Err(Error::invalid(format!("batch of {}", table.name), problem))
}
