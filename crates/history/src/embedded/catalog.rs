//! What the folder knows of each table: ids of its columns and lookups, its key, its windows.
//!
//! A table's entry is text, one line each, behind a CRC-32C:
//!
//! ```text
//! key (day_bucket text), timestamp timestamp desc, event_id uuid asc
//! window 86400000
//! ttl 2592000000
//! ttl_column timestamp
//! column 1 damage int
//! lookup 1 by_attacker attacker_id,day_bucket
//! ```
//!
//! Ids are given once and never again to another column or lookup. `ttl` is the longest TTL that rows of the
//! table were written with; `ttl_column` is the column that it is counted from, `-` if from none. Windows are
//! made from that column, so another one would look for rows in the wrong windows.

use crate::error::{Error, Result};
use crate::limits::WINDOWS_PER_TTL_MAX;
use emberkeep_schema::{Compaction, Order, RowTtl, TableDeclaration, TotalsDeclaration};
use std::fmt::Write as _;

const HOUR_MS: i64 = 3_600_000;

/// The entry of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) window_ms: i64,
    pub(super) ttl_ms: i64,
    /// `-` = none; empty in entries that were written without it.
    pub(super) ttl_column: String,
    /// Id, name and type of each column, also of those that no declaration has any more.
    pub(super) columns: Vec<(u16, String, String)>,
    /// Id, name, partition; only those that the last declaration had.
    pub(super) lookups: Vec<(u8, String, String)>,
    /// The highest id that a lookup was given.
    pub(super) last_lookup: u8,
}

