//! What a declared table is on the cluster: stored tables, and the texts of their statements.

use emberkeep_schema::{CqlLayout, Lookup, Order, RowTtl, Slices, TableDeclaration, Value, cql_name};
use std::sync::Arc;

/// Columns that divide a day in the layout `scaled`.
pub(crate) const BUCKET_COLUMN: &str = "ember_bucket";
pub(crate) const SLICE_COLUMN: &str = "ember_slice";

/// A declared table on the cluster.
#[derive(Debug)]
pub(crate) struct TablePlan {
    pub(crate) declaration: &'static TableDeclaration,
    /// The table of the declaration's name.
    pub(crate) rows: StoredTable,
    /// How a day of it is divided, in the layout `scaled`.
    pub(crate) slices: Option<Slices>,
    pub(crate) lookups: Vec<LookupPlan>,
    /// Place of the time that decides TTL and timestamp.
    pub(crate) time: Option<usize>,
    /// The TTL in milliseconds, if it is counted from a time of the row.
    pub(crate) ttl_ms: Option<i64>,
}

/// What serves a lookup.
#[derive(Debug)]
pub(crate) struct LookupPlan {
    pub(crate) lookup: &'static Lookup,
    /// Its query table; `None` = a secondary index of the table.
    pub(crate) table: Option<StoredTable>,
}

/// One table of the cluster with the columns of a declaration.
#[derive(Debug)]
pub(crate) struct StoredTable {
    /// Keyspace and name, as in statements.
    pub(crate) name: String,
    /// Places of the partition key's columns in a row.
    pub(crate) partition: Vec<usize>,
    /// Places, names and orders of the clustering columns.
    pub(crate) clustering: Vec<(usize, &'static str, Order)>,
    pub(crate) has_slices: bool,
    /// All columns, then the timestamp, then the TTL where it is counted from the row.
    pub(crate) insert: Arc<str>,
    /// The timestamp, then the key.
    pub(crate) delete: Arc<str>,
    /// The key in its order; it returns one row.
    pub(crate) get: Arc<str>,
    /// `SELECT … FROM …`
    pub(crate) select: String,
}

impl TablePlan {
    pub(crate) fn new(
        declaration: &'static TableDeclaration,
        keyspace: &str,
        layout: CqlLayout,
    ) -> TablePlan {
        let slices = declaration.slices.filter(|_| layout == CqlLayout::Scaled);
        let stored = |name: &str, partition: &[&'static str], key: Vec<(&'static str, Order)>, has_slices| {
            StoredTable::new(declaration, format!("{keyspace}.{name}"), partition, &key, has_slices)
        };
        let lookup = |lookup: &'static Lookup| {
            let table = declaration.index_in(lookup, layout).is_none().then(|| {
                let name = declaration.query_table(lookup);
                stored(&name, lookup.partition, declaration.lookup_key(lookup), false)
            });
            LookupPlan { lookup, table }
        };
        let ttl_ms = match declaration.ttl {
            RowTtl::Since { ms, .. } => Some(ms),
            _ => None,
        };
        TablePlan {
            declaration,
            rows: stored(
                declaration.name,
                declaration.partition,
                declaration.primary_key(),
                slices.is_some(),
            ),
            slices,
            lookups: declaration.lookups.iter().map(lookup).collect(),
            time: declaration.time_column().and_then(|name| declaration.index(name)),
            ttl_ms,
        }
    }

    pub(crate) fn lookup(&self, name: &str) -> Option<&LookupPlan> {
        self.lookups.iter().find(|plan| plan.lookup.name == name)
    }

    /// The tables of lookups; lookups that secondary indexes serve have none.
    pub(crate) fn query_tables(&self) -> Vec<&StoredTable> {
        self.lookups.iter().filter_map(|lookup| lookup.table.as_ref()).collect()
    }

    /// A row with the values of a primary key, and nothing else.
    pub(crate) fn row_of_key(&self, key: &[Value]) -> Vec<Option<Value>> {
        let mut row = vec![None; self.declaration.columns.len()];
        for (place, value) in self.key_places().zip(key) {
            row[place] = Some(value.clone());
        }
        row
    }

    /// The values of a row's primary key.
    pub(crate) fn key_of_row(&self, row: &[Option<Value>]) -> Vec<Value> {
        self.key_places().filter_map(|place| row[place].clone()).collect()
    }

    fn key_places(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.partition.iter().copied().chain(self.rows.clustering.iter().map(|(place, _, _)| *place))
    }
}

impl StoredTable {
    fn new(
        declaration: &'static TableDeclaration,
        name: String,
        partition: &[&'static str],
        key: &[(&'static str, Order)],
        has_slices: bool,
    ) -> StoredTable {
        let place = |name: &str| declaration.index(name).expect("keys name columns, checked at compile time");
        let columns: Vec<_> = declaration.columns.iter().map(|column| cql_name(column.name)).collect();
        let slices: &[&str] = if has_slices { &[BUCKET_COLUMN, SLICE_COLUMN] } else { &[] };
        let inserted: Vec<&str> = columns.iter().map(AsRef::as_ref).chain(slices.iter().copied()).collect();
        let ttl = if matches!(declaration.ttl, RowTtl::Since { .. }) { " AND TTL ?" } else { "" };
        let keys = key[..partition.len()].iter().map(|(name, _)| *name).chain(slices.iter().copied());
        let keys = keys.chain(key[partition.len()..].iter().map(|(name, _)| *name));
        let condition = keys.map(|name| format!("{} = ?", cql_name(name))).collect::<Vec<_>>().join(" AND ");
        let select = format!("SELECT {} FROM {name}", columns.join(", "));
        let clustering = key[partition.len()..].iter().map(|(name, order)| (place(name), *name, *order));
        StoredTable {
            partition: partition.iter().map(|name| place(name)).collect(),
            clustering: clustering.collect(),
            has_slices,
            insert: format!(
                "INSERT INTO {name} ({}) VALUES ({}) USING TIMESTAMP ?{ttl}",
                inserted.join(", "),
                vec!["?"; inserted.len()].join(", ")
            )
            .into(),
            delete: format!("DELETE FROM {name} USING TIMESTAMP ? WHERE {condition}").into(),
            get: format!("{select} WHERE {condition}").into(),
            select,
            name,
        }
    }

    /// The values of the partition key of a row.
    pub(crate) fn partition_of<'r>(&self, row: &'r [Option<Value>]) -> Vec<&'r Value> {
        self.partition.iter().filter_map(|place| row[*place].as_ref()).collect()
    }

    /// The clustering values of a row.
    pub(crate) fn clustering_of(&self, row: &[Option<Value>]) -> Vec<Value> {
        self.clustering.iter().filter_map(|(place, _, _)| row[*place].clone()).collect()
    }
}
