//! History beside hot state: where events go, and who carries them. `run_history` runs them.

use emberkeep_games::darkages::archive::recorder::Recorder;
use emberkeep_games::darkages::boards::Boards;
use emberkeep_history::History;
use emberkeep_history::outbox::{Consumer, ConsumerStats, Consumers, FeedStats};
use emberkeep_history::spool::SpoolConsumer;
use emberkeep_hot::Store;
use std::sync::Arc;

/// Where the events of the games' logs go, and who carries them. Cheap to clone.
#[derive(Clone)]
pub struct HistoryTier {
    /// History. It may be one that is not reachable yet: events wait in their logs.
    pub history: History,
    /// The consumers of all logs.
    pub consumers: Consumers,
    pub(crate) spool: Option<(Recorder, Arc<SpoolConsumer>)>,
}

impl HistoryTier {
    /// History and the consumers of all logs, without a folder for recorded events.
    pub fn new(history: History, consumers: Consumers) -> HistoryTier {
        HistoryTier { history, consumers, spool: None }
    }

    /// Takes events of servers that compute damage themselves, too. They feed the leaderboards of the store.
    pub fn with_recorder(mut self, recorder: Recorder, store: &Store) -> HistoryTier {
        let boards = Boards::new(store).fed_by_records();
        let consumer = recorder.consumer(self.history.clone()).with_reader(boards);
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

    /// Counters of what reads the logs beside the consumers, by log.
    pub(crate) fn feed_stats(&self) -> Vec<(String, FeedStats)> {
        let of = |consumer: &Consumer| -> Vec<_> {
            consumer.readers().iter().map(|reader| (consumer.log().to_owned(), reader.stats())).collect()
        };
        let mut feeds: Vec<_> = self.consumers.iter().flat_map(of).collect();
        let of_spool = self.spool.iter().flat_map(|(_, consumer)| consumer.readers());
        feeds.extend(of_spool.map(|reader| ("spool".to_owned(), reader.stats())));
        feeds
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
