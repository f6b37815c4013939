//! What differs between a declared table and the live one.

use super::declared::DeclaredTable;
use super::live::LiveTable;
use emberkeep_schema::{Compaction, Day, Order, cql_name};
use std::collections::HashMap;
use std::fmt;

/// A difference between the declared tables and a live keyspace.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// A table is missing.
    MissingTable {
        /// The name of the missing table.
        table: String,
        /// The statement that creates it.
        create: String,
    },
    /// A column is missing.
    MissingColumn {
        /// The table without the column.
        table: String,
        /// The name of the missing column.
        column: String,
        /// The declared type of it.
        kind: String,
    },
    /// A secondary index is missing.
    MissingIndex {
        /// The table without the index.
        table: String,
        /// The name of the missing index.
        index: String,
        /// The column that it is on.
        column: String,
    },
    /// A column has another type.
    ColumnType {
        /// The table with the column.
        table: String,
        /// The name of the column.
        column: String,
        /// The type that is declared.
        declared: String,
        /// The type that the keyspace has.
        found: String,
    },
    /// The primary key is another one.
    Key {
        /// The table with the key.
        table: String,
        /// The key that is declared.
        declared: String,
        /// The key that the keyspace has.
        found: String,
    },
    /// An index of this name is on another column.
    IndexColumn {
        /// The table with the index.
        table: String,
        /// The name of the index.
        index: String,
        /// The column that is declared.
        declared: String,
        /// The column that it is on.
        found: String,
    },
    /// The default TTL is another one.
    Ttl {
        /// The table with the TTL.
        table: String,
        /// The declared seconds; 0 = none.
        declared_s: i64,
        /// The seconds that the keyspace has; 0 = none.
        found_s: i64,
    },
    /// A column is declared deprecated and still there.
    Deprecated {
        /// The table that has the column.
        table: String,
        /// The column, whose values are no longer read.
        column: String,
        /// Its secondary indexes, which no program uses any more.
        indexes: Vec<String>,
        /// The day on which it was declared deprecated.
        since: Day,
        /// The first day on which it may be removed.
        removable_from: Day,
    },
    /// The files are compacted in another way.
    Compaction {
        /// The table that is compacted.
        table: String,
        /// The compaction that is declared.
        declared: String,
        /// The compaction that the keyspace has.
        found: String,
    },
}

impl Difference {
    /// Whether `schema apply` can remove it: by adding something.
    pub fn is_addable(&self) -> bool {
        matches!(
            self,
            Difference::MissingTable { .. }
                | Difference::MissingColumn { .. }
                | Difference::MissingIndex { .. }
        )
    }

    /// Whether the store works all the same.
    pub fn is_harmless(&self) -> bool {
        matches!(self, Difference::Ttl { .. } | Difference::Compaction { .. })
    }

    /// Whether it is a deprecated column: nothing has to be done about it.
    pub fn is_deprecation(&self) -> bool {
        matches!(self, Difference::Deprecated { .. })
    }

    /// Whether it is a deprecated column that may be removed on a day.
    pub fn is_removable(&self, today: Day) -> bool {
        matches!(self, Difference::Deprecated { removable_from, .. } if *removable_from <= today)
    }