impl Entry {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("key {}\nwindow {}\nttl {}\n", self.key, self.window_ms, self.ttl_ms);
        if !self.ttl_column.is_empty() {
            writeln!(text, "ttl_column {}", self.ttl_column).expect("a String takes it");
        }
        for (id, name, kind) in &self.columns {
            writeln!(text, "column {id} {name} {kind}").expect("a String takes it");
        }
        for (id, name, partition) in &self.lookups {
            writeln!(text, "lookup {id} {name} {partition}").expect("a String takes it");
        }
        writeln!(text, "last_lookup {}", self.last_lookup).expect("a String takes it");
        let mut bytes = crc32c::crc32c(text.as_bytes()).to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    }

    /// `None` if the bytes are not an entry.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Entry> {
        let (sum, text) = bytes.split_first_chunk::<4>()?;
        if crc32c::crc32c(text).to_be_bytes() != *sum {
            return None;
        }
        let mut entry = Entry::default();
        for line in std::str::from_utf8(text).ok()?.lines() {
            let (word, rest) = line.split_once(' ')?;
            let mut parts = rest.splitn(3, ' ');
            let mut part = || parts.next();
            match word {
                "key" => entry.key = rest.to_owned(),
                "window" => entry.window_ms = rest.parse().ok()?,
                "ttl" => entry.ttl_ms = rest.parse().ok()?,
                "ttl_column" => entry.ttl_column = rest.to_owned(),
                "last_lookup" => entry.last_lookup = rest.parse().ok()?,
                "column" => {
                    entry.columns.push((part()?.parse().ok()?, part()?.to_owned(), part()?.to_owned()))
                }
                "lookup" => {
                    entry.lookups.push((part()?.parse().ok()?, part()?.to_owned(), part()?.to_owned()))
                }
                // A later version may know more about a table.
                _ => {}
            }
        }
        Some(entry)
    }

    /// The id of a column.
    pub(super) fn column_id(&self, name: &str) -> Option<u16> {
        self.columns.iter().find(|(_, known, _)| known == name).map(|(id, _, _)| *id)
    }

    /// The id of a lookup.
    pub(super) fn lookup_id(&self, name: &str) -> Option<u8> {
        self.lookups.iter().find(|(_, known, _)| known == name).map(|(id, _, _)| *id)
    }

    fn add_column(&mut self, table: &str, name: &str, kind: String) -> Result<()> {
        match self.columns.iter().find(|(_, known, _)| known == name) {
            None => {
                let id = self.columns.iter().map(|(id, _, _)| *id).max().unwrap_or(0) + 1;
                self.columns.push((id, name.to_owned(), kind));
                Ok(())
            }
            Some((_, _, stored)) if *stored == kind => Ok(()),
            Some((_, _, stored)) => Err(Error::SchemaMismatch {
                table: table.to_owned(),
                problem: format!("the column {name} is {stored} in the folder and {kind} in the declaration"),
                remedy: "give the new column another name; the old one stays readable under its own",
            }),
        }
    }

    /// The entry after a declaration was applied, and the lookups that have to be built from existing rows.
    pub(super) fn with_table(
        stored: Option<Entry>,
        table: &TableDeclaration,
    ) -> Result<(Entry, Vec<&'static str>)> {
        let key = key_text(table);
        let is_new = stored.is_none();
        let mut entry = stored.unwrap_or_else(|| Entry { window_ms: window_ms(table), ..Entry::default() });
        if is_new {
            entry.key.clone_from(&key);
        }
        if entry.key != key {
            return Err(Error::SchemaMismatch {
                table: table.name.to_owned(),
                problem: format!("its key is {} in the folder and {key} in the declaration", entry.key),
                remedy: "a key cannot change; declare a new table and copy the rows",
            });
        }
        entry.check_ttl_column(table)?;
        entry.ttl_ms = entry.ttl_ms.max(match table.ttl {
            RowTtl::Persistent => 0,
            RowTtl::Written { ms } | RowTtl::Since { ms, .. } => ms,
        });
        for column in table.columns.iter().filter(|column| !table.is_key(column.name)) {
            entry.add_column(table.name, column.name, column.kind.to_string())?;
        }
        let declared: Vec<_> =
            table.lookups.iter().map(|lookup| (lookup.name, lookup.partition.join(","))).collect();
        // A lookup that is not declared is not maintained, so it must be built anew if it ever comes back.
        entry
            .lookups
            .retain(|(_, name, partition)| declared.iter().any(|(n, p)| n == name && p == partition));
        let mut missing = Vec::new();
        for (name, partition) in declared {
            if entry.lookup_id(name).is_none() {
                entry.last_lookup =
                    entry.last_lookup.checked_add(1).ok_or_else(|| Error::SchemaMismatch {
                        table: table.name.to_owned(),
                        problem: "its lookups were changed more than 255 times".into(),
                        remedy: "declare a new table and copy the rows",
                    })?;
                entry.lookups.push((entry.last_lookup, name.to_owned(), partition));
                missing.push(name);
            }
        }
        Ok((entry, if is_new { Vec::new() } else { missing }))
    }

    /// Compares the column that the TTL is counted from, and notes it.
    fn check_ttl_column(&mut self, table: &TableDeclaration) -> Result<()> {
        let declared = table.window_column().unwrap_or("-");
        let is_windowed = declared != "-";
        let is_known = !self.ttl_column.is_empty();
        if is_windowed != (self.window_ms != 0) || is_known && self.ttl_column != declared {
            let stored = if is_known { &self.ttl_column } else { "another one" };
            return Err(Error::SchemaMismatch {
                table: table.name.to_owned(),
                problem: format!(
                    "its TTL is counted from the column {stored} in the folder and {declared} in the declaration (- is none)"
                ),
                remedy: "this cannot change; declare a new table and copy the rows",
            });
        }
        self.ttl_column = declared.to_owned();
        Ok(())
    }

    /// The entry of totals after a declaration was applied.
    pub(super) fn with_totals(stored: Option<Entry>, totals: &TotalsDeclaration) -> Result<Entry> {
        let key = format!("({} {}), source text asc", totals.key.0, totals.key.1);
        let mut entry = stored.unwrap_or_else(|| Entry { key: key.clone(), ..Entry::default() });
        if entry.key != key {
            return Err(Error::SchemaMismatch {
                table: totals.by_source.to_owned(),
                problem: format!("its key is {} in the folder and {key} in the declaration", entry.key),
                remedy: "a key cannot change; declare new totals",
            });
        }
        for sum in totals.sums {
            entry.add_column(totals.by_source, sum.name, "bigint".into())?;
        }
        Ok(entry)
    }
}

