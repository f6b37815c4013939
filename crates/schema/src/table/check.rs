//! The checks of a table's declaration. They run at compile time, and their messages are what its author reads.

use super::column::ColumnType;
use super::declaration::{Compaction, Lookup, Order, RowTtl, TableDeclaration, Writes};
use crate::limits::{TABLE_NAME_BYTES_MAX, TTL_MS_MAX};

/// The longest message in bytes; a const has no heap.
const MESSAGE_BYTES_MAX: usize = 320;

/// A message that is put together at compile time.
pub struct TableProblem {
    bytes: [u8; MESSAGE_BYTES_MAX],
    length: usize,
}

impl TableProblem {
    const fn of(parts: &[&str]) -> TableProblem {
        let mut problem = TableProblem { bytes: [0; MESSAGE_BYTES_MAX], length: 0 };
        let mut part = 0;
        while part < parts.len() {
            let text = parts[part].as_bytes();
            let mut at = 0;
            while at < text.len() && problem.length < MESSAGE_BYTES_MAX {
                problem.bytes[problem.length] = text[at];
                problem.length += 1;
                at += 1;
            }
            part += 1;
        }
        problem
    }

    pub(crate) const fn new_totals(name: &str, problem: &str) -> Option<TableProblem> {
        Some(TableProblem::of(&["totals: ", name, problem]))
    }

    /// The message for the author of the declaration.
    pub const fn text(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => "the table's declaration is not valid",
        }
    }
}

pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Lower case letters, digits and `_`, beginning with a letter: a name that CQL takes without quotes.
pub(crate) const fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > TABLE_NAME_BYTES_MAX || !bytes[0].is_ascii_lowercase() {
        return false;
    }
    let mut at = 0;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_lowercase() || bytes[at].is_ascii_digit() || bytes[at] == b'_') {
            return false;
        }
        at += 1;
    }
    true
}

const fn has(names: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        if same(names[at], name) {
            return true;
        }
        at += 1;
    }
    false
}

const fn clusters(clustering: &[(&str, Order)], name: &str) -> bool {
    let mut at = 0;
    while at < clustering.len() {
        if same(clustering[at].0, name) {
            return true;
        }
        at += 1;
    }
    false
}

const fn place(table: &TableDeclaration, name: &str) -> Option<usize> {
    let mut at = 0;
    while at < table.columns.len() {
        if same(table.columns[at].name, name) {
            return Some(at);
        }
        at += 1;
    }
    None
}

const fn is_time(table: &TableDeclaration, name: &str) -> bool {
    match place(table, name) {
        Some(at) => matches!(table.columns[at].kind, ColumnType::Timestamp) && !table.columns[at].optional,
        None => false,
    }
}

/// What is wrong with a declaration, if anything is.
pub const fn diagnose_table(table: &TableDeclaration) -> Option<TableProblem> {
    if !is_name(table.name) {
        return Some(TableProblem::of(&[
            "the table's name \"",
            table.name,
            "\" must be lower case letters, digits and `_`, at most 48 characters, beginning with a letter",
        ]));
    }
    let problem = columns(table);
    if problem.is_some() {
        return problem;
    }
    let problem = key(table);
    if problem.is_some() {
        return problem;
    }
    let problem = times(table);
    if problem.is_some() {
        return problem;
    }
    let problem = lookups(table);
    if problem.is_some() {
        return problem;
    }
    let problem = deprecated(table);
    if problem.is_some() {
        return problem;
    }
    writes(table)
}

const fn deprecated(table: &TableDeclaration) -> Option<TableProblem> {
    let mut at = 0;
    while at < table.deprecated.len() {
        let name = table.deprecated[at].name;
        let problem = if !is_name(name) {
            "` must be lower case letters, digits and `_`, beginning with a letter"
        } else if place(table, name).is_some() {
            "` is a column of the row, too; remove one of them"
        } else if is_deprecated_before(table, at) {
            "` stands twice"
        } else {
            ""
        };
        if !problem.is_empty() {
            return Some(TableProblem::of(&[
                "table ",
                table.name,
                ": the deprecated column `",
                name,
                problem,
            ]));
        }
        at += 1;
    }
    None
}

const fn is_deprecated_before(table: &TableDeclaration, place: usize) -> bool {
    let mut at = 0;
    while at < place {
        if same(table.deprecated[at].name, table.deprecated[place].name) {
            return true;
        }
        at += 1;
    }
    false
}

