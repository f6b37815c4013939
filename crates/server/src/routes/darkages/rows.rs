//! Rows of history tables as JSON, and how the OpenAPI document describes them: both follow from the declaration.

use crate::error::{ApiError, ProblemDetails};
use emberkeep_history::{Page, UnreadableRow};
use emberkeep_schema::{ColumnDeclaration, ColumnType, Table, Value as Cell};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

type Components = Vec<(String, RefOr<Schema>)>;

/// Columns of bytes that hold JSON.
const JSON_COLUMNS: [&str; 2] = ["details", "settings"];

/// A row: columns by their names. Buckets, which follow from a time, are left out.
pub(super) struct HistoryRow<T> {
    cells: Vec<Option<Cell>>,
    table: PhantomData<fn() -> T>,
}

impl<T: Table> From<T> for HistoryRow<T> {
    fn from(row: T) -> HistoryRow<T> {
        HistoryRow { cells: row.into_values(), table: PhantomData }
    }
}

fn shown_columns<T: Table>() -> impl Iterator<Item = (usize, &'static ColumnDeclaration)> {
    T::DECLARATION.columns.iter().enumerate().filter(|(_, column)| column.day_of.is_none())
}

impl<T: Table> Serialize for HistoryRow<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(shown_columns::<T>().map(|(index, column)| {
            let cell = self.cells.get(index).and_then(Option::as_ref);
            (column.name, cell.map_or_else(|| absent(column.kind), |cell| json_of(column.name, cell)))
        }))
    }
}

/// A collection without elements is stored as no cell at all.
fn absent(kind: ColumnType) -> Value {
    match kind {
        ColumnType::TextSet | ColumnType::Tuples(_) => json!([]),
        _ => Value::Null,
    }
}

fn json_of(column: &str, cell: &Cell) -> Value {
    match cell {
        Cell::Blob(bytes) if JSON_COLUMNS.contains(&column) => {
            serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
        }
        Cell::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
        Cell::Text(text) => text.as_str().into(),
        Cell::Int(number) => (*number).into(),
        Cell::BigInt(number) | Cell::Timestamp(number) => (*number).into(),
        Cell::SmallInt(number) => (*number).into(),
        Cell::TinyInt(number) => (*number).into(),
        Cell::Float(number) => shortest(*number),
        Cell::Double(number) => (*number).into(),
        Cell::Boolean(is) => (*is).into(),
        Cell::Uuid(id) => id.to_string().into(),
        Cell::Inet(address) => address.to_string().into(),
        Cell::TextSet(texts) => texts.iter().map(String::as_str).collect(),
        Cell::Tuples(tuples) => tuples
            .iter()
            .map(|tuple| tuple.iter().map(|cell| json_of(column, cell)).collect::<Value>())
            .collect(),
        // `Value` may grow; a column of a new type is not shown before it is described.
        _ => Value::Null,
    }
}

/// A float with the digits that it has, not those of the nearest double.
fn shortest(number: f32) -> Value {
    number.to_string().parse::<f64>().unwrap_or(f64::from(number)).into()
}

impl<T: Table> PartialSchema for HistoryRow<T> {
    fn schema() -> RefOr<Schema> {
        let row = ObjectBuilder::new().description(Some(T::DECLARATION.doc));
        let row = shown_columns::<T>()
            .fold(row, |row, (_, column)| row.property(column.name, schema_of(column)).required(column.name));
        row.into()
    }
}

impl<T: Table> ToSchema for HistoryRow<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(T::DECLARATION.row)
    }
}

fn schema_of(column: &ColumnDeclaration) -> RefOr<Schema> {
    let object = ObjectBuilder::new().description(Some(column.doc.trim()));
    if JSON_COLUMNS.contains(&column.name) {
        return object.schema_type(SchemaType::AnyValue).into();
    }
    let (kind, format) = match column.kind {
        ColumnType::Int => (Type::Integer, Some(KnownFormat::Int32)),
        ColumnType::BigInt | ColumnType::Timestamp => (Type::Integer, Some(KnownFormat::Int64)),
        ColumnType::SmallInt => (Type::Integer, Some(KnownFormat::Int16)),
        ColumnType::TinyInt => (Type::Integer, Some(KnownFormat::Int8)),
        ColumnType::Float | ColumnType::Double => (Type::Number, None),
        ColumnType::Boolean => (Type::Boolean, None),
        ColumnType::Uuid => (Type::String, Some(KnownFormat::Uuid)),
        ColumnType::TextSet => {
            let text = ObjectBuilder::new().schema_type(Type::String);
            return ArrayBuilder::new().items(text).description(Some(column.doc.trim())).into();
        }
        ColumnType::Tuples(_) => (Type::Array, None),
        _ => (Type::String, None),
    };
    let kind = match column.optional {
        true => SchemaType::from_iter([kind, Type::Null]),
        false => SchemaType::Type(kind),
    };
    object.schema_type(kind).format(format.map(SchemaFormat::KnownFormat)).into()
}

/// A page of rows.
#[derive(Serialize)]
#[serde(bound = "")]
pub(super) struct RowPage<T: Table> {
    /// The rows, possibly fewer than asked for although more follow.
    rows: Vec<HistoryRow<T>>,
    /// Rows that are there and cannot be read.
    unreadable: Vec<ProblemDetails>,
    /// Cursor of the next page.
    next: Option<String>,
}

impl<T: Table> From<Page<T>> for RowPage<T> {
    fn from(page: Page<T>) -> RowPage<T> {
        RowPage {
            rows: page.rows.into_iter().map(HistoryRow::from).collect(),
            unreadable: page.unreadable.into_iter().map(unreadable).collect(),
            next: page.next.map(|cursor| cursor.to_string()),
        }
    }
}

fn unreadable(row: UnreadableRow) -> ProblemDetails {
    let key: Value = row.key.iter().map(|cell| json_of("", cell)).collect();
    ApiError::from(row.error).with("key", key).into_details()
}

impl<T: Table> PartialSchema for RowPage<T> {
    fn schema() -> RefOr<Schema> {
        let reference = |name: &str| RefOr::<Schema>::Ref(Ref::from_schema_name(name));
        let rows = ArrayBuilder::new().items(reference(T::DECLARATION.row));
        let problems = ArrayBuilder::new().items(reference("Problem"));
        let next = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("The `cursor` of the next page; `null` on the last one."))
            .examples([json!(null)]);
        ObjectBuilder::new()
            .description(Some("A page of rows."))
            .property(
                "rows",
                rows.description(Some("The rows, possibly fewer than asked for although more follow.")),
            )
            .property(
                "unreadable",
                problems.description(Some("Rows that are there and cannot be read; `key` names them.")),
            )
            .property("next", next)
            .required("rows")
            .required("unreadable")
            .required("next")
            .into()
    }
}

impl<T: Table> ToSchema for RowPage<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Page", T::DECLARATION.row))
    }

    fn schemas(components: &mut Components) {
        components.push((T::DECLARATION.row.to_owned(), HistoryRow::<T>::schema()));
    }
}
