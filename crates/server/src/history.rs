//! History beside hot state: the consumers of the games' logs and of the spool, run with the server.

use crate::limits::{HISTORY_DRAIN_GRACE, HISTORY_STOP_GRACE};
use crate::metrics::Metrics;
use crate::supervise::supervise;
use emberkeep_games::darkages::archive::recorder::Recorder;
use emberkeep_history::History;
use emberkeep_history::outbox::{ConsumerStats, Consumers};
use emberkeep_history::spool::SpoolConsumer;
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
    spool: Option<(Recorder, Arc<SpoolConsumer>)>,
}

impl HistoryTier {
    /// History and the consumers of all logs, without a folder for recorded events.
    pub fn new(history: History, consumers: Consumers) -> HistoryTier {
        HistoryTier { history, consumers, spool: None }
    }

    /// Takes events of servers that compute damage themselves, too.
    pub fn with_recorder(mut self, recorder: Recorder) -> HistoryTier {
        let consumer = recorder.consumer(self.history.clone());
        self.spool = Some((recorder, Arc::new(consumer)));
        self
    }

    /// Takes events of servers that compute damage themselves; `None` = the server has no folder for them.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.spool.as_ref().map(|(recorder, _)| recorder)
    }

    /// The state of all consumers, that of the spool included.
    pub(crate) fn stats(&self) -> Vec<ConsumerStats> {
        let mut stats = self.consumers.stats();
        stats.extend(self.spool.as_ref().map(|(_, consumer)| consumer.stats()));
        stats
    }

    /// Entries that wait in all logs and in the spool, as far as this process knows.
    pub(crate) fn waiting_entries(&self) -> u64 {
        self.stats().iter().map(|stats| stats.lag_entries).sum()
    }

    /// Whether history takes events: it is open, and no consumer failed last.
    pub(crate) fn is_ready(&self) -> bool {
        let is_waiting = |stats: &ConsumerStats| stats.last_error.is_some();
        self.history.store().is_open() && !self.stats().iter().any(is_waiting)
    }
}

/// The running consumers.
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
            if drained.is_ok_and(|is_left| is_left) {
                tracing::warn!("some events are not in history yet; they wait in their logs");
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
