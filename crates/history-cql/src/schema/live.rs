//! The tables of a live keyspace, read from the server's own tables.

use crate::cluster::{Cluster, Mode, Statement};
use crate::connect::ConnectError;
use crate::values::Cell;
use emberkeep_history::Error;
use emberkeep_schema::{Order, Value};
use scylla::value::{CqlValue, Row};
use std::collections::HashMap;

/// A table as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LiveTable {
    /// Types of the columns by name.
    pub(super) columns: HashMap<String, String>,
    pub(super) partition: Vec<String>,
    pub(super) clustering: Vec<(String, Order)>,
    pub(super) ttl_s: i64,
    pub(super) compaction: HashMap<String, String>,
    /// Columns by the names of their indexes.
    pub(super) indexes: HashMap<String, String>,
}

/// The tables of a keyspace by name.
pub(super) async fn read(
    cluster: &Cluster,
    keyspace: &str,
) -> Result<HashMap<String, LiveTable>, ConnectError> {
    let select = |columns: &str, table: &str| {
        format!("SELECT {columns} FROM system_schema.{table} WHERE keyspace_name = ?")
    };
    let found = rows(cluster, keyspace, &select("keyspace_name", "keyspaces")).await?;
    if found.is_empty() {
        return Err(ConnectError::Keyspace { keyspace: keyspace.to_owned() });
    }
    let mut tables: HashMap<String, LiveTable> = HashMap::new();
    for row in
        rows(cluster, keyspace, &select("table_name, default_time_to_live, compaction", "tables")).await?
    {
        let mut columns = row.columns.into_iter();
        let (name, ttl, compaction) = (text(columns.next()), columns.next(), columns.next());
        let ttl_s = if let Some(Some(CqlValue::Int(seconds))) = ttl { seconds.into() } else { 0 };
        tables.insert(name, LiveTable { ttl_s, compaction: map(compaction), ..LiveTable::default() });
    }
    let names = "table_name, column_name, type, kind, position, clustering_order";
    let mut keys: Vec<(String, String, String, i32, Order)> = Vec::new();
    for row in rows(cluster, keyspace, &select(names, "columns")).await? {
        let mut columns = row.columns.into_iter();
        let [table, name, kind_of_value, kind] = std::array::from_fn(|_| text(columns.next()));
        let position = if let Some(Some(CqlValue::Int(position))) = columns.next() { position } else { -1 };
        let is_descending = text(columns.next()).eq_ignore_ascii_case("desc");
        let order = if is_descending { Order::Descending } else { Order::Ascending };
        if let Some(live) = tables.get_mut(&table) {
            live.columns.insert(name.clone(), kind_of_value);
            keys.push((table, name, kind, position, order));
        }
    }
    keys.sort_by_key(|(_, _, _, position, _)| *position);
    for (table, name, kind, _, order) in keys {
        let Some(live) = tables.get_mut(&table) else { continue };
        match kind.as_str() {
            "partition_key" => live.partition.push(name),
            "clustering" => live.clustering.push((name, order)),
            _ => {}
        }
    }
    for row in rows(cluster, keyspace, &select("table_name, index_name, options", "indexes")).await? {
        let mut columns = row.columns.into_iter();
        let (table, name) = (text(columns.next()), text(columns.next()));
        let target = map(columns.next()).remove("target").unwrap_or_default();
        if let Some(live) = tables.get_mut(&table) {
            live.indexes.insert(name, target.trim_matches('"').to_owned());
        }
    }
    Ok(tables)
}

async fn rows(cluster: &Cluster, keyspace: &str, text: &str) -> Result<Vec<Row>, ConnectError> {
    let cells = vec![Cell::Value(Value::Text(keyspace.to_owned()))];
    let statement = Statement { text: text.into(), cells };
    let read = cluster.read("system_schema", Mode::Idempotent, &statement, usize::MAX, usize::MAX).await;
    let failed = |error: Error| match error {
        Error::Unavailable { backend, reason } => ConnectError::Unreachable { cluster: backend, reason },
        error => ConnectError::Statement { keyspace: keyspace.to_owned(), reason: error.to_string() },
    };
    read.map(|(rows, _)| rows).map_err(failed)
}

fn text(value: Option<Option<CqlValue>>) -> String {
    match value {
        Some(Some(CqlValue::Text(text) | CqlValue::Ascii(text))) => text,
        _ => String::new(),
    }
}

fn map(value: Option<Option<CqlValue>>) -> HashMap<String, String> {
    let Some(Some(CqlValue::Map(pairs))) = value else { return HashMap::new() };
    pairs.into_iter().map(|(key, value)| (text(Some(Some(key))), text(Some(Some(value))))).collect()
}