fn key_text(table: &TableDeclaration) -> String {
    let kind = |name: &str| table.column(name).map(|column| column.kind.to_string()).unwrap_or_default();
    let partition: Vec<_> = table.partition.iter().map(|name| format!("{name} {}", kind(name))).collect();
    let mut text = format!("({})", partition.join(", "));
    for (name, order) in table.clustering {
        let order = if *order == Order::Ascending { "asc" } else { "desc" };
        write!(text, ", {name} {} {order}", kind(name)).expect("a String takes it");
    }
    text
}

/// Length of a retention window: the compaction's, or more if the TTL had too many of them.
fn window_ms(table: &TableDeclaration) -> i64 {
    let RowTtl::Since { ms, .. } = table.ttl else { return 0 };
    let unit = match table.compaction {
        Compaction::TimeWindow { ms } => ms,
        _ => HOUR_MS,
    };
    ((ms / WINDOWS_PER_TTL_MAX + unit - 1) / unit).max(1) * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Table as _, Timestamp};

    macro_rules! matches_with_ttl {
        ($name:ident, $($ttl:tt)+) => {
            emberkeep_schema::table! {
                /// Matches.
                #[derive(Clone, Debug, PartialEq)]
                pub(crate) struct $name = "matches" {
                    /// The map.
                    pub map: String,
                    /// When it began.
                    pub begun: Timestamp,
                    /// When it ended.
                    pub ended: Timestamp,
                }
                partition: (map),
                clustering: (begun desc, ended desc),
                ttl: $($ttl)+,
                writes: rows,
                owner: "arena",
            }
        };
    }
    matches_with_ttl!(SinceBegun, days(30) of begun);
    matches_with_ttl!(SinceEnded, days(30) of ended);
    matches_with_ttl!(Shorter, days(3) of begun);
    matches_with_ttl!(SinceWritten, days(30));

    #[test]
    fn the_column_of_a_ttl_cannot_change() {
        let (stored, _) = Entry::with_table(None, SinceBegun::DECLARATION).unwrap();
        let stored = Entry::from_bytes(&stored.to_bytes()).unwrap();
        let apply = |declaration| Entry::with_table(Some(stored.clone()), declaration);
        for other in [SinceEnded::DECLARATION, SinceWritten::DECLARATION] {
            let error = apply(other).unwrap_err();
            assert!(
                matches!(&error, Error::SchemaMismatch { problem, .. } if problem.contains("begun")),
                "{error}"
            );
        }
        assert_eq!(apply(Shorter::DECLARATION).unwrap().0, stored, "the longest TTL stays");
        let without = Entry { ttl_column: String::new(), ..stored.clone() };
        let (noted, _) = Entry::with_table(Some(without), SinceBegun::DECLARATION).unwrap();
        assert_eq!(noted, stored);
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let entry = Entry {
            key: "(day text), at timestamp desc".into(),
            window_ms: HOUR_MS,
            ttl_ms: 5,
            ttl_column: "at".into(),
            columns: vec![
                (1, "name".into(), "text".into()),
                (7, "best".into(), "frozen<list<frozen<tuple<int, text>>>>".into()),
            ],
            lookups: vec![(3, "by_name".into(), "name,day".into())],
            last_lookup: 9,
        };
        let mut bytes = entry.to_bytes();
        assert_eq!(Entry::from_bytes(&bytes), Some(entry));
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(Entry::from_bytes(&bytes), None);
    }
}
