//! `emberkeep schema`: the declared key families, the engine's own keys, and the Redis ACL that they need.

use crate::output::print;
use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use emberkeep::redis::acl_file;
use emberkeep::schema::{KeyLayout, Schema, Service, Topology};
use std::process::ExitCode;

/// How keys are written.
#[derive(clap::Args, Debug)]
struct LayoutArguments {
    /// Layout of keys: as the games' documents write them, or for a Cluster
    #[arg(long, value_enum, default_value = "single")]
    layout: LayoutName,
    /// Text in front of every key, as in ?prefix= of the store's URL
    #[arg(long, default_value = "")]
    prefix: String,
}

impl LayoutArguments {
    fn read(&self) -> anyhow::Result<KeyLayout> {
        let topology = match self.layout {
            LayoutName::Single => Topology::Single,
            LayoutName::Cluster => Topology::Cluster,
        };
        Ok(KeyLayout::new(self.prefix.as_str(), topology)?)
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct KeysArguments {
    #[command(flatten)]
    layout: LayoutArguments,
    /// How the list is written
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(clap::Args, Debug)]
pub(crate) struct AclArguments {
    #[command(flatten)]
    layout: LayoutArguments,
    /// Name of the user
    #[arg(long, default_value = "emberkeep", conflicts_with_all = ["service", "services"])]
    user: String,
    /// Only what this service may read and write; the user has its name
    #[arg(long, value_name = "NAME", value_parser = declared_service)]
    service: Option<&'static Service>,
    /// A line for each service. Lines that begin with # say what Redis cannot refuse; an ACL file takes none of them
    #[arg(long, conflicts_with = "service")]
    services: bool,
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

/// The engine's own keys: what stands behind `ember:`, and what it is. All of them are strings.
const OWN_KEYS: [(&str, &str); 3] = [
    (
        "turn:<key>",
        "string: fairness lease: reserves a key for a process that loses many conflicts; ends by itself",
    ),
    (
        "r:<partition>:<process>:<number>",
        "string: commit receipt: tells whether a commit with a lost reply was applied",
    ),
    (
        "wait:<process>",
        "string, with ?wait= only: a write whose replication tells that those before it are replicated",
    ),
];

/// Prints the schema of all games.
pub(crate) fn print_keys(arguments: &KeysArguments) -> anyhow::Result<ExitCode> {
    let (schema, layout) = (emberkeep::games::schema(), arguments.layout.read()?);
    match arguments.format {
        Format::Table => print(format_args!("{}\n\n{}", table(&schema, &layout), own_keys(&layout, "  "))),
        Format::Markdown => {
            let families = schema.to_markdown(&layout);
            print(format_args!("{MARKDOWN_HEAD}{families}\n{}", own_keys(&layout, "- ")))
        }
        Format::Json => print(format_args!("{}\n", schema.to_json(&layout))),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The engine's own keys, and where to find the commands.
fn own_keys(layout: &KeyLayout, bullet: &str) -> String {
    let mut text = "Keys of the engine itself:\n\n".to_owned();
    for (name, meaning) in OWN_KEYS {
        text += &format!("{bullet}`{}`: {meaning}\n", own_key(layout, "<partition>", name));
    }
    text + "\nThe commands and keys that a Redis user needs: `emberkeep schema acl`.\n"
}

fn own_key(layout: &KeyLayout, partition: &str, name: &str) -> String {
    let mut key = Vec::new();
    layout.write_own(partition.as_bytes(), name.as_bytes(), &mut key);
    String::from_utf8_lossy(&key).into_owned()
}

/// Prints lines for the server's `aclfile`; without the word `user` one is the arguments of `ACL SETUSER`.
pub(crate) fn print_acl(arguments: &AclArguments) -> anyhow::Result<ExitCode> {
    let (schema, layout) = (emberkeep::games::schema(), arguments.layout.read()?);
    let lines = match (&arguments.service, arguments.services) {
        (None, false) => acl_file::user_of_all(&arguments.user, &schema, &layout),
        (None, true) => {
            schema.services().map(|service| acl_file::user_of_service(service, &schema, &layout)).collect()
        }
        (Some(service), _) => acl_file::user_of_service(service, &schema, &layout),
    };
    print(format_args!("{lines}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The service of this name, for clap.
pub(crate) fn declared_service(name: &str) -> Result<&'static Service, String> {
    let schema = emberkeep::games::schema();
    schema.service(name).ok_or_else(|| {
        let known = schema.services().map(|service| service.name).collect::<Vec<_>>().join(", ");
        format!("no service is named {name:?}; declared are: {known}")
    })
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