    /// The statements that remove the difference; none if it needs a person.
    pub(super) fn statements(&self, keyspace: &str) -> Vec<String> {
        match self {
            Difference::MissingTable { create, table } => {
                let from = format!("CREATE TABLE IF NOT EXISTS {table} (");
                vec![create.replacen(&from, &format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} ("), 1)]
            }
            Difference::MissingColumn { table, column, kind } => {
                vec![format!("ALTER TABLE {keyspace}.{table} ADD {} {kind}", cql_name(column))]
            }
            Difference::MissingIndex { table, index, column } => {
                vec![format!(
                    "CREATE INDEX IF NOT EXISTS {index} ON {keyspace}.{table} ({})",
                    cql_name(column)
                )]
            }
            Difference::Deprecated { table, column, indexes, .. } => {
                let indexes = indexes.iter().map(|index| format!("DROP INDEX IF EXISTS {keyspace}.{index}"));
                let column = format!("ALTER TABLE {keyspace}.{table} DROP {}", cql_name(column));
                indexes.chain([column]).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::MissingTable { table, .. } => write!(f, "table {table} is missing"),
            Difference::MissingColumn { table, column, kind } => {
                write!(f, "table {table}: column {column} {kind} is missing")
            }
            Difference::MissingIndex { table, index, column } => {
                write!(f, "table {table}: index {index} on {column} is missing")
            }
            Difference::ColumnType { table, column, declared, found } => write!(
                f,
                "table {table}: column {column} is {found}, declared {declared} (a type cannot be changed; copy the rows to a new table)"
            ),
            Difference::Key { table, declared, found } => write!(
                f,
                "table {table}: its key is {found}, declared {declared} (a key cannot be changed; is it the other layout? otherwise copy the rows to a new table)"
            ),
            Difference::IndexColumn { table, index, declared, found } => write!(
                f,
                "table {table}: index {index} is on {found}, declared on {declared} (drop it, then apply again)"
            ),
            Difference::Ttl { table, declared_s, found_s } => write!(
                f,
                "table {table}: its default TTL is {found_s} s, declared {declared_s} s (ALTER TABLE {table} WITH default_time_to_live = {declared_s}; rows keep the TTL that they have)"
            ),
            Difference::Deprecated { table, column, since, removable_from, .. } => write!(
                f,
                "table {table}: column {column} is deprecated since {since} (schema apply --drop removes it from {removable_from} on)"
            ),
            Difference::Compaction { table, declared, found } => write!(
                f,
                "table {table}: its compaction is {found}, declared {declared} (ALTER TABLE rewrites its files, so it is left to you)"
            ),
        }
    }
}

/// What differs between a declared table and the live ones.
pub(super) fn compare(declared: &DeclaredTable, live: &HashMap<String, LiveTable>) -> Vec<Difference> {
    let table = declared.name.clone();
    let missing_index = |(index, column): &(String, String)| Difference::MissingIndex {
        table: table.clone(),
        index: index.clone(),
        column: column.clone(),
    };
    let Some(live) = live.get(&table) else {
        let create = declared.create.clone();
        let missing = Difference::MissingTable { table: table.clone(), create };
        return std::iter::once(missing).chain(declared.indexes.iter().map(missing_index)).collect();
    };
    let mut found = Vec::new();
    let (wanted, is) =
        (key(&declared.partition, &declared.clustering), key(&live.partition, &live.clustering));
    if wanted != is {
        // The columns of another key differ as well; they would only hide the reason.
        return vec![Difference::Key { table, declared: wanted, found: is }];
    }
    for (column, kind) in &declared.columns {
        let (table, column, kind) = (table.clone(), column.clone(), kind.clone());
        match live.columns.get(&column) {
            None => found.push(Difference::MissingColumn { table, column, kind }),
            Some(is) if is.replace(' ', "") != kind.replace(' ', "") => {
                found.push(Difference::ColumnType { table, column, declared: kind, found: is.clone() });
            }
            Some(_) => {}
        }
    }
    for index in &declared.indexes {
        match live.indexes.get(&index.0) {
            None => found.push(missing_index(index)),
            Some(column) if *column != index.1 => found.push(Difference::IndexColumn {
                table: table.clone(),
                index: index.0.clone(),
                declared: index.1.clone(),
                found: column.clone(),
            }),
            Some(_) => {}
        }
    }
    found.extend(deprecated(declared, live));
    if declared.ttl_s != live.ttl_s {
        found.push(Difference::Ttl { table: table.clone(), declared_s: declared.ttl_s, found_s: live.ttl_s });
    }
    found.extend(compaction(&table, declared.compaction, &live.compaction));
    found
}

/// Deprecated columns that are still there.
fn deprecated(declared: &DeclaredTable, live: &LiveTable) -> impl Iterator<Item = Difference> {
    let present = declared.deprecated.iter().filter(|column| live.columns.contains_key(column.name));
    present.map(|column| {
        let of_column = live.indexes.iter().filter(|(_, indexed)| *indexed == column.name);
        Difference::Deprecated {
            table: declared.name.clone(),
            column: column.name.to_owned(),
            indexes: of_column.map(|(index, _)| index.clone()).collect(),
            since: column.since,
            removable_from: column.removable_from(),
        }
    })
}

fn key(partition: &[String], clustering: &[(String, Order)]) -> String {
    let word = |order: &Order| if *order == Order::Ascending { "ASC" } else { "DESC" };
    let clustering: String =
        clustering.iter().map(|(name, order)| format!(", {name} {}", word(order))).collect();
    format!("(({}){clustering})", partition.join(", "))
}

fn compaction(table: &str, declared: Compaction, live: &HashMap<String, String>) -> Option<Difference> {
    let class = live.get("class").map_or("", |class| class.rsplit('.').next().unwrap_or(""));
    let option = |name: &str| live.get(name).map_or("", String::as_str);
    let (declared, is) = match declared {
        // The server's default, whichever it is.
        Compaction::SizeTiered => return None,
        Compaction::Leveled => ("LeveledCompactionStrategy".to_owned(), class.to_owned()),
        Compaction::TimeWindow { ms } => {
            let hours = |unit: &str, size: &str| match (unit, size.parse::<i64>()) {
                ("DAYS", Ok(days)) => days * 24,
                ("HOURS", Ok(hours)) => hours,
                _ => 0,
            };
            let live_hours = hours(option("compaction_window_unit"), option("compaction_window_size"));
            let name = "TimeWindowCompactionStrategy";
            (format!("{name} of {} hours", ms / 3_600_000), format!("{class} of {live_hours} hours"))
        }
    };
    (declared != is).then(|| Difference::Compaction { table: table.to_owned(), declared, found: is })
}
