//! Values of history as values of CQL, in both directions.

use emberkeep_schema::{ColumnType, TableDeclaration, Value};
use scylla::cluster::metadata::ColumnType as CqlType;
use scylla::serialize::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};
use scylla::value::{CqlTimestamp, CqlValue, Row, Unset};
use std::net::IpAddr;

/// A value that is bound to a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Value(Value),
    /// Removes what is stored.
    Null,
    /// Leaves what is stored, and writes no tombstone.
    Unset,
}

impl Cell {
    /// The value of a column that is replaced.
    pub(crate) fn replacing(value: Option<Value>) -> Cell {
        value.map_or(Cell::Null, Cell::Value)
    }

    /// The value of a column that is never changed.
    pub(crate) fn adding(value: Option<Value>) -> Cell {
        value.map_or(Cell::Unset, Cell::Value)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            Cell::Value(value) => value.size_bytes() + 4,
            Cell::Null | Cell::Unset => 4,
        }
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Cell {
        Cell::Value(value)
    }
}

impl SerializeValue for Cell {
    fn serialize<'b>(
        &self,
        of: &CqlType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        let value = match self {
            Cell::Value(value) => value,
            Cell::Null => return Ok(writer.set_null()),
            Cell::Unset => return Unset.serialize(of, writer),
        };
        match value {
            Value::Text(text) => text.serialize(of, writer),
            Value::Int(number) => number.serialize(of, writer),
            Value::BigInt(number) => number.serialize(of, writer),
            Value::SmallInt(number) => number.serialize(of, writer),
            Value::TinyInt(number) => number.serialize(of, writer),
            Value::Float(float) => float.serialize(of, writer),
            Value::Double(double) => double.serialize(of, writer),
            Value::Boolean(truth) => truth.serialize(of, writer),
            Value::Timestamp(ms) => CqlTimestamp(*ms).serialize(of, writer),
            Value::Uuid(uuid) => uuid.serialize(of, writer),
            Value::Inet(address) => address.serialize(of, writer),
            Value::Blob(bytes) => bytes.serialize(of, writer),
            Value::TextSet(texts) => texts.serialize(of, writer),
            other => nested(other).serialize(of, writer),
        }
    }
}

/// A value inside of a tuple, or the list of tuples itself.
fn nested(value: &Value) -> CqlValue {
    match value {
        Value::Text(text) => CqlValue::Text(text.clone()),
        Value::Int(number) => CqlValue::Int(*number),
        Value::BigInt(number) => CqlValue::BigInt(*number),
        Value::SmallInt(number) => CqlValue::SmallInt(*number),
        Value::TinyInt(number) => CqlValue::TinyInt(*number),
        Value::Float(float) => CqlValue::Float(*float),
        Value::Double(double) => CqlValue::Double(*double),
        Value::Boolean(truth) => CqlValue::Boolean(*truth),
        Value::Timestamp(ms) => CqlValue::Timestamp(CqlTimestamp(*ms)),
        Value::Uuid(uuid) => CqlValue::Uuid(*uuid),
        Value::Inet(address) => CqlValue::Inet(*address),
        Value::Blob(bytes) => CqlValue::Blob(bytes.clone()),
        Value::TextSet(texts) => CqlValue::Set(texts.iter().cloned().map(CqlValue::Text).collect()),
        Value::Tuples(tuples) => {
            let tuple =
                |elements: &Vec<Value>| CqlValue::Tuple(elements.iter().map(|e| Some(nested(e))).collect());
            CqlValue::List(tuples.iter().map(tuple).collect())
        }
        // The enum may grow in its crate; a server refuses the empty value for a type that has none.
        _ => CqlValue::Empty,
    }
}

/// A value as the server returned it; `Err` says what is wrong with it.
pub(crate) fn read(value: Option<CqlValue>, expected: ColumnType) -> Result<Option<Value>, String> {
    value.map(|value| typed(value, expected)).transpose()
}

