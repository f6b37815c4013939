//! All consumers of a program, supervised: one that panics is started again, and the others go on.
//!
//! Budget: a task for each consumer, with the budget of [`Consumer`]; a pause of [`CONSUMER_RESTART_PAUSE`] after a panic.
//! Stop condition: the caller's. On shutdown every consumer releases its lease; what it had not acknowledged is delivered again.

use super::consumer::{Consumer, Drained};
use super::error::DrainError;
use super::relay;
use crate::delivery::ConsumerStats;
use crate::error::Error;
use crate::limits::CONSUMER_RESTART_PAUSE;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The consumers of a program. A game offers its own as a function of a scope and of history:
///
/// ```
/// # use emberkeep_history::{History, outbox::{Consumer, Consumers, DrainError}};
/// # fn arena(_: u32, _: &History) -> Result<Vec<Consumer>, DrainError> { Ok(Vec::new()) }
/// # async fn serve(history: History, stop: impl Future<Output = ()>) -> Result<(), DrainError> {
/// let consumers: Consumers = arena(1, &history)?.into_iter().chain(arena(2, &history)?).collect();
/// consumers.run(stop).await; // In a task of its own; `consumers.stats()` meanwhile.
/// history.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Consumers(Vec<Arc<Consumer>>);

impl FromIterator<Consumer> for Consumers {
    fn from_iter<I: IntoIterator<Item = Consumer>>(consumers: I) -> Consumers {
        Consumers(consumers.into_iter().map(Arc::new).collect())
    }
}

impl Consumers {
    /// Consumers that each move entries into a spool of their own in this folder while history is away: see
    /// [`Consumer::through_spool`]. `bytes_max` is for each of them.
    ///
    /// Also the folders in it that have entries of other logs, which none of these consumers delivers.
    pub fn through_spools(
        consumers: Vec<Consumer>,
        folder: &Path,
        bytes_max: u64,
    ) -> Result<(Consumers, Vec<PathBuf>), Error> {
        let others = relay::spools_of_others(folder, consumers.iter().map(Consumer::log))?;
        let opened: Result<Vec<_>, _> =
            consumers.into_iter().map(|consumer| consumer.through_spool(folder, bytes_max)).collect();
        Ok((opened?.into_iter().collect(), others))
    }

    /// With this consumer, too.
    pub fn add(&mut self, consumer: Consumer) {
        self.0.push(Arc::new(consumer));
    }

    /// The consumers, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Consumer> {
        self.0.iter().map(|consumer| &**consumer)
    }

    /// The consumer of a log, by its name.
    pub fn of_log(&self, log: &str) -> Option<&Consumer> {
        self.iter().find(|consumer| consumer.log() == log)
    }

    /// Counters of each, and how far it is behind.
    pub fn stats(&self) -> Vec<ConsumerStats> {
        self.iter().map(Consumer::stats).collect()
    }

    /// Drains all logs until `stop` is ready, and releases the leases. It ends before that if a store was closed.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for consumer in &self.0 {
            tasks.spawn(supervised(consumer.clone(), stopped.clone()));
        }
        let mut stop = pin!(stop);
        tokio::select! {
            biased;
            () = &mut stop => {}
            () = ended(&mut tasks) => return,
        }
        stopping.send_replace(true);
        ended(&mut tasks).await;
    }

    /// Drains what is in the logs now, all at once, and releases the leases. The outcome of each, in the order of [`iter`](Self::iter);
    /// `None` = another consumer has the lease.
    pub async fn drain_once(&self) -> Vec<Result<Option<Drained>, DrainError>> {
        let drain = async |consumer: &Consumer| {
            let drained = AssertUnwindSafe(consumer.drain_once()).catch_unwind().await;
            let panicked = |_| Err(Error::Internal { reason: "its consumer panicked".into() }.into());
            drained.unwrap_or_else(panicked)
        };
        join_all(self.iter().map(drain)).await
    }
}

async fn ended(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

/// Runs a consumer again whenever it panics. What it shares with its next run is valid at any point.
async fn supervised(consumer: Arc<Consumer>, stopped: watch::Receiver<bool>) {
    let stop = || {
        let mut stopped = stopped.clone();
        // Without a sender the tasks are being dropped.
        async move { drop(stopped.wait_for(|stopped| *stopped).await) }
    };
    while AssertUnwindSafe(consumer.run(stop())).catch_unwind().await.is_err() {
        consumer.count_restart();
        tracing::error!(log = consumer.log(), "the consumer of an outbox panicked; it is started again");
        tokio::select! {
            () = stop() => return,
            () = sleep(CONSUMER_RESTART_PAUSE) => {}
        }
    }
}
