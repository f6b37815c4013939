//! The stores of a command, and the partition that it is about.

use crate::output::{Stream, offer};
use crate::store::{StoreArguments, open as open_store};
use anyhow::{Context, anyhow, bail};
use emberkeep::SnapshotUrl;
use emberkeep::hot::Store;
use emberkeep::hot::store::PartitionKeys;
use emberkeep::snapshot::{SnapshotInfo, SnapshotStore};
use std::str::FromStr;
use std::sync::Arc;

const ONE_PROCESS: &str =
    "a folder belongs to one process; stop the one that has it, or let it take its snapshots itself";

/// Where snapshots are.
#[derive(clap::Args, Debug)]
pub(super) struct Place {
    /// Where snapshots are: a folder, or postgres://…; see below
    #[arg(
        long,
        value_name = "URL|DIR",
        env = "EMBERKEEP_SNAPSHOTS",
        hide_env_values = true,
        value_parser = |text: &str| SnapshotUrl::parse(text).map(|_| text.to_owned())
    )]
    snapshots: String,
}

impl Place {
    pub(super) async fn open(&self) -> anyhow::Result<Arc<dyn SnapshotStore>> {
        SnapshotUrl::parse(&self.snapshots)?.open().await.context("cannot open the store of snapshots")
    }
}

/// Whether keys are meant that all partitions share.
#[derive(clap::Args, Debug)]
pub(super) struct Shared {
    /// Also the keys that all partitions of the type share on one server, such as the list of all reactors: a restore of
    /// them changes every partition. On a Cluster each partition has its own, and this changes nothing
    #[arg(long)]
    shared: bool,
}

impl Shared {
    pub(super) fn applied(&self, keys: PartitionKeys) -> PartitionKeys {
        if self.shared { keys.with_shared() } else { keys }
    }
}

/// Says which families are left out, on standard error.
pub(super) fn offer_left_out(hot: &Store, keys: &PartitionKeys) {
    let left_out = keys.left_out(hot.key_layout());
    if !left_out.is_empty() {
        let families = left_out.join(", ");
        let text = format!("left out, as all partitions share them here (see --shared): {families}\n");
        offer(Stream::Error, text);
    }
}

/// A partition by its type and text.
#[derive(Debug, Clone)]
pub(super) struct PartitionName {
    name: String,
    text: String,
}

impl FromStr for PartitionName {
    type Err = String;

    fn from_str(text: &str) -> Result<PartitionName, String> {
        match text.split_once('=') {
            Some((name, text)) if !name.is_empty() && !text.is_empty() => {
                Ok(PartitionName { name: name.to_owned(), text: text.to_owned() })
            }
            _ => Err("expected TYPE=TEXT, such as code=AB12CD".into()),
        }
    }
}

impl PartitionName {
    pub(super) fn keys(&self) -> anyhow::Result<PartitionKeys> {
        Ok(PartitionKeys::named(&emberkeep::games::schema(), &self.name, &self.text)?)
    }
}

/// The keys of the partition that a snapshot is of.
pub(super) fn keys_of(info: &SnapshotInfo) -> anyhow::Result<PartitionKeys> {
    let (name, text) = info.partition.split_once(':').ok_or_else(|| {
        anyhow!("{} is of {}, which is not a partition of these games", info.id, info.partition)
    })?;
    Ok(PartitionKeys::named(&emberkeep::games::schema(), name, text)?)
}

/// Opens hot state. A store in memory would end with this command, and a folder that another process has open is refused.
pub(super) async fn open_hot(arguments: &StoreArguments) -> anyhow::Result<Store> {
    if arguments.is_in_process() && arguments.folder().is_none() {
        bail!(
            "hot state in memory ends with its process; name what the server uses: --data DIR or --hot URL"
        );
    }
    open_store(arguments).await.map_err(|error| match format!("{error:#}").contains("in use by") {
        true => error.context(ONE_PROCESS),
        false => error,
    })
}
