//! Where the events of the city go: a history that the caller names, or one in a temporary folder.
//!
//! The consumers run in one process, beside the players. A store whose events of DarkAges go elsewhere is left alone: a
//! consumer of ours would take what belongs to another server.

use crate::city_plan::City;
use anyhow::Context;
use emberkeep::HistoryUrl;
use emberkeep::games::darkages::{AUDIT_LOG, COMBAT_LOG, DRAINER, PLAYS_LOG, Shard};
use emberkeep::history::History;
use emberkeep::history::outbox::Consumers;
use emberkeep::hot::{self, ReadTx};
use emberkeep::schema::Name;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The names of the logs that have a lease.
pub(super) const LOGS: [&str; 3] = ["combat", "plays", "audit"];

/// A folder of this process, removed with all that it contains when this is dropped.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// A folder that does not exist yet, in the system's place for temporary files.
    pub fn new() -> TemporaryFolder {
        TemporaryFolder(std::env::temp_dir().join(format!("emberkeep-demo-{}", Uuid::new_v4().simple())))
    }

    /// The folder in which it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for TemporaryFolder {
    fn default() -> TemporaryFolder {
        TemporaryFolder::new()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Nothing depends on it; the system clears the place of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// History with the consumers that run beside the game.
pub(crate) struct CityHistory {
    pub(super) history: History,
    pub(super) consumers: Consumers,
    /// Whether nothing of DarkAges was in the store before.
    pub(super) is_alone: bool,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
    _folder: Option<TemporaryFolder>,
}

impl CityHistory {
    /// Opens history and runs the consumers. `None` if the store has events of DarkAges, and no history is named for them.
    pub(crate) async fn begin(city: &City, named: Option<History>) -> anyhow::Result<Option<CityHistory>> {
        let is_alone = is_alone(city).await.context("cannot read the logs of DarkAges")?;
        let (history, folder) = match named {
            Some(history) => (history, None),
            None if !is_alone => return Ok(None),
            None => {
                let folder = TemporaryFolder::new();
                let url = HistoryUrl::folder(folder.path());
                let opened = url.open(emberkeep::games::history_schema()).await;
                (opened.context("cannot open history in a temporary folder")?, Some(folder))
            }
        };
        let consumers: Consumers = city.game.consumers(&history)?.into_iter().collect();
        let (stop, mut stopped) = watch::channel(false);
        let run = Arc::new(consumers.clone());
        let stopped = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
        let running = tokio::spawn(async move { run.run(stopped).await });
        Ok(Some(CityHistory { history, consumers, is_alone, stop, running, _folder: folder }))
    }

    /// Stops the consumers; what waits is delivered by hand afterwards.
    pub(crate) async fn stop(&mut self) {
        self.stop.send_replace(true);
        if let Err(error) = (&mut self.running).await {
            tracing::error!("the consumers of the city panicked: {error}");
        }
    }

    /// Closes history, and removes a temporary folder.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.history.close().await.context("cannot close history")
    }
}

/// Whether the logs of DarkAges were never used here.
async fn is_alone(city: &City) -> hot::Result<bool> {
    for scope in city.game.scopes() {
        let read = |tx: &mut ReadTx<'_, Shard>| {
            let mut is_used = tx.exists(&COMBAT_LOG.key())?;
            is_used |= tx.exists(&PLAYS_LOG.key())? | tx.exists(&AUDIT_LOG.key())?;
            for log in LOGS {
                is_used |= tx.exists(&DRAINER.key(Name::new(log).expect("a word of letters")))?;
            }
            Ok::<_, hot::Error>(is_used)
        };
        if scope.read(read).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
