//! `emberkeep snapshot prune`

use super::list::without_hot;
use super::open::{PartitionName, Place};
use super::shown::table;
use crate::output::{confirmed, print};
use emberkeep::snapshot::Retention;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub(crate) struct PruneArguments {
    #[command(flatten)]
    place: Place,
    /// The partition whose snapshots are pruned
    #[arg(long, value_name = "TYPE=TEXT")]
    partition: PartitionName,
    /// Only snapshots of this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keeps the newest ones
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_last: usize,
    /// Keeps the newest of each of so many hours
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_hourly: usize,
    /// Keeps the newest of each of so many days (UTC)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_daily: usize,
    /// Removes without asking
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(arguments: &PruneArguments) -> anyhow::Result<ExitCode> {
    let snapshots = without_hot(&arguments.place).await?;
    let (label, name) = (arguments.partition.keys()?.label(), arguments.name.as_deref());
    let keep =
        Retention { last: arguments.keep_last, hourly: arguments.keep_hourly, daily: arguments.keep_daily };
    let chosen = snapshots.prunable(&label, name, keep).await?;
    if chosen.is_empty() {
        print("all snapshots are kept\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    print(table(&chosen))?;
    if !arguments.yes && !confirmed(&mut std::io::stdout(), "Remove these snapshots?")? {
        print("nothing was removed\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let removed = snapshots.prune(&label, name, keep).await?;
    print(format_args!("removed: {}\n", removed.len()))?;
    Ok(ExitCode::SUCCESS)
}
