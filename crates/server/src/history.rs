//! History beside hot state: the consumers of the games' logs, run with the server.

use crate::limits::{HISTORY_DRAIN_GRACE, HISTORY_STOP_GRACE};
use emberkeep_history::History;
use emberkeep_history::outbox::{ConsumerStats, Consumers};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Where the events of the games' logs go, and who carries them. Cheap to clone.
#[derive(Clone)]
pub struct HistoryTier {
    /// History. It may be one that is not reachable yet: events wait in their logs.
    pub history: History,
    /// The consumers of all logs.
    pub consumers: Consumers,
}

impl HistoryTier {
    /// Entries that wait in all logs, as far as this process knows.
    pub(crate) fn waiting_entries(&self) -> u64 {
        self.consumers.stats().iter().map(|stats| stats.lag_entries).sum()
    }

    /// Whether history takes events: it is open, and no consumer failed last.
    pub(crate) fn is_ready(&self) -> bool {
        let is_waiting = |stats: &ConsumerStats| stats.last_error.is_some();
        self.history.store().is_open() && !self.consumers.stats().iter().any(is_waiting)
    }
}

/// The running consumers.
pub(crate) struct RunningHistory {
    tier: HistoryTier,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl RunningHistory {
    /// Runs the consumers in the background until [`end`](Self::end).
    pub(crate) fn start(tier: HistoryTier) -> RunningHistory {
        let (stop, mut stopped) = watch::channel(false);
        let consumers = Arc::new(tier.consumers.clone());
        let stopped = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
        let running = tokio::spawn(async move { consumers.run(stopped).await });
        RunningHistory { tier, stop, running }
    }

    /// Stops the consumers, delivers what is in the logs if that takes no longer than a moment, and closes history.
    /// What is left waits in the logs.
    pub(crate) async fn end(mut self) {
        self.stop.send_replace(true);
        if timeout(HISTORY_STOP_GRACE, &mut self.running).await.is_err() {
            self.running.abort();
        }
        if self.tier.history.store().is_open() {
            let drained = timeout(HISTORY_DRAIN_GRACE, self.tier.consumers.drain_once()).await;
            let is_left = drained.is_ok_and(|drained| drained.iter().any(Result::is_err));
            if is_left {
                tracing::warn!("some events are not in history yet; they wait in their logs");
            }
        }
        if let Err(error) = self.tier.history.close().await {
            tracing::error!("history was not closed cleanly: {error}");
        }
    }
}
