//! Opening history for the binary: where it is by default, and a cluster that cannot be reached yet.

use crate::WITHOUT_CQL;
use crate::store::StoreArguments;
use anyhow::anyhow;
use emberkeep::history::{Deferred, History};
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

/// What `--history` names; without it a folder in the folder of hot state. `None` = no history.
pub(crate) fn parse(text: Option<&str>, hot: &StoreArguments) -> anyhow::Result<Option<HistoryUrl>> {
    match text {
        Some(text) => named(text).map_err(|problem| anyhow!("cannot use --history: {problem}")),
        None => Ok(hot.folder().map(|folder| HistoryUrl::folder(folder_of(&folder)))),
    }
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
