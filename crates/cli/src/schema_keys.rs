//! `emberkeep schema keys`: the declared families as a table, as Markdown or as JSON.

use crate::output::print;
use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use emberkeep::schema::{KeyLayout, Schema, Topology};
use std::process::ExitCode;

/// What `schema keys` prints.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How keys are laid out: as the games' documents write them, or for a Cluster
    #[arg(long, value_enum, default_value = "single")]
    layout: LayoutName,
    /// How the list is written
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Text in front of every key
    #[arg(long, default_value = "")]
    prefix: String,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum LayoutName {
    /// One server: the plain keys
    Single,
    /// A Cluster: each key behind its partition in braces
    Cluster,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Format {
    /// For a terminal, the most important columns
    Table,
    /// For documents, all columns
    Markdown,
    /// For programs, all columns
    Json,
}

/// What stands above the Markdown table: `docs/keys.md` is this output.
const MARKDOWN_HEAD: &str = "# Keys

Every key family of every game. Made by `emberkeep schema keys --format markdown`; change the declarations, not this page.

";

/// Prints the schema of all games.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let topology = match arguments.layout {
        LayoutName::Single => Topology::Single,
        LayoutName::Cluster => Topology::Cluster,
    };
    let layout = KeyLayout::new(arguments.prefix.as_str(), topology)?;
    let schema = emberkeep::games::schema();
    match arguments.format {
        Format::Table => print(format_args!("{}\n", table(&schema, &layout))),
        Format::Markdown => print(format_args!("{MARKDOWN_HEAD}{}", schema.to_markdown(&layout))),
        Format::Json => print(format_args!("{}\n", schema.to_json(&layout))),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn table(schema: &Schema, layout: &KeyLayout) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["Key", "Type", "Value", "TTL", "Owner", "Index of"]);
    for row in schema.to_table(layout) {
        table.add_row([row.key, row.redis_type, row.value, row.ttl, row.owner, row.index_of]);
    }
    table
}
