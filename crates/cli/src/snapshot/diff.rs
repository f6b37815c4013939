//! `emberkeep snapshot diff`

use super::list::without_hot;
use super::open::{Place, Shared, keys_of, open_hot};
use super::shown::changes;
use crate::output::print;
use crate::store::StoreArguments;
use emberkeep::snapshot::{Changes, KeyChoice, Snapshots};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    hot: StoreArguments,
    #[command(flatten)]
    place: Place,
    /// The first snapshot: its id, the beginning of its id, or its name, if only one partition has it
    #[arg(value_name = "FROM")]
    from: String,
    /// The second one [default: hot state]
    #[arg(value_name = "TO")]
    to: Option<String>,
    /// Only keys whose name begins like this; may be given several times
    #[arg(long, value_name = "TEXT")]
    prefix: Vec<String>,
    #[command(flatten)]
    shared: Shared,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let found = compare(arguments).await?;
    match arguments.json {
        true => print(format_args!("{}\n", serde_json::to_string(&found)?))?,
        false => print(changes(&found))?,
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn compare(arguments: &DiffArguments) -> anyhow::Result<Changes> {
    let choice = KeyChoice::prefixes(&arguments.prefix);
    let snapshots = without_hot(&arguments.place).await?;
    let from = snapshots.find(&arguments.from).await?;
    if let Some(to) = &arguments.to {
        let to = snapshots.find(to).await?;
        return Ok(snapshots.diff(&from.id, &to.id, &choice).await?);
    }
    let hot = open_hot(&arguments.hot).await?;
    let live = Snapshots::new(hot.clone(), snapshots.store().clone());
    let keys = arguments.shared.applied(keys_of(&from)?);
    let found = live.diff_live(&from.id, &keys, &choice).await;
    hot.close().await?;
    Ok(found?)
}
