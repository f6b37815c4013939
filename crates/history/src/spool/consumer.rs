//! Delivering what a spool has recorded.
//!
//! Budget: one page at a time. Stop condition: the caller's, or a spool or store that was closed. While history is
//! unavailable it tries again with growing pauses; the spool fills up meanwhile and then refuses.

use super::queue::Page;
use super::recorder::{Handle, Spool};
use crate::backoff::Backoff;
use crate::contract::Source;
use crate::delivery::{Batch, ConsumerStats, Delivered, Deliverer, Entry, Projection, Rejection};
use crate::error::{Error, Result};
use crate::history::History;
use crate::limits::{DRAIN_PAUSE_MAX, DRAIN_PAUSE_MIN, DRAIN_POLL_EVERY};
use crate::logs::{LogState, SPOOL_LOGS};
use emberkeep_primitives::log_feed::EntryReader;
use emberkeep_schema::{Codec, Timestamp};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;

/// Delivers the events of a spool into history. A spool needs one.
///
/// A source that was closed before all of its events were delivered stops it: the events stay in the folder, and
/// `stats()` has the error.
pub struct SpoolConsumer {
    spool: Arc<Handle>,
    deliverer: Deliverer,
    /// The source that is being delivered, and what history has acknowledged of it.
    acknowledged: Mutex<Option<(String, Option<LogState>)>>,
    stats: Mutex<ConsumerStats>,
    /// What else the events feed.
    readers: Vec<Arc<dyn EntryReader>>,
    /// Since when events wait.
    waiting_since: Mutex<Option<Instant>>,
}

impl SpoolConsumer {
    /// A consumer of a spool.
    pub fn new<C: Codec, J: Projection<C::Value>>(
        spool: &Spool<C>,
        history: History,
        projection: J,
    ) -> SpoolConsumer {
        let project = move |bytes: &[u8], batch: &mut Batch| {
            let event =
                C::decode(bytes).map_err(|error| Rejection::new(format!("it cannot be decoded: {error}")))?;
            projection.project(&event, batch)
        };
        SpoolConsumer {
            spool: spool.handle.clone(),
            deliverer: Deliverer { history, project: Arc::new(project) },
            acknowledged: Mutex::default(),
            stats: Mutex::default(),
            readers: Vec::new(),
            waiting_since: Mutex::default(),
        }
    }

    /// The same consumer, which also hands the events to a reader, before it brings them into history. While history cannot
    /// be reached the reader gets the next page of events, and no further one.
    pub fn with_reader(mut self, reader: Arc<dyn EntryReader>) -> Self {
        self.readers.push(reader);
        self
    }

    /// What else the events feed.
    pub fn readers(&self) -> &[Arc<dyn EntryReader>] {
        &self.readers
    }

    /// Counters, and how far it is behind. `oldest_age` is the time since the spool was empty last.
    pub fn stats(&self) -> ConsumerStats {
        let lag_entries = self.spool.stats().waiting;
        let since = self.waiting_since.lock().filter(|_| lag_entries > 0);
        let oldest_age = since.map_or(std::time::Duration::ZERO, |since| since.elapsed());
        ConsumerStats {
            log: "spool".into(),
            is_holder: true,
            lag_entries,
            oldest_age,
            ..self.stats.lock().clone()
        }
    }

    /// Events that wait, and when the oldest of them happened, by its projection.
    pub fn waiting(&self) -> Result<(u64, Option<Timestamp>)> {
        let page = self.spool.page()?;
        let first = page.as_ref().and_then(|page| page.events.first()).map(entry_of);
        let oldest = first.and_then(|first| self.deliverer.time_of(&first));
        Ok((self.spool.stats().waiting, oldest))
    }

    /// Delivers until `stop` is ready, or the spool or history is closed.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        tokio::select! {
            biased;
            () = &mut stop => {}
            () = self.work() => {}
        }
    }

    /// Delivers what is in the spool now. Returns how many events.
    pub async fn drain_once(&self) -> Result<usize> {
        let mut delivered = 0;
        while let Some(Delivered { entries, .. }) = self.round().await? {
            delivered += entries;
        }
        Ok(delivered)
    }

    async fn work(&self) {
        let mut backoff = Backoff::new(DRAIN_PAUSE_MIN, DRAIN_PAUSE_MAX);
        loop {
            match self.drain_once().await {
                Ok(_) => {
                    backoff.reset();
                    self.stats.lock().last_error = None;
                    let _ = timeout(DRAIN_POLL_EVERY, self.spool.recorded.notified()).await;
                }
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "the spool waits");
                    {
                        let mut stats = self.stats.lock();
                        stats.errors += 1;
                        stats.last_error = Some(error.to_string());
                    }
                    backoff.wait().await;
                }
            }
        }
    }

    /// Delivers the next page. `None` = nothing waits.
    async fn round(&self) -> Result<Option<Delivered>> {
        // One page at a time, also if the spool has several consumers: an acknowledgement is of the first page.
        let _alone = self.spool.delivering.lock().await;
        let Some(page) = self.spool.page()? else {
            *self.waiting_since.lock() = None;
            return Ok(None);
        };
        self.waiting_since.lock().get_or_insert_with(Instant::now);
        let log = format!("{SPOOL_LOGS}{}", page.source);
        let state = self.state(&page.source, &log).await?;
        let last = page.events.last().map_or(0, |(position, _)| *position);
        if state.as_ref().is_some_and(|state| state.sequence >= last) {
            // Delivered by a process that was killed before it removed the segment, or by a copy of the folder.
            self.spool.acknowledge(&page)?;
            return Ok(Some(Delivered::default()));
        }
        for reader in &self.readers {
            let applied = reader.apply(&log, &page.events).await;
            applied.map_err(|error| Error::Unavailable {
                backend: "hot state, which the spool feeds".into(),
                reason: error.to_string(),
            })?;
        }
        let delivered = self.deliver(&log, &page).await?;
        let next = LogState { incarnation: page.source.clone(), sequence: last, mark: String::new() };
        if self.deliverer.history.advance(&log, state, next.clone()).await? {
            *self.acknowledged.lock() = Some((page.source.clone(), Some(next)));
        } else {
            // A copy of the folder delivers the same events.
            *self.acknowledged.lock() = None;
        }
        // The segment is the only other copy of these events.
        self.deliverer.history.sync().await?;
        self.spool.acknowledge(&page)?;
        let mut stats = self.stats.lock();
        stats.delivered += delivered.entries as u64;
        stats.dead_letters += delivered.dead_letters as u64;
        Ok(Some(delivered))
    }

    async fn deliver(&self, log: &str, page: &Page) -> Result<Delivered> {
        let entries: Vec<_> = page.events.iter().map(entry_of).collect();
        let source = Source::of_log("spool", &page.source, "");
        self.deliverer.deliver(log, &page.source, &source, &entries).await
    }

    /// What history has acknowledged of a source. It is read once for each.
    async fn state(&self, source: &str, log: &str) -> Result<Option<LogState>> {
        let cached = self.acknowledged.lock().clone();
        if let Some((_, state)) = cached.filter(|(of, _)| of == source) {
            return Ok(state);
        }
        let state = self.deliverer.history.acknowledged(log).await?;
        *self.acknowledged.lock() = Some((source.to_owned(), state.clone()));
        Ok(state)
    }
}

fn entry_of((position, event): &(u64, bytes::Bytes)) -> Entry {
    Entry { sequence: *position, position: *position, mark: 0, event: Ok(event.clone()) }
}
