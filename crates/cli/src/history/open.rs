//! Opening history for the binary: where it is by default, and a cluster that cannot be reached yet.

use crate::WITHOUT_CQL;
use crate::store::StoreArguments;
use anyhow::{Context, anyhow, bail};
use emberkeep::games::darkages::Shards;
use emberkeep::history::limits::SPOOL_BYTES_DEFAULT;
use emberkeep::history::outbox::Consumers;
use emberkeep::history::{Deferred, History};
use emberkeep::hot::Store;
use emberkeep::{HistoryUrl, OpenError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// What `--history` says for a server without history.
const NONE: &str = "none";

/// The folder of history beside hot state in a folder.
pub(crate) fn folder_of(data: &Path) -> PathBuf {
    data.join("history")
}

/// The history that `--history` names, not opened; `None` = it says that there is none. The error says what was expected,
/// and shows no password.
pub(crate) fn named(text: &str) -> Result<Option<HistoryUrl>, String> {
    if text == NONE {
        return Ok(None);
    }
    match HistoryUrl::parse(text) {
        Ok(url) => Ok(Some(url)),
        Err(OpenError::WithoutFeature { .. }) => Err(WITHOUT_CQL.to_owned()),
        Err(error) => Err(format!(
            "expected none, or the URL of history such as file:DIR or cql://host/keyspace: {error}"
        )),
    }
}

/// The text of `--history` if it names one, for clap.
pub(crate) fn checked(text: &str) -> Result<String, String> {
    named(text).map(|_| text.to_owned())
}

/// What `--history` names; without it a folder in the folder of hot state. `None` = no history.
pub(crate) fn parse(text: Option<&str>, hot: &StoreArguments) -> anyhow::Result<Option<HistoryUrl>> {
    match text {
        Some(text) => named(text).map_err(|problem| anyhow!("cannot use --history: {problem}")),
        None => Ok(hot.folder().map(|folder| HistoryUrl::folder(folder_of(&folder)))),
    }
}

/// The folder in which entries of logs wait while history is away. By default there is one beside hot state in a folder, if
/// history is a cluster: history in a folder is as near as that one is.
pub(crate) fn spool_folder(
    named: Option<PathBuf>,
    history: Option<&HistoryUrl>,
    hot: &StoreArguments,
) -> anyhow::Result<Option<PathBuf>> {
    let Some(history) = history else {
        match named {
            Some(_) => bail!(
                "history-spool is where events wait for history, and no history is named; give both, or leave it out"
            ),
            None => return Ok(None),
        }
    };
    let beside = || Some(hot.folder()?.join("history-spool")).filter(|_| !history.is_in_process());
    Ok(named.or_else(beside))
}

/// The consumers of the logs of all games, and the folders of spools that are of none of these logs.
pub(crate) fn consumers(
    store: &Store,
    history: &History,
    shards: &Shards,
    spool: Option<&Path>,
) -> anyhow::Result<(Consumers, Vec<PathBuf>)> {
    let consumers = emberkeep::games::consumers_of_shards(store, history, shards)?;
    let Some(folder) = spool else { return Ok((consumers.into_iter().collect(), Vec::new())) };
    let opened = Consumers::through_spools(consumers, folder, SPOOL_BYTES_DEFAULT);
    opened.with_context(|| format!("cannot open the history spool {}", folder.display()))
}

/// Opens history. A cluster that does not answer is opened by the task, with growing pauses; until then events wait in
/// their logs. Every other mistake is an error.
pub(crate) async fn open_or_wait(url: HistoryUrl) -> anyhow::Result<(History, Option<JoinHandle<()>>)> {
    let open = move || url.clone().open(emberkeep::games::history_schema());
    match open().await {
        Ok(history) => Ok((history, None)),
        Err(error) if error.is_transient() => {
            tracing::warn!("history cannot be reached, events wait in their logs: {error}");
            let deferred = Arc::new(Deferred::new("history", error.to_string()));
            let opened = deferred.clone();
            let opening = tokio::spawn(async move { opened.open(open).await });
            Ok((History::new(deferred), Some(opening)))
        }
        Err(error) => Err(anyhow::Error::new(error).context("cannot open history")),
    }
}
