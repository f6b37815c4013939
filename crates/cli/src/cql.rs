//! `emberkeep schema cql`, `diff` and `apply`: the history tables of a CQL keyspace.

use crate::history::named;
use crate::output::print;
use clap::ValueEnum;
use emberkeep::history::cql::schema::{Difference, LiveKeyspace, Replication, script};
use emberkeep::schema::{CqlLayout, Day, Timestamp};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(clap::Args, Debug)]
pub(crate) struct CqlArguments {
    /// Layout of tables: as the storage document writes them, or divided for many writes
    #[arg(long, value_enum, default_value = "document")]
    layout: LayoutName,
    /// Name of the keyspace
    #[arg(long, default_value = "darkages", value_parser = keyspace)]
    keyspace: String,
    /// Copies in each data centre, as in eu:3,us:3, or simple:1 for one node
    #[arg(long, default_value = "datacenter1:3")]
    replication: Replication,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LiveArguments {
    /// URL of the keyspace: cql://user:password@host:9042,host/keyspace?layout=document
    #[arg(long, value_name = "URL", env = "EMBERKEEP_HISTORY", hide_env_values = true, value_parser = cluster)]
    history: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ApplyArguments {
    #[command(flatten)]
    live: LiveArguments,
    /// Also removes deprecated columns with their values, 30 days after they were declared deprecated
    #[arg(long)]
    drop: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum LayoutName {
    /// The tables and secondary indexes of the storage document
    Document,
    /// Days divided into slices, and query tables instead of indexes
    Scaled,
}

fn cluster(text: &str) -> Result<String, String> {
    let is_cluster = |url: emberkeep::HistoryUrl| url.path().is_none();
    match named(text)?.is_some_and(is_cluster) {
        true => Ok(text.to_owned()),
        false => Err("expected the URL of a keyspace such as cql://host/keyspace".to_owned()),
    }
}

fn keyspace(text: &str) -> Result<String, String> {
    let is_first = text.starts_with(|c: char| c.is_ascii_lowercase());
    let is_rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if is_first && text.len() <= 48 && text.chars().all(is_rest) {
        return Ok(text.to_owned());
    }
    Err("expected lower case letters, digits and _, beginning with a letter".to_owned())
}

/// Prints the statements that create the keyspace.
pub(crate) fn print_script(arguments: &CqlArguments) -> anyhow::Result<ExitCode> {
    let layout = match arguments.layout {
        LayoutName::Document => CqlLayout::Document,
        LayoutName::Scaled => CqlLayout::Scaled,
    };
    let schema = emberkeep::games::history_schema();
    print(script(&schema, layout, &arguments.keyspace, &arguments.replication))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what differs; the exit code is 1 if anything but deprecated columns does.
pub(crate) fn diff(arguments: &LiveArguments) -> anyhow::Result<ExitCode> {
    let differences =
        on_keyspace(&arguments.history, async |live| live.diff(&emberkeep::games::history_schema()).await)?;
    if differences.is_empty() {
        print("the keyspace is as declared\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    print(lines("", &differences))?;
    let is_as_declared = differences.iter().all(Difference::is_deprecation);
    Ok(if is_as_declared { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Adds what is missing, and removes deprecated columns if that was asked for.
pub(crate) fn apply(arguments: &ApplyArguments) -> anyhow::Result<ExitCode> {
    let schema = emberkeep::games::history_schema();
    let (added, removed, early, left) = on_keyspace(&arguments.live.history, async |live| {
        let added = live.apply(&schema).await?;
        let (removed, early) = match arguments.drop {
            true => live.drop_deprecated(&schema, today()).await?,
            false => Default::default(),
        };
        let left = if arguments.drop { Vec::new() } else { live.diff(&schema).await? };
        Ok((added, removed, early, left))
    })?;
    print(said([("added: ", &added), ("removed: ", &removed), ("too early: ", &early), ("left: ", &left)]))?;
    Ok(ExitCode::SUCCESS)
}

/// What was done, and what still differs.
fn said(done: [(&str, &Vec<Difference>); 4]) -> String {
    let said: String = done.into_iter().map(|(head, differences)| lines(head, differences)).collect();
    if said.is_empty() { "the keyspace is as declared\n".to_owned() } else { said }
}

fn lines(head: &str, differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("{head}{difference}\n")).collect()
}

fn today() -> Day {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(0)).day()
}

fn on_keyspace<T>(
    url: &str,
    run: impl AsyncFnOnce(LiveKeyspace) -> Result<T, emberkeep::history::cql::ConnectError>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(async { run(LiveKeyspace::connect(url).await?).await })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyspace_with_deprecated_columns_is_not_as_declared() {
        let none = Vec::new();
        let empty =
            said([("added: ", &none), ("removed: ", &none), ("too early: ", &none), ("left: ", &none)]);
        assert_eq!(empty, "the keyspace is as declared\n");
        let deprecated = Difference::Deprecated {
            table: "visits".into(),
            column: "device".into(),
            indexes: Vec::new(),
            since: "2026-01-01".parse().expect("a day"),
            removable_from: "2026-01-31".parse().expect("a day"),
        };
        let left = vec![deprecated];
        let answer =
            said([("added: ", &none), ("removed: ", &none), ("too early: ", &none), ("left: ", &left)]);
        assert!(answer.starts_with("left: table visits: column device is deprecated"), "{answer}");
    }
}
