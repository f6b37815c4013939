//! Tables as CQL: what `schema cql` prints.

use super::declaration::{Compaction, Lookup, Order, RowTtl, TableDeclaration, Writes};
use std::borrow::Cow;
use std::fmt::Write as _;

/// How tables are laid out on a CQL server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CqlLayout {
    /// The tables and secondary indexes of the storage document; lookups without an index have query tables.
    Document,
    /// Days divided into slices, and a query table for each lookup.
    Scaled,
}

/// Names that the layout `scaled` adds to a partition key.
const BUCKET_COLUMN: &str = "ember_bucket";
const SLICE_COLUMN: &str = "ember_slice";

/// Words that CQL takes as a name only in quotes.
const RESERVED: &[&str] = &[
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "default",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "mbean",
    "mbeans",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "replace",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "truncate",
    "unlogged",
    "unset",
    "update",
    "use",
    "using",
    "view",
    "where",
    "with",
];

/// A declared name as CQL takes it: one that is a reserved word stands in quotes, as `"entries"` does on Cassandra 5.
pub fn cql_name(name: &str) -> Cow<'_, str> {
    if RESERVED.contains(&name) { Cow::Owned(format!("\"{name}\"")) } else { Cow::Borrowed(name) }
}

fn cql_names(names: &[&str]) -> String {
    names.iter().map(|name| cql_name(name)).collect::<Vec<_>>().join(", ")
}

impl TableDeclaration {
    /// The secondary index that serves a lookup in a layout; `None` = its query table does. A condition covers one table,
    /// so that a table of `writes: conditional` has its indexes in both layouts.
    pub fn index_in(&self, lookup: &Lookup, layout: CqlLayout) -> Option<&'static str> {
        let is_conditional = matches!(self.writes, Writes::Conditional);
        lookup.index.filter(|_| layout == CqlLayout::Document || is_conditional)
    }

    /// The statements that create the table with its lookups, each ending in `;` and a line break.
    pub fn to_cql(&self, layout: CqlLayout) -> String {
        let scaled = layout == CqlLayout::Scaled;
        let slices = if scaled && self.slices.is_some() { vec![BUCKET_COLUMN, SLICE_COLUMN] } else { vec![] };
        let mut out = self.create(self.name, self.partition, self.clustering, &slices);
        for lookup in self.lookups {
            out.push('\n');
            match self.index_in(lookup, layout) {
                Some(index) => {
                    let (table, column) = (self.name, cql_name(self.indexed_column(lookup)));
                    writeln!(out, "CREATE INDEX IF NOT EXISTS {index} ON {table} ({column});")
                        .expect("a String takes it");
                }
                None => {
                    let key = self.lookup_key(lookup);
                    let clustering = &key[lookup.partition.len()..];
                    out.push_str(&self.create(&self.query_table(lookup), lookup.partition, clustering, &[]));
                }
            }
        }
        out
    }

    /// Name of the query table that serves a lookup where no index does.
    pub fn query_table(&self, lookup: &Lookup) -> String {
        lookup.table.map_or_else(|| format!("ember_{}_{}", self.name, lookup.name), str::to_owned)
    }

    /// The column of a lookup that is not part of the primary key.
    pub fn indexed_column(&self, lookup: &Lookup) -> &'static str {
        lookup.partition.iter().find(|name| !self.is_key(name)).expect("checked when it was declared")
    }

    fn create(
        &self,
        name: &str,
        partition: &[&'static str],
        clustering: &[(&'static str, Order)],
        slices: &[&'static str],
    ) -> String {
        let mut out = format!("CREATE TABLE IF NOT EXISTS {name} (\n");
        for column in self.columns {
            writeln!(out, "    {} {},", cql_name(column.name), column.kind).expect("a String takes it");
        }
        slices.iter().for_each(|slice| writeln!(out, "    {slice} int,").expect("a String takes it"));
        let partition: Vec<_> = partition.iter().chain(slices).copied().collect();
        let names: String = clustering.iter().map(|(name, _)| format!(", {}", cql_name(name))).collect();
        writeln!(out, "    PRIMARY KEY (({}){names})\n)", cql_names(&partition)).expect("a String takes it");
        let options = self.options(clustering);
        if !options.is_empty() {
            out.truncate(out.len() - 1);
            write!(out, " WITH {}", options.join("\n  AND ")).expect("a String takes it");
            out.push('\n');
        }
        out.truncate(out.len() - 1);
        out.push_str(";\n");
        out
    }

    fn options(&self, clustering: &[(&'static str, Order)]) -> Vec<String> {
        let mut options = Vec::new();
        if !clustering.is_empty() {
            let word = |order: &Order| if *order == Order::Ascending { "ASC" } else { "DESC" };
            let columns: Vec<_> = clustering
                .iter()
                .map(|(name, order)| format!("{} {}", cql_name(name), word(order)))
                .collect();
            options.push(format!("CLUSTERING ORDER BY ({})", columns.join(", ")));
        }
        match self.compaction {
            Compaction::SizeTiered => {}
            Compaction::Leveled => {
                options.push("compaction = {'class': 'LeveledCompactionStrategy'}".to_owned())
            }
            Compaction::TimeWindow { ms } => {
                let (unit, size) =
                    if ms % 86_400_000 == 0 { ("DAYS", ms / 86_400_000) } else { ("HOURS", ms / 3_600_000) };
                options.push(format!(
                    "compaction = {{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': '{unit}', 'compaction_window_size': {size}}}"
                ));
            }
        }
        match self.ttl {
            RowTtl::Persistent => {}
            RowTtl::Written { ms } | RowTtl::Since { ms, .. } => {
                options.push(format!("default_time_to_live = {}", ms / 1_000));
            }
        }
        options
    }
}
