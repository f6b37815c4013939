//! `emberkeep snapshot create`

use super::open::{PartitionName, Place, Shared, offer_left_out, open_hot};
use super::progress::ProgressBar;
use super::shown::details;
use crate::output::print;
use crate::store::StoreArguments;
use emberkeep::snapshot::{Label, Snapshots};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    hot: StoreArguments,
    #[command(flatten)]
    place: Place,
    /// The partition, by the name of its type or of its part in keys
    #[arg(long, value_name = "TYPE=TEXT")]
    partition: PartitionName,
    /// A name for people; the newest snapshot of a name can be asked for by it
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,
    #[command(flatten)]
    shared: Shared,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: &CreateArguments) -> anyhow::Result<ExitCode> {
    let keys = arguments.shared.applied(arguments.partition.keys()?);
    let store = arguments.place.open().await?;
    let hot = open_hot(&arguments.hot).await?;
    offer_left_out(&hot, &keys);
    let mut bar = ProgressBar::new();
    let label = Label::named(&arguments.name);
    let created = Snapshots::new(hot.clone(), store).create(&keys, label, &mut |done| bar.show(done)).await;
    bar.end();
    hot.close().await?;
    let info = created?;
    match arguments.json {
        true => print(format_args!("{}\n", serde_json::to_string(&info)?))?,
        false => print(details(&info))?,
    }
    Ok(ExitCode::SUCCESS)
}
