//! Following a log: read, apply and advance, page by page.
//!
//! Budget: a page of [`FEED_PAGE_ENTRIES`] in a transaction; a pass after each message of the log, at most every
//! [`FEED_PAUSE`], and every [`FEED_POLL_EVERY`] without one. A process that finds that another one was first stands by
//! for [`FEED_POLL_EVERY`]. While the store is unavailable it tries again with growing pauses. Stop condition: the
//! caller's, or a store that was closed. It can be dropped at any point.

use super::apply::{Entry, EntryFeed};
use super::feed::FeedRecord;
use super::{FeedError, FeedStats, LogReader};
use crate::limits::{FEED_ERROR_PAUSE_MAX, FEED_PAGE_ENTRIES, FEED_PAUSE, FEED_POLL_EVERY};
use bytes::Bytes;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::store::{LogEntry, LogPosition};
use emberkeep_hot::{Error, Scope};
use emberkeep_schema::{
    Codec, Family, Hash, Json, Key, KeyLayout, Log, LogBound, Newest, Partition, Persistent, Raw, Topology,
    Utf8,
};
use tokio::time::{sleep, timeout};

/// A log of one partition that feeds the state of another one.
pub struct LogFeed<P: Partition, L: Family, S: Family, A: Family, E> {
    log_scope: Scope<L::Partition>,
    log: Key<L>,
    state: EntryFeed<P, S, A, E>,
    /// Partition and key of the log.
    source: String,
}

/// What became of a page.
enum Page {
    Applied(u64),
    /// Another process has applied it.
    Lost,
    /// There are no entries after the position.
    Empty,
}

