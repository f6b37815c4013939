//! `emberkeep snapshot restore`

use super::list::without_hot;
use super::open::{Place, Shared, keys_of, offer_left_out, open_hot};
use super::progress::ProgressBar;
use super::shown::changes;
use crate::output::{confirmed, print};
use crate::store::StoreArguments;
use emberkeep::hot::store::PartitionKeys;
use emberkeep::snapshot::{KeyChoice, SnapshotInfo, Snapshots};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub(crate) struct RestoreArguments {
    #[command(flatten)]
    hot: StoreArguments,
    #[command(flatten)]
    place: Place,
    /// Its id, the beginning of its id, or its name, if only one partition has it
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
    /// Only keys whose name begins like this; may be given several times
    #[arg(long, value_name = "TEXT")]
    prefix: Vec<String>,
    #[command(flatten)]
    shared: Shared,
    /// Restores without asking
    #[arg(long)]
    yes: bool,
    /// Prints the report as JSON; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

pub(super) async fn run(arguments: &RestoreArguments) -> anyhow::Result<ExitCode> {
    let found = without_hot(&arguments.place).await?;
    let info = found.find(&arguments.snapshot).await?;
    let keys = arguments.shared.applied(keys_of(&info)?);
    let hot = open_hot(&arguments.hot).await?;
    offer_left_out(&hot, &keys);
    let restored =
        restore(arguments, &Snapshots::new(hot.clone(), found.store().clone()), &info, &keys).await;
    hot.close().await?;
    restored
}

async fn restore(
    arguments: &RestoreArguments,
    snapshots: &Snapshots,
    info: &SnapshotInfo,
    keys: &PartitionKeys,
) -> anyhow::Result<ExitCode> {
    let choice = KeyChoice::prefixes(&arguments.prefix);
    let preview = snapshots.preview(&info.id, keys, &choice).await?;
    if !arguments.json {
        print(format_args!(
            "{} ({choice}) would change {} in hot state:\n{}",
            info.id,
            info.partition,
            changes(&preview)
        ))?;
        if let Some(mark) = snapshots.unfinished(keys).await? {
            print(format_args!("a restore of {} ({}) has not ended\n", mark.snapshot, mark.choice))?;
        }
    }
    if !arguments.yes && !confirmed(&mut std::io::stdout(), &format!("Restore {} now?", info.partition))? {
        print("nothing was changed\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let mut bar = ProgressBar::new();
    let restored = snapshots.restore(&info.id, keys, &choice, &mut |done| bar.show(done)).await;
    bar.end();
    let report = restored?;
    match arguments.json {
        true => print(format_args!("{}\n", serde_json::to_string(&report)?))?,
        false => {
            print(format_args!("restored; {} is in generation {}\n", info.partition, report.generation))?
        }
    }
    Ok(ExitCode::SUCCESS)
}
