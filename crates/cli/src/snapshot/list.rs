//! `emberkeep snapshot list` and `show`

use super::open::{PartitionName, Place};
use super::shown::{details, table};
use crate::output::{Stream, offer, print};
use emberkeep::hot::Store;
use emberkeep::hot::embedded::Embedded;
use emberkeep::snapshot::{SnapshotInfo, Snapshots};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args, Debug)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    place: Place,
    /// Only those of this partition
    #[arg(long, value_name = "TYPE=TEXT")]
    partition: Option<PartitionName>,
    /// Prints one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    place: Place,
    /// Its id, the beginning of its id, or its name, if only one partition has it
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Lists what can be read, and names what cannot on standard error.
pub(super) async fn run(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let partition = arguments.partition.as_ref().map(PartitionName::keys).transpose()?;
    let partition = partition.map(|keys| keys.label());
    let mut listing = arguments.place.open().await?.list().await?;
    listing.snapshots.retain(|info| partition.as_ref().is_none_or(|label| info.partition == *label));
    match arguments.json {
        true => print(lines(&listing.snapshots)?)?,
        false if listing.snapshots.is_empty() => print("there are no snapshots\n")?,
        false => print(table(&listing.snapshots))?,
    }
    for damaged in &listing.damaged {
        offer(Stream::Error, format!("damaged: {}: {}\n", damaged.snapshot, damaged.problem));
    }
    Ok(if listing.damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(snapshots: &[SnapshotInfo]) -> anyhow::Result<String> {
    let lines: Result<Vec<String>, _> = snapshots.iter().map(serde_json::to_string).collect();
    Ok(lines?.into_iter().map(|line| line + "\n").collect())
}

/// Reads all of it, so that damage is found.
pub(super) async fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let snapshots = without_hot(&arguments.place).await?;
    let found = snapshots.find(&arguments.snapshot).await?;
    let info = snapshots.verify(&found.id).await?;
    match arguments.json {
        true => print(format_args!("{}\n", serde_json::to_string(&info)?))?,
        false => print(details(&info))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Snapshots for commands that do not use hot state.
pub(super) async fn without_hot(place: &Place) -> anyhow::Result<Snapshots> {
    Ok(Snapshots::new(Store::new(Arc::new(Embedded::in_memory())), place.open().await?))
}