/// What the kind of writes asks of a table.
const fn writes(table: &TableDeclaration) -> Option<TableProblem> {
    let is_since = matches!(table.ttl, RowTtl::Since { .. });
    let problem = match table.writes {
        Writes::Events if matches!(table.ttl, RowTtl::Written { .. }) => {
            ": events are written again by a replay, so their TTL must be counted from a time of the key: `ttl: days(30) of timestamp`"
        }
        Writes::Events if !is_since && table.columns[0].day_of.is_none() => {
            ": events need a time, which is the timestamp of their writes on CQL: a TTL `of` a time column, or a day bucket"
        }
        Writes::Versioned if !table.lookups.is_empty() => {
            ": a table of `writes: versioned` has no lookups, because the row of an older version may arrive after its successor"
        }
        Writes::Conditional if has_query_table(table) => {
            ": a lookup of a table of `writes: conditional` names its `index`, because a condition on CQL covers one table"
        }
        Writes::Conditional if is_since => {
            ": a table of `writes: conditional` counts its TTL from the last write; leave `of …` out"
        }
        Writes::Conditional if !has_required(table) => {
            ": a table of `writes: conditional` needs a column outside of its key that is not optional, so that a row differs from none"
        }
        _ => return None,
    };
    Some(TableProblem::of(&["table ", table.name, problem]))
}

/// Whether a lookup is served by a table of its own.
const fn has_query_table(table: &TableDeclaration) -> bool {
    let mut at = 0;
    while at < table.lookups.len() {
        if table.lookups[at].index.is_none() {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether a column outside of the key is there in every row.
const fn has_required(table: &TableDeclaration) -> bool {
    let mut at = 0;
    while at < table.columns.len() {
        let column = &table.columns[at];
        if !column.optional && !has(table.partition, column.name) && !clusters(table.clustering, column.name)
        {
            return true;
        }
        at += 1;
    }
    false
}

/// The order of addresses differs between CQL servers and from any plain order of their bytes.
const fn has_address(kind: &ColumnType) -> bool {
    match kind {
        ColumnType::Inet => true,
        ColumnType::Tuples(elements) => {
            let mut at = 0;
            while at < elements.len() {
                if has_address(&elements[at]) {
                    return true;
                }
                at += 1;
            }
            false
        }
        _ => false,
    }
}

const fn columns(table: &TableDeclaration) -> Option<TableProblem> {
    let mut at = 0;
    while at < table.columns.len() {
        let name = table.columns[at].name;
        if !is_name(name) {
            return Some(TableProblem::of(&[
                "table ",
                table.name,
                ": the column `",
                name,
                "` must be lower case letters, digits and `_`, beginning with a letter",
            ]));
        }
        match place(table, name) {
            Some(first) if first < at => {
                return Some(TableProblem::of(&[
                    "table ",
                    table.name,
                    ": the column `",
                    name,
                    "` stands twice",
                ]));
            }
            _ => {}
        }
        at += 1;
    }
    None
}

const fn key_column(table: &TableDeclaration, name: &str) -> Option<TableProblem> {
    let Some(at) = place(table, name) else {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": its key names the column `",
            name,
            "`, which is not declared",
        ]));
    };
    if table.columns[at].optional {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": the key column `",
            name,
            "` must not be optional; every row has a key",
        ]));
    }
    if has_address(&table.columns[at].kind) {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": the key column `",
            name,
            "` must not be an inet, whose order CQL does not promise; store its text or its bytes",
        ]));
    }
    None
}

const fn key(table: &TableDeclaration) -> Option<TableProblem> {
    if table.partition.is_empty() {
        return Some(TableProblem::of(&["table ", table.name, ": the partition key needs a column"]));
    }
    let mut at = 0;
    while at < table.partition.len() {
        let name = table.partition[at];
        let problem = key_column(table, name);
        if problem.is_some() {
            return problem;
        }
        if clusters(table.clustering, name) || has(table.partition.split_at(at).0, name) {
            return Some(TableProblem::of(&["table ", table.name, ": `", name, "` stands twice in the key"]));
        }
        at += 1;
    }
    let mut at = 0;
    while at < table.clustering.len() {
        let name = table.clustering[at].0;
        let problem = key_column(table, name);
        if problem.is_some() {
            return problem;
        }
        if clusters(table.clustering.split_at(at).0, name) {
            return Some(TableProblem::of(&["table ", table.name, ": `", name, "` stands twice in the key"]));
        }
        at += 1;
    }
    None
}