fn typed(value: CqlValue, expected: ColumnType) -> Result<Value, String> {
    let other = || format!("it is of another type, expected {expected}");
    Ok(match (value, expected) {
        (CqlValue::Text(text) | CqlValue::Ascii(text), ColumnType::Text) => Value::Text(text),
        (CqlValue::Int(number), ColumnType::Int) => Value::Int(number),
        (CqlValue::BigInt(number), ColumnType::BigInt) => Value::BigInt(number),
        (CqlValue::SmallInt(number), ColumnType::SmallInt) => Value::SmallInt(number),
        (CqlValue::TinyInt(number), ColumnType::TinyInt) => Value::TinyInt(number),
        (CqlValue::Float(float), ColumnType::Float) => Value::Float(float),
        (CqlValue::Double(double), ColumnType::Double) => Value::Double(double),
        (CqlValue::Boolean(truth), ColumnType::Boolean) => Value::Boolean(truth),
        (CqlValue::Timestamp(CqlTimestamp(ms)), ColumnType::Timestamp) => Value::Timestamp(ms),
        (CqlValue::Uuid(uuid), ColumnType::Uuid) => Value::Uuid(uuid),
        (CqlValue::Inet(address), ColumnType::Inet) => Value::Inet(address),
        (CqlValue::Blob(bytes), ColumnType::Blob) => Value::Blob(bytes),
        (CqlValue::Set(texts), ColumnType::TextSet) => {
            let text = |value| match value {
                CqlValue::Text(text) => Ok(text),
                _ => Err(other()),
            };
            Value::TextSet(texts.into_iter().map(text).collect::<Result<_, _>>()?)
        }
        (CqlValue::List(tuples), ColumnType::Tuples(types)) => {
            let tuple = |value| match value {
                CqlValue::Tuple(elements) if elements.len() == types.len() => {
                    let element = |(value, of): (Option<CqlValue>, &ColumnType)| {
                        typed(value.ok_or_else(|| "a tuple lacks an element".to_owned())?, *of)
                    };
                    elements.into_iter().zip(types).map(element).collect()
                }
                _ => Err(other()),
            };
            Value::Tuples(tuples.into_iter().map(tuple).collect::<Result<_, _>>()?)
        }
        _ => return Err(other()),
    })
}

/// What is wrong with a row: a column, and the reason.
pub(crate) type Problem = (&'static str, String);

/// The values of all declared columns, which a statement returned in their order, and what is wrong with one of them.
pub(crate) fn read_values(
    table: &'static TableDeclaration,
    row: Row,
) -> (Vec<Option<Value>>, Option<Problem>) {
    let (mut values, mut problem) = (Vec::with_capacity(table.columns.len()), None);
    for (value, column) in row.columns.into_iter().zip(table.columns) {
        values.push(read(value, column.kind).unwrap_or_else(|reason| {
            problem = Some((column.name, reason));
            None
        }));
    }
    (values, problem)
}

/// The values of all declared columns, or what is wrong with one of them.
pub(crate) fn read_row(table: &'static TableDeclaration, row: Row) -> Result<Vec<Option<Value>>, Problem> {
    let (values, problem) = read_values(table, row);
    problem.map_or(Ok(values), Err)
}

/// A value as bytes that differ from those of every other value of its type. They are never stored, but rows are placed
/// by them, so they must not change.
pub(crate) fn push_bytes(value: &Value, out: &mut Vec<u8>) {
    let mut with_length = |bytes: &[u8]| {
        out.extend((bytes.len() as u32).to_be_bytes());
        out.extend(bytes);
    };
    match value {
        Value::Text(text) => with_length(text.as_bytes()),
        Value::Blob(bytes) => with_length(bytes),
        Value::Int(number) => out.extend(number.to_be_bytes()),
        Value::BigInt(number) | Value::Timestamp(number) => out.extend(number.to_be_bytes()),
        Value::SmallInt(number) => out.extend(number.to_be_bytes()),
        Value::TinyInt(number) => out.extend(number.to_be_bytes()),
        Value::Float(float) => out.extend(float.to_bits().to_be_bytes()),
        Value::Double(double) => out.extend(double.to_bits().to_be_bytes()),
        Value::Boolean(truth) => out.push(u8::from(*truth)),
        Value::Uuid(uuid) => out.extend(uuid.as_bytes()),
        Value::Inet(IpAddr::V4(address)) => with_length(&address.octets()),
        Value::Inet(IpAddr::V6(address)) => with_length(&address.octets()),
        Value::TextSet(texts) => texts.iter().for_each(|text| with_length(text.as_bytes())),
        Value::Tuples(tuples) => tuples.iter().flatten().for_each(|element| push_bytes(element, out)),
        _ => {}
    }
}
