//! Runs the consumers of the games' logs and of the spool with the server, and ends them with it.
//!
//! Budget: that of the consumers. Stop condition: [`RunningHistory::end`], which delivers for at most [`HISTORY_DRAIN_GRACE`].

use crate::history::HistoryTier;
use crate::limits::{HISTORY_DRAIN_GRACE, HISTORY_STOP_GRACE};
use crate::metrics::Metrics;
use crate::supervise::supervise;
use emberkeep_games::darkages::archive::recorder::Recorder;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The consumers of history as background tasks, until they are stopped.
pub(crate) struct RunningHistory {
    tier: HistoryTier,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
    spool: Option<JoinHandle<()>>,
}

impl RunningHistory {
    /// Runs the consumers in the background until [`end`](Self::end).
    pub(crate) fn start(tier: HistoryTier, metrics: &Arc<Metrics>) -> RunningHistory {
        let (stop, mut stopped) = watch::channel(false);
        let consumers = Arc::new(tier.consumers.clone());
        let stopped = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
        let running = tokio::spawn(async move { consumers.run(stopped).await });
        let spool = tier.spool.as_ref().map(|(_, consumer)| {
            let consumer = consumer.clone();
            supervise("spool", metrics.clone(), move || {
                let consumer = consumer.clone();
                async move { consumer.run(std::future::pending()).await }
            })
        });
        RunningHistory { tier, stop, running, spool }
    }

    /// Stops the consumers, delivers what is in the logs if that takes no longer than a moment, and closes history.
    /// What is left waits in the logs and in the spool.
    pub(crate) async fn end(mut self) {
        self.stop.send_replace(true);
        if let Some(spool) = &self.spool {
            spool.abort();
        }
        if timeout(HISTORY_STOP_GRACE, &mut self.running).await.is_err() {
            self.running.abort();
        }
        if self.tier.history.store().is_open() {
            let drained = timeout(HISTORY_DRAIN_GRACE, drain(&self.tier)).await;
            // Out of time, most is left.
            if drained.unwrap_or(true) {
                let waiting = self.tier.waiting_entries();
                tracing::warn!(waiting, "some events are not in history yet; they wait in their logs");
            }
        }
        if let Some(Err(error)) = self.tier.recorder().map(Recorder::close) {
            tracing::error!("the spool was not closed cleanly: {error}");
        }
        if let Err(error) = self.tier.history.close().await {
            tracing::error!("history was not closed cleanly: {error}");
        }
    }
}

/// Delivers what waits. Returns whether something is left.
async fn drain(tier: &HistoryTier) -> bool {
    let logs = tier.consumers.drain_once().await.iter().any(Result::is_err);
    let spool = match &tier.spool {
        Some((_, consumer)) => consumer.drain_once().await.is_err(),
        None => false,
    };
    logs || spool
}
