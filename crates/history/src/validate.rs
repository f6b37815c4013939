//! Checks of what callers pass, the same for every store: types, limits, times, floats.

use crate::contract::RawRow;
use crate::error::{Error, Result};
use crate::limits::{FUTURE_MAX, KEY_BYTES_MAX, ROW_BYTES_MAX};
use emberkeep_schema::{ColumnDeclaration, TableDeclaration, Timestamp, Value};

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
    let sizes =
        || table.columns.iter().zip(row).map(|(c, value)| (c, value.as_ref().map_or(0, Value::size_bytes)));
    let key_bytes: usize =
        sizes().filter(|(column, _)| table.is_key(column.name)).map(|(_, bytes)| bytes).sum();
    let lookup_bytes =
        sizes().filter(|(column, _)| table.lookups.iter().any(|l| l.partition.contains(&column.name)));
    let key_bytes = key_bytes + lookup_bytes.map(|(_, bytes)| bytes).sum::<usize>();
    limit(format!("the key of a row of {}", table.name), key_bytes, "bytes", KEY_BYTES_MAX)?;
    let bytes = sizes().map(|(_, bytes)| bytes).sum();
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
        limit(format!("the key of {}", table.name), value.size_bytes(), "bytes", KEY_BYTES_MAX)?;
    }
    checked.extend(named.into_iter().filter_map(|(_, value)| value));
    Ok(checked)
}

/// A value for a named column.
pub(crate) fn column_value(table: &TableDeclaration, name: &str, value: &Value) -> Result<()> {
    let column = table.column(name).expect("keys name columns, checked at compile time");
    check_value(table, column, value)
}

/// Refuses what is larger than a limit.
pub(crate) fn limit(what: String, found: usize, unit: &'static str, max: usize) -> Result<()> {
    if found > max { Err(Error::TooLarge { what, found, unit, max }) } else { Ok(()) }
}
