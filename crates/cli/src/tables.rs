//! `emberkeep schema tables`: the declared history tables. `docs/tables.md` is this output.

use crate::output::print;
use emberkeep::schema::{Compaction, CqlLayout, Order, RowTtl, TableDeclaration, TotalsDeclaration, Writes};
use std::fmt::Write as _;
use std::process::ExitCode;

const HEAD: &str = "# Tables

Every history table of every game, and those of history itself (`ember_…`). Made by `emberkeep schema tables`; change the
declarations, not this page. `emberkeep schema cql` prints the CQL of both layouts.
";

/// Prints the tables of all games.
pub(crate) fn print_tables() -> anyhow::Result<ExitCode> {
    let schema = emberkeep::games::history_schema();
    let mut page = HEAD.to_owned();
    schema.tables().iter().for_each(|declaration| page += &table(declaration));
    schema.all_totals().iter().for_each(|declaration| page += &totals(declaration));
    print(page)?;
    Ok(ExitCode::SUCCESS)
}

fn table(table: &TableDeclaration) -> String {
    let clustering: String =
        table.clustering.iter().map(|(name, order)| format!(", {name} {}", word(*order))).collect();
    let mut page = format!("\n## {}\n\n{}\n\n", table.name, sentence(table.doc));
    let mut line = |name: &str, text: String| writeln!(page, "- {name}: {text}").expect("a String takes it");
    line("key", format!("`(({}){clustering})`", table.partition.join(", ")));
    line("writes", writes(table.writes).to_owned());
    line("TTL", ttl(table.ttl));
    line("compaction", compaction(table.compaction));
    if let Some(slices) = table.slices {
        let minutes = slices.bucket_ms / 60_000;
        line(
            "layout `scaled`",
            format!("a day is divided into buckets of {minutes} min x {} slices", slices.count),
        );
    }
    for lookup in table.lookups {
        let served = match lookup.index {
            Some(index) if table.index_in(lookup, CqlLayout::Scaled).is_some() => format!("index `{index}`"),
            Some(index) => format!(
                "index `{index}` in the layout `document`, otherwise table `{}`",
                table.query_table(lookup)
            ),
            None => format!("table `{}`", table.query_table(lookup)),
        };
        line(&format!("lookup `{}`", lookup.name), format!("by ({}); {served}", lookup.partition.join(", ")));
    }
    line("owner", table.owner.to_owned());
    page += "\n| column | type | |\n|---|---|---|\n";
    for column in table.columns {
        let doc = match column.day_of {
            Some(time) => format!("The UTC day of `{time}`; derived."),
            None => sentence(column.doc),
        };
        let absent = if column.optional { " May be absent." } else { "" };
        writeln!(page, "| `{}` | {} | {doc}{absent} |", column.name, column.kind).expect("a String takes it");
    }
    for column in table.deprecated {
        let (since, from) = (column.since, column.removable_from());
        let doc = format!(
            "Deprecated since {since} and not written any more; `emberkeep schema apply --drop` removes it from {from} on."
        );
        writeln!(page, "| `{}` | {} | {doc} |", column.name, column.kind).expect("a String takes it");
    }
    page
}

fn totals(totals: &TotalsDeclaration) -> String {
    let (key, of) = totals.key;
    let mut page = format!("\n## {}\n\n{}\n\n", totals.name, sentence(totals.doc));
    page += &format!(
        "- key: `(({key}))`, {of}\n- sums by source: `{}`, `(({key}), source ASC)`\n",
        totals.by_source
    );
    page += &format!("- writes: totals; an entry of a log counts once\n- owner: {}\n", totals.owner);
    page += "\n| sum | unit | |\n|---|---|---|\n";
    for sum in totals.sums {
        let unit = if sum.per == 1 { "1".to_owned() } else { format!("{} recorded ones", sum.per) };
        writeln!(page, "| `{}` | {unit} | {} |", sum.name, sentence(sum.doc)).expect("a String takes it");
    }
    page
}

/// A documentation comment in one line.
fn sentence(doc: &str) -> String {
    doc.lines().map(str::trim).collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn word(order: Order) -> &'static str {
    if order == Order::Ascending { "ASC" } else { "DESC" }
}

fn writes(writes: Writes) -> &'static str {
    match writes {
        Writes::Events => "events; the key decides the content",
        Writes::Rows => "rows; the last write wins",
        Writes::Versioned => "versioned; the highest version wins",
        Writes::Conditional => "conditional; one of several callers wins",
    }
}

fn ttl(ttl: RowTtl) -> String {
    match ttl {
        RowTtl::Persistent => "none".to_owned(),
        RowTtl::Written { ms } => format!("{} days after the last write", ms / 86_400_000),
        RowTtl::Since { ms, column } => format!("{} days after `{column}`", ms / 86_400_000),
    }
}

fn compaction(compaction: Compaction) -> String {
    match compaction {
        Compaction::SizeTiered => "the server's default".to_owned(),
        Compaction::Leveled => "leveled".to_owned(),
        Compaction::TimeWindow { ms } => format!("windows of {} hours", ms / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use emberkeep::schema::{Table as _, table};

    table! {
        /// Visits.
        pub struct Visit = "visits" {
            /// The visitor.
            pub player_id: i64,
        }
        partition: (player_id),
        clustering: (),
        ttl: persistent,
        writes: rows,
        deprecated: (device(String, since "2026-01-31")),
        owner: "test",
    }

    #[test]
    fn a_deprecated_column_is_shown_with_the_day_from_which_it_may_be_removed() {
        let page = super::table(Visit::DECLARATION);
        let row = "| `device` | text | Deprecated since 2026-01-31 and not written any more; `emberkeep schema apply --drop` removes it from 2026-03-02 on. |";
        assert!(page.contains(row), "{page}");
    }
}