impl<P, L, S, A, C, B, const MAX: usize> LogFeed<P, L, S, A, C::Value>
where
    P: Partition,
    L: Family<Kind = Log<C, B>>,
    C: Codec,
    C::Value: Sync,
    B: LogBound,
    S: Family<Partition = P, Kind = Hash<Utf8, Json<FeedRecord>>, Ttl = Persistent>,
    A: Family<Partition = P, Kind = Log<Raw, Newest<MAX>>, Ttl = Persistent>,
{
    /// A log with the state that it feeds, by at most [`FEED_PAGE_ENTRIES`] entries in a transaction.
    pub fn new(log_scope: &Scope<L::Partition>, log: Key<L>, state: EntryFeed<P, S, A, C::Value>) -> Self {
        // The name of a log stays when it moves from one server to a Cluster.
        let layout = KeyLayout::new(log_scope.store().key_layout().prefix(), Topology::Single);
        let mut partition = Vec::new();
        log_scope.partition().write(&mut partition);
        let key = log.to_text(&layout.unwrap_or_default(), log_scope.partition());
        LogFeed {
            source: format!("{}/{key}", String::from_utf8_lossy(&partition)),
            log_scope: log_scope.clone().named("log_feed.read"),
            log,
            state,
        }
    }

    /// The name of the log as a source: partition and key.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Applies the next page.
    async fn page(&self) -> Result<Page, FeedError> {
        let position = self.state.position(&self.source).await?;
        let page = self.log_scope.log_after_encoded(&self.log, position, FEED_PAGE_ENTRIES).await?;
        if page.is_reset {
            self.align(position).await?;
            return Ok(Page::Applied(0));
        }
        if page.entries.is_empty() {
            return Ok(Page::Empty);
        }
        if page.missed > 0 && position.sequence > 0 {
            self.state.count(|stats| stats.missed += page.missed);
            let (source, missed) = (&self.source, page.missed);
            tracing::error!(
                source,
                missed,
                "entries of a log were trimmed before they were applied; rebuild what it feeds"
            );
        }
        let entry = |entry: LogEntry<Bytes>| Entry {
            position: entry.position(),
            event: entry.event.ok().filter(|_| entry.mark.is_some()),
        };
        let entries: Vec<_> = page.entries.into_iter().map(entry).collect();
        let applied = self.state.apply_after::<C>(&self.source, position, &entries).await?;
        Ok(applied.map_or(Page::Lost, Page::Applied))
    }

    /// The log was set back: goes to the last entry of it that was applied.
    async fn align(&self, expected: LogPosition) -> Result<(), FeedError> {
        let remembered = self.state.feed.remembered(&self.state.scope, &self.source).await?;
        let (mut after, mut last) = (LogPosition::START, LogPosition::START);
        loop {
            let page = self.log_scope.log_after_encoded(&self.log, after, FEED_PAGE_ENTRIES).await?;
            let Some(end) = page.entries.last() else { break };
            after = end.position();
            let is_applied = |entry: &&LogEntry<Bytes>| {
                entry.mark.is_some_and(|mark| remembered.contains(&(entry.sequence, mark)))
            };
            last = page.entries.iter().rfind(is_applied).map_or(last, LogEntry::position);
        }
        let (feed, source) = (self.state.feed.clone(), self.source.clone());
        let moved = self.state.scope.transact(move |tx| {
            let is_expected = feed.position(tx, &source)? == expected;
            if is_expected {
                feed.set(tx, &source, last)?;
            }
            Ok::<_, Error>(is_expected)
        });
        if moved.await? {
            self.state.count(|stats| stats.set_backs += 1);
            let (source, from, to) = (&self.source, expected.sequence, last.sequence);
            tracing::error!(source, from, to, "a log was set back; entries that it lost stay applied");
        }
        Ok(())
    }

    async fn subscribe(&self) -> Option<Subscription> {
        let channel = self.log.to_text(self.log_scope.store().key_layout(), self.log_scope.partition());
        self.log_scope.store().subscribe(vec![Bytes::from(channel)], vec![]).await.ok()
    }

    /// Pages until nothing waits. `false` = another process feeds the same state.
    async fn pass(&self) -> Result<(u64, bool), FeedError> {
        let mut applied = 0;
        loop {
            match self.page().await? {
                Page::Applied(entries) => applied += entries,
                Page::Empty => return Ok((applied, true)),
                Page::Lost => return Ok((applied, false)),
            }
        }
    }

    async fn work(&self) {
        let (mut messages, mut pause) = (None, FEED_PAUSE);
        loop {
            if messages.is_none() {
                // Before the log is read, so that no entry comes between. Without messages it polls.
                messages = self.subscribe().await;
            }
            // A message from before this pass tells nothing new.
            while messages.as_mut().is_some_and(|messages| messages.try_next().is_some()) {}
            match self.pass().await {
                Ok((_, true)) => {
                    pause = FEED_PAUSE;
                    // Entries that come together are applied together.
                    sleep(FEED_PAUSE).await;
                    wait(&mut messages).await;
                }
                Ok((_, false)) => sleep(FEED_POLL_EVERY).await,
                Err(FeedError::Store(Error::Closed)) => return,
                Err(error) => {
                    self.state.count(|stats| stats.errors += 1);
                    tracing::warn!(source = self.source, %error, "a log is not applied; its entries wait");
                    sleep(pause).await;
                    pause = (2 * pause).min(FEED_ERROR_PAUSE_MAX);
                }
            }
        }
    }
}

/// Waits for a message of the log, at most for the poll interval.
async fn wait(messages: &mut Option<Subscription>) {
    let Some(next) = messages.as_mut().map(Subscription::next) else { return sleep(FEED_POLL_EVERY).await };
    if let Ok(None) = timeout(FEED_POLL_EVERY, next).await {
        // The store was closed, or the subscription ended: the next pass tells.
        *messages = None;
    }
}

impl<P, L, S, A, C, B, const MAX: usize> LogReader for LogFeed<P, L, S, A, C::Value>
where
    P: Partition,
    L: Family<Kind = Log<C, B>>,
    C: Codec,
    C::Value: Sync,
    B: LogBound,
    S: Family<Partition = P, Kind = Hash<Utf8, Json<FeedRecord>>, Ttl = Persistent>,
    A: Family<Partition = P, Kind = Log<Raw, Newest<MAX>>, Ttl = Persistent>,
{
    fn feed_once(&self) -> Pending<'_, Result<u64, FeedError>> {
        Box::pin(async move { self.pass().await.map(|(applied, _)| applied) })
    }

    fn follow(&self) -> Pending<'_, ()> {
        Box::pin(self.work())
    }

    fn position(&self) -> Pending<'_, Result<LogPosition, Error>> {
        Box::pin(self.state.position(&self.source))
    }

    fn stats(&self) -> FeedStats {
        self.state.stats()
    }
}
