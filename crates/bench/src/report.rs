//! The result for people (a table) and for programs (one JSON object a line).

use crate::row::{Row, short};
use crate::worker_processes::print_line;
use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};

/// What stands below the table.
const ABOUT: &str =
    "Medians over the rounds; the ratio is the median of each round's ratio, ours divided by the peer's.";

/// Prints the rows as lines of JSON.
pub(super) fn json(rows: &[Row]) -> Result<()> {
    rows.iter().try_for_each(|row| print_line(serde_json::to_string(row)?))
}

/// Prints the rows as a table, and the notes below it.
pub(super) fn table(rows: &[Row]) -> Result<()> {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "workload",
        "unit",
        "ours",
        "min–max",
        "peer",
        "min–max",
        "ratio",
        "min–max",
        "goal",
        "met",
    ]);
    for row in rows {
        table.add_row([
            row.workload.clone(),
            row.unit.to_owned(),
            short(row.ours),
            span(row.ours_spread),
            short(row.peer),
            span(row.peer_spread),
            format!("{:.2}x", row.ratio),
            format!("{:.2}–{:.2}", row.ratio_spread[0], row.ratio_spread[1]),
            row.goal.clone(),
            row.met.map_or("–", |met| if met { "yes" } else { "NO" }).to_owned(),
        ]);
    }
    for column in 2..8 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = format!("{table}\n\n{ABOUT}");
    for row in rows {
        let note = if row.note.is_empty() { String::new() } else { format!("; {}", row.note) };
        text += &format!("\n  {}: beside {}{note}", row.workload, row.peer_name);
    }
    print_line(text)
}

fn span([least, most]: [f64; 2]) -> String {
    format!("{}–{}", short(least), short(most))
}
