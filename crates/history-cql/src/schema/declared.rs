//! The tables that a schema has on a cluster, as data that can be compared.

use crate::plan::{BUCKET_COLUMN, SLICE_COLUMN};
use crate::slices::{DayBucket, DaySlices};
use emberkeep_history::HistorySchema;
use emberkeep_schema::{
    Compaction, CqlLayout, DeprecatedColumn, Order, RowTtl, Table, TableDeclaration, TotalsDeclaration,
};

/// A table as it is declared for a layout.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeclaredTable {
    pub(super) name: String,
    /// Names and types of the columns, in the declared order.
    pub(super) columns: Vec<(String, String)>,
    pub(super) partition: Vec<String>,
    pub(super) clustering: Vec<(String, Order)>,
    pub(super) ttl_s: i64,
    pub(super) compaction: Compaction,
    /// Secondary indexes with their columns.
    pub(super) indexes: Vec<(String, String)>,
    pub(super) deprecated: &'static [DeprecatedColumn],
    /// The statement that creates it, without its indexes.
    pub(super) create: String,
}

/// The declarations of a schema with the tables that a layout needs besides.
pub(super) fn declarations(schema: &HistorySchema, layout: CqlLayout) -> Vec<&'static TableDeclaration> {
    let has_slices = schema.tables().iter().any(|table| table.slices.is_some());
    let own = [DaySlices::DECLARATION, DayBucket::DECLARATION];
    let own = own.into_iter().filter(|_| layout == CqlLayout::Scaled && has_slices);
    schema.tables().iter().copied().chain(own).collect()
}

/// All tables of a schema.
pub(super) fn tables(schema: &HistorySchema, layout: CqlLayout) -> Vec<DeclaredTable> {
    let mut tables = Vec::new();
    for declaration in declarations(schema, layout) {
        add_table(&mut tables, declaration, layout);
    }
    schema.all_totals().iter().for_each(|totals| add_totals(&mut tables, totals));
    tables
}

/// The statements of a text, each without its `;`.
pub(super) fn statements(text: &str) -> Vec<String> {
    text.split(";\n").map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

fn columns(declaration: &TableDeclaration) -> Vec<(String, String)> {
    declaration.columns.iter().map(|column| (column.name.to_owned(), column.kind.to_string())).collect()
}

fn owned(key: &[(&str, Order)]) -> Vec<(String, Order)> {
    key.iter().map(|(name, order)| ((*name).to_owned(), *order)).collect()
}

fn add_table(tables: &mut Vec<DeclaredTable>, declaration: &TableDeclaration, layout: CqlLayout) {
    let texts = statements(&declaration.to_cql(layout));
    let creates = |name: &str| {
        let head = format!("CREATE TABLE IF NOT EXISTS {name} (");
        texts.iter().find(|text| text.starts_with(&head)).cloned().unwrap_or_default()
    };
    let ttl_s = match declaration.ttl {
        RowTtl::Persistent => 0,
        RowTtl::Written { ms } | RowTtl::Since { ms, .. } => ms / 1_000,
    };
    let table = |name: String, partition: Vec<&str>, clustering: &[(&str, Order)]| DeclaredTable {
        columns: columns(declaration),
        partition: partition.into_iter().map(str::to_owned).collect(),
        clustering: owned(clustering),
        ttl_s,
        compaction: declaration.compaction,
        indexes: Vec::new(),
        deprecated: declaration.deprecated,
        create: creates(&name),
        name,
    };
    let mut rows = table(declaration.name.to_owned(), declaration.partition.to_vec(), declaration.clustering);
    if layout == CqlLayout::Scaled && declaration.slices.is_some() {
        for name in [BUCKET_COLUMN, SLICE_COLUMN] {
            rows.columns.push((name.to_owned(), "int".to_owned()));
            rows.partition.push(name.to_owned());
        }
    }
    let mut query_tables = Vec::new();
    for lookup in declaration.lookups {
        match declaration.index_in(lookup, layout) {
            Some(index) => {
                rows.indexes.push((index.to_owned(), declaration.indexed_column(lookup).to_owned()));
            }
            None => {
                let key = declaration.lookup_key(lookup);
                let (partition, clustering) = key.split_at(lookup.partition.len());
                let partition = partition.iter().map(|(name, _)| *name).collect();
                query_tables.push(table(declaration.query_table(lookup), partition, clustering));
            }
        }
    }
    tables.push(rows);
    tables.extend(query_tables);
}

fn add_totals(tables: &mut Vec<DeclaredTable>, totals: &TotalsDeclaration) {
    let texts = statements(&totals.to_cql());
    let (key, of) = totals.key;
    let sums = totals.sums.iter().map(|sum| (sum.name.to_owned(), "bigint".to_owned()));
    let last = ("last_updated".to_owned(), "timestamp".to_owned());
    let head = (key.to_owned(), of.to_string());
    let source = [("source".to_owned(), "text".to_owned()), ("position".to_owned(), "bigint".to_owned())];
    let table =
        |name: &str, columns: Vec<(String, String)>, clustering: Vec<(String, Order)>, number: usize| {
            DeclaredTable {
                name: name.to_owned(),
                columns,
                partition: vec![key.to_owned()],
                clustering,
                ttl_s: 0,
                compaction: Compaction::SizeTiered,
                indexes: Vec::new(),
                deprecated: &[],
                create: texts.get(number).cloned().unwrap_or_default(),
            }
        };
    let columns = [head.clone()].into_iter().chain(sums.clone()).chain([last.clone()]).collect();
    tables.push(table(totals.name, columns, Vec::new(), 0));
    let columns = [head].into_iter().chain(source).chain(sums).chain([last]).collect();
    tables.push(table(totals.by_source, columns, vec![("source".to_owned(), Order::Ascending)], 1));
}