const fn times(table: &TableDeclaration) -> Option<TableProblem> {
    if !table.columns.is_empty()
        && let Some(source) = table.columns[0].day_of
        && (table.clustering.is_empty() || !same(table.clustering[0].0, source) || !is_time(table, source))
    {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": the day bucket is of `",
            source,
            "`, which must be the first clustering column and a Timestamp, so that days follow each other in order",
        ]));
    }
    let (ms, since) = match table.ttl {
        RowTtl::Persistent => (1_000, None),
        RowTtl::Written { ms } => (ms, None),
        RowTtl::Since { ms, column } => (ms, Some(column)),
    };
    if ms < 1_000 {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": the TTL must be at least one second; write `ttl: persistent` for none",
        ]));
    }
    if ms > TTL_MS_MAX {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": the TTL must be at most 20 years (7,300 days), which is the limit of CQL; write `ttl: persistent` for none",
        ]));
    }
    if let Some(column) = since
        && !(is_time(table, column) && (clusters(table.clustering, column) || has(table.partition, column)))
    {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": the TTL is counted from `",
            column,
            "`, which must be a Timestamp of the key; leave `of …` out to count from the last write",
        ]));
    }
    if let Compaction::TimeWindow { ms } = table.compaction
        && (ms <= 0 || ms % 3_600_000 != 0)
    {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": a compaction window is a number of whole hours or days",
        ]));
    }
    if let Some(slices) = table.slices
        && (slices.count == 0
            || slices.bucket_ms <= 0
            || 86_400_000 % slices.bucket_ms != 0
            || table.columns[0].day_of.is_none())
    {
        return Some(TableProblem::of(&[
            "table ",
            table.name,
            ": `slices:` needs a day bucket in the partition, a length that divides a day, and at least one slice",
        ]));
    }
    None
}

const fn lookups(table: &TableDeclaration) -> Option<TableProblem> {
    let mut at = 0;
    while at < table.lookups.len() {
        let lookup = &table.lookups[at];
        let problem = match lookup_columns(table, lookup) {
            None => lookup_names(table, lookup),
            some => some,
        };
        if problem.is_some() {
            return problem;
        }
        let mut before = 0;
        while before < at {
            if same(table.lookups[before].name, lookup.name) {
                return of_lookup(table, lookup, " stands twice");
            }
            before += 1;
        }
        at += 1;
    }
    None
}

const fn of_lookup(table: &TableDeclaration, lookup: &Lookup, problem: &str) -> Option<TableProblem> {
    Some(TableProblem::of(&["table ", table.name, ": the lookup ", lookup.name, problem]))
}

const fn lookup_columns(table: &TableDeclaration, lookup: &Lookup) -> Option<TableProblem> {
    let (mut part, mut others) = (0, 0);
    while part < lookup.partition.len() {
        let name = lookup.partition[part];
        let problem = key_column(table, name);
        if problem.is_some() {
            return problem;
        }
        if has(lookup.partition.split_at(part).0, name) {
            return Some(TableProblem::of(&[
                "table ",
                table.name,
                ": `",
                name,
                "` stands twice in ",
                lookup.name,
            ]));
        }
        others += !(has(table.partition, name) || clusters(table.clustering, name)) as usize;
        part += 1;
    }
    if others != 1 {
        return of_lookup(
            table,
            lookup,
            " must have exactly one column that is not part of the primary key, because a CQL index covers one",
        );
    }
    let bucket = &table.columns[0];
    if bucket.day_of.is_some() && !has(lookup.partition, bucket.name) {
        return of_lookup(
            table,
            lookup,
            " must contain the bucket of the table: CQL would have to read all days otherwise",
        );
    }
    None
}

const fn lookup_names(table: &TableDeclaration, lookup: &Lookup) -> Option<TableProblem> {
    if let Some(index) = lookup.index
        && !is_name(index)
    {
        return of_lookup(
            table,
            lookup,
            ": the name of its index must be lower case letters, digits and `_`",
        );
    }
    match lookup.table {
        Some(name) if !is_name(name) || same(name, table.name) => of_lookup(
            table,
            lookup,
            ": the name of its query table must be lower case letters, digits and `_`, and not that of the table",
        ),
        None if "ember__".len() + table.name.len() + lookup.name.len() > TABLE_NAME_BYTES_MAX => of_lookup(
            table,
            lookup,
            " has a query table whose name is too long for CQL; give it a name of at most 48 characters: `table \"…\"`",
        ),
        _ => None,
    }
}
