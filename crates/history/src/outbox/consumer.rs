//! The consumer of an outbox: reads, delivers, acknowledges, trims.
//!
//! Budget: one page of the log at a time, [`DRAIN_PAGE_ENTRIES`]; a pass after each message of the log and every
//! [`DRAIN_POLL_EVERY`] without one. A consumer without the lease asks for it every [`LEASE_POLL_EVERY`]. While a store
//! is unavailable it tries again with growing pauses. Stop condition: the caller's, or a store that was closed. It can
//! be dropped at any point: what is not acknowledged is delivered again.

use super::claims;
use super::error::DrainError;
use super::lag::{ConsumerStats, Lag, LogLag};
use super::log::{OutboxLog, TypedLog};
use super::plan::{self, Claim, Run};
use crate::contract::{Pending, Source};
use crate::delivery::{Batch, Delivered, Deliverer, Entry, Projection, Rejection};
use crate::error::{Error, Result};
use crate::history::History;
use crate::limits::{
    DRAIN_PAGE_ENTRIES, DRAIN_PAUSE_MAX, DRAIN_PAUSE_MIN, DRAIN_POLL_EVERY, INCARNATION_BYTES_MAX,
    LEASE_POLL_EVERY, LEASE_TTL, SOURCE_BYTES_MAX,
};
use crate::logs::LogState;
use crate::validate;
use emberkeep_hot::Scope;
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::store::LogPosition;
use emberkeep_primitives::lease::{Acquisition, LeaseRecord};
use emberkeep_primitives::log_feed::LogReader;
use emberkeep_schema::{Codec, Family, Json, Key, Log, Partition, Persistent, RefuseAbove, Text};
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Drains one log into history. Many consumers of a log may run; the one with the lease works.
pub struct Consumer {
    log: Arc<dyn OutboxLog>,
    /// Partition and key.
    name: String,
    deliverer: Deliverer,
    poll_every: Duration,
    lag: Lag,
    /// Other readers of the log. Nothing is trimmed that they have not read.
    readers: Vec<Arc<dyn LogReader>>,
    /// What may append to the log before each pass.
    filler: Option<Arc<Filler>>,
    /// Its name as a holder of the lease.
    holder: String,
    lease: Mutex<LeaseState>,
}

#[derive(Default)]
struct LeaseState {
    /// Epoch of the lease, and when it was granted.
    held: Option<(i64, Instant)>,
    /// The consumer before may have acknowledged entries and not trimmed them.
    is_trimmed: bool,
    /// The position for which a set-back was reported.
    reported: Option<LogState>,
}

/// Appends to a log what it is to carry.
type Filler = dyn Fn() -> Pending<'static, Result<(), DrainError>> + Send + Sync;

/// What a pass over the log did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Entries that were delivered, dead letters included. An entry that came again is counted again.
    pub delivered: usize,
    /// Entries that became dead letters.
    pub dead_letters: usize,
}

/// The entries after the acknowledged position.
struct Waiting {
    entries: Vec<Entry>,
    last: u64,
    /// The acknowledged entry is not in the log: all of the log waits.
    is_set_back: bool,
}

impl Consumer {
    /// A consumer of a log. The log must refuse entries when it is full, so that none is dropped before it is in
    /// history: one that keeps the newest entries does not compile as an outbox.
    ///
    /// `lease` is a key of the same partition, so that one of several processes drains the log.
    ///
    /// ```compile_fail
    /// # use emberkeep_history::{*, outbox::Consumer};
    /// # use emberkeep_primitives::lease::LeaseRecord;
    /// # use emberkeep_schema::*;
    /// # partition! { /// A world.
    /// # pub struct World = "world"; }
    /// # family! { /// The lease.
    /// # pub LEASE = "lease" { kind: Text<Json<LeaseRecord>>, partition: World, parts: (), ttl: persistent, owner: "test" } }
    /// family! {
    ///     /// The newest events.
    ///     pub EVENTS = "log:events" {
    ///         kind: Log<Utf8, Newest<100>>, partition: World, parts: (), ttl: persistent, owner: "test"
    ///     }
    /// }
    /// fn drain(scope: &emberkeep_hot::Scope<World>, history: History) {
    ///     let project = |_: &String, _: &mut Batch| Ok(());
    ///     let _ = Consumer::new(scope, EVENTS.key(), LEASE.key(), history, project);
    /// }
    /// ```
    pub fn new<P, F, L, C, J, const MAX: usize>(
        scope: &Scope<P>,
        log: Key<F>,
        lease: Key<L>,
        history: History,
        projection: J,
    ) -> Result<Consumer, DrainError>
    where
        P: Partition,
        F: Family<Partition = P, Kind = Log<C, RefuseAbove<MAX>>>,
        L: Family<Partition = P, Kind = Text<Json<LeaseRecord>>, Ttl = Persistent>,
        C: Codec,
        J: Projection<C::Value>,
    {
        let log: Arc<dyn OutboxLog> = Arc::new(TypedLog::new(scope, log, lease)?);
        let (partition, key) = log.name();
        let name = format!("{partition}/{key}");
        let bytes_max = SOURCE_BYTES_MAX - INCARNATION_BYTES_MAX - 1;
        validate::limit(format!("the name of the log {name}"), name.len(), "bytes", bytes_max)?;
        let project = move |bytes: &[u8], batch: &mut Batch| {
            let event =
                C::decode(bytes).map_err(|error| Rejection::new(format!("it cannot be decoded: {error}")))?;
            projection.project(&event, batch)
        };
        let lag = Lag::default();
        lag.update(|stats| stats.log = name.clone());
        Ok(Consumer {
            log,
            name,
            deliverer: Deliverer { history, project: Arc::new(project) },
            poll_every: DRAIN_POLL_EVERY,
            lag,
            readers: Vec::new(),
            filler: None,
            holder: uuid::Uuid::new_v4().to_string(),
            lease: Mutex::default(),
        })
    }

    /// The same consumer, which reads the log after this time without a message. A message may be lost.
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll_every = interval;
        self
    }

    /// The same consumer, beside which another reader follows the log: it runs with the consumer, and goes on while history
    /// cannot be reached. Nothing is trimmed that it has not read.
    pub fn with_reader(mut self, reader: Arc<dyn LogReader>) -> Self {
        self.readers.push(reader);
        self
    }

    /// The same consumer, which calls this before each pass: it may append to the log. Only the consumer that has the lease
    /// does. An error ends the pass, and is tried again. Passes then follow each other at the poll interval, and not at
    /// messages.
    pub fn filled_by(
        mut self,
        fill: impl Fn() -> Pending<'static, Result<(), DrainError>> + Send + Sync + 'static,
    ) -> Self {
        self.filler = Some(Arc::new(fill));
        self
    }

    /// The other readers of the log.
    pub fn readers(&self) -> &[Arc<dyn LogReader>] {
        &self.readers
    }

    /// The log: partition and key, as in [`DeadLetter::log`](crate::DeadLetter).
    pub fn log(&self) -> &str {
        &self.name
    }

    /// Counters, and how far it is behind.
    pub fn stats(&self) -> ConsumerStats {
        let is_holder = self.lease.lock().held.is_some();
        ConsumerStats { is_holder, ..self.lag.stats() }
    }

    /// What waits in the log now. It reads both stores and changes neither, so it needs no lease.
    pub async fn lag(&self) -> Result<LogLag, DrainError> {
        let state = self.deliverer.history.acknowledged(&self.name).await?;
        let Waiting { entries, last, is_set_back } = self.waiting(state.as_ref()).await?;
        let waiting = entries.first().map_or(0, |first| last + 1 - first.sequence);
        let oldest = entries.first().and_then(|first| self.deliverer.time_of(first));
        Ok(LogLag { log: self.name.clone(), entries: waiting, oldest, is_set_back })
    }

    pub(super) fn count_restart(&self) {
        self.lag.update(|stats| stats.restarts += 1);
    }

    /// Drains the log until `stop` is ready or a store is closed, and releases the lease.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        tokio::select! {
            biased;
            () = &mut stop => {}
            () = async { tokio::join!(self.work(), join_all(self.readers.iter().map(|reader| reader.follow()))); } => {}
        }
        self.release().await;
    }

    /// Drains what is in the log now, for its other readers too, and releases the lease. `None` = another consumer has the lease.
    pub async fn drain_once(&self) -> Result<Option<Drained>, DrainError> {
        for reader in &self.readers {
            if let Err(error) = reader.feed_once().await {
                tracing::warn!(log = %self.name, %error, "a reader of an outbox failed");
            }
        }
        let drained = self.drain().await;
        self.release().await;
        drained
    }

    async fn work(&self) {
        let (mut messages, mut pause) = (None, DRAIN_PAUSE_MIN);
        loop {
            if messages.is_none() {
                // Before the log is read, so that no entry comes between. Without messages it polls.
                messages = self.log.subscribe().await.ok();
            }
            // A message from before this pass tells nothing new.
            while messages.as_mut().is_some_and(|messages| messages.try_next().is_some()) {}
            match self.drain().await {
                Ok(drained) => {
                    pause = DRAIN_PAUSE_MIN;
                    self.lag.update(|stats| stats.last_error = None);
                    match drained {
                        Some(_) if self.filler.is_some() => sleep(self.poll_every).await,
                        Some(_) => wait(&mut messages, self.poll_every).await,
                        None => sleep(LEASE_POLL_EVERY).await,
                    }
                }
                Err(error) if error.is_closed() => return,
                Err(error) => {
                    self.report(&error).await;
                    // With jitter, so that many consumers do not come back to a store at once.
                    sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                    pause = (2 * pause).min(DRAIN_PAUSE_MAX);
                }
            }
        }
    }

    /// The entries wait meanwhile, and how many of them must be visible.
    async fn report(&self, error: &DrainError) {
        if error.is_transient() {
            tracing::warn!(log = %self.name, %error, "the outbox waits");
        } else {
            tracing::error!(log = %self.name, %error, "the outbox cannot be drained");
        }
        self.lag.update(|stats| {
            stats.errors += 1;
            stats.last_error = Some(error.to_string());
        });
        let read = async {
            let log = self.log.page(0, 1).await.ok()?;
            let first = log.entries.first().map_or(log.last + 1, |first| first.sequence);
            // Without an answer of history all of the log waits, and at most one entry of it does not: a trim leaves it.
            let before = match self.deliverer.history.acknowledged(&self.name).await {
                Ok(state) => state.map_or(0, |state| state.sequence).max(first - 1),
                Err(_) => first - 1,
            };
            Some((log.last, log.last.saturating_sub(before)))
        };
        if let Ok(Some((last, waiting))) = timeout(DRAIN_PAUSE_MAX, read).await {
            self.lag.observe(last, waiting);
        }
    }

    /// Rounds until the log has nothing new. `None` = another consumer has the lease.
    async fn drain(&self) -> Result<Option<Drained>, DrainError> {
        let mut drained = Drained::default();
        if let Some(fill) = &self.filler
            && self.hold_lease().await?.is_some()
        {
            fill().await?;
        }
        while let Some(epoch) = self.hold_lease().await? {
            match self.round(epoch).await? {
                Some(Delivered { entries, dead_letters }) => {
                    drained.delivered += entries;
                    drained.dead_letters += dead_letters;
                }
                None => return Ok(Some(drained)),
            }
        }
        Ok(None)
    }

    /// Epoch of the lease, acquired or renewed in time. `None` = another consumer has it.
    async fn hold_lease(&self) -> Result<Option<i64>, DrainError> {
        let held = self.lease.lock().held;
        if let Some((epoch, since)) = held
            && since.elapsed() < LEASE_TTL / 3
        {
            return Ok(Some(epoch));
        }
        let before = Instant::now();
        let acquired = self.log.acquire(&self.holder).await?;
        let mut lease = self.lease.lock();
        match acquired {
            Acquisition::Granted { epoch, .. } => {
                lease.is_trimmed &= held.is_some();
                lease.held = Some((epoch, before));
                Ok(Some(epoch))
            }
            Acquisition::Held { .. } => {
                lease.held = None;
                // The consumer that has the lease knows how far behind it is.
                self.lag.clear();
                Ok(None)
            }
        }
    }

    async fn release(&self) {
        let held = self.lease.lock().held.take();
        if let Some((epoch, _)) = held
            && let Ok(Err(error)) = timeout(LEASE_TTL, self.log.release(epoch)).await
        {
            tracing::debug!(log = %self.name, %error, "the lease of an outbox ends by time");
        }
    }

    /// Delivers the next run of entries. `None` = nothing waits.
    async fn round(&self, epoch: i64) -> Result<Option<Delivered>, DrainError> {
        let history = &self.deliverer.history;
        let state = history.acknowledged(&self.name).await?;
        let waiting = self.waiting(state.as_ref()).await?;
        let Waiting { entries, is_set_back, .. } = &waiting;
        self.lag.observe(waiting.last, entries.first().map_or(0, |first| waiting.last + 1 - first.sequence));
        if *is_set_back {
            self.report_set_back(state.as_ref(), waiting.last);
        }
        let present = match &state {
            Some(state) if !is_set_back => state.incarnation.as_str(),
            _ => "",
        };
        let Some(first) = entries.first() else {
            if let Some(state) = state.filter(|_| !is_set_back) {
                self.trim_once(&state, epoch).await?;
            }
            return Ok(None);
        };
        let run = self.claimed_run(present, entries).await?;
        let part = &entries[..run.len];
        let last = part.last().unwrap_or(first);
        let (partition, key) = self.log.name();
        let source = Source::of_log(partition, key, &run.incarnation);
        let delivered = self.deliverer.deliver(&self.name, &run.incarnation, &source, part).await;
        let (delivered, next) = match delivered {
            Ok(delivered) => (delivered, position(run.next, last)),
            // An incarnation that ended long ago: what it had claimed was stored before it was closed.
            Err(Error::SourceClosed { .. }) if run.next.is_empty() => {
                (Delivered::default(), position(run.next, last))
            }
            Err(Error::SourceClosed { name, .. }) => {
                self.alarm();
                tracing::error!(log = %self.name, source = name, "the source of an outbox was closed; it takes a new one");
                let state = state.clone().unwrap_or(LogState {
                    incarnation: String::new(),
                    sequence: 0,
                    mark: String::new(),
                });
                (Delivered::default(), LogState { incarnation: plan::closed(&run.incarnation), ..state })
            }
            Err(error) => return Err(error.into()),
        };
        let position =
            LogPosition { sequence: next.sequence, mark: u32::from_str_radix(&next.mark, 16).ok() };
        if !history.advance(&self.name, state, next).await? {
            // Another consumer, paused or in another process, was here first. All of it was idempotent.
            return Ok(Some(Delivered::default()));
        }
        self.lag.observe(waiting.last, waiting.last - position.sequence.min(waiting.last));
        self.lag.update(|stats| {
            stats.delivered += delivered.entries as u64;
            stats.dead_letters += delivered.dead_letters as u64;
        });
        // What is not an entry cannot be compared; the next trim removes it.
        if last.event.is_ok() {
            // The log is the only other copy of these events, and its trim may reach the disk first.
            history.sync().await?;
            self.trim(position, epoch).await?;
        }
        Ok(Some(delivered))
    }

    /// Reads the log from the acknowledged entry on, which must be there: a trim leaves it.
    async fn waiting(&self, state: Option<&LogState>) -> Result<Waiting, DrainError> {
        if let Some(state) = state.filter(|state| state.sequence > 0) {
            let page = self.log.page(state.sequence - 1, DRAIN_PAGE_ENTRIES + 1).await?;
            let mut entries = page.entries.into_iter();
            let stands = |entry: Entry| entry.sequence == state.sequence && mark_text(&entry) == state.mark;
            if entries.next().is_some_and(stands) {
                return Ok(Waiting { entries: entries.collect(), last: page.last, is_set_back: false });
            }
        }
        let page = self.log.page(0, DRAIN_PAGE_ENTRIES).await?;
        let is_set_back = state.is_some_and(|state| state.sequence > 0);
        Ok(Waiting { entries: page.entries, last: page.last, is_set_back })
    }

    /// The next run, with its entries claimed.
    async fn claimed_run(&self, present: &str, entries: &[Entry]) -> Result<Run> {
        let history = &self.deliverer.history;
        let (first, last) = (entries[0].sequence, entries[entries.len() - 1].sequence);
        let mut found = claims::overlapping(history, &self.name, first, last).await?;
        // Each claim that another consumer wins rules out one plan, and there are three.
        for _ in 0..4 {
            let run = plan::first_run(present, entries, &found);
            if !run.is_new {
                return Ok(run);
            }
            let marks = entries[..run.len].iter().map(|entry| entry.mark).collect();
            let claim = Claim { incarnation: run.incarnation.clone(), first, marks };
            match claims::claim(history, &self.name, &claim).await? {
                None => return Ok(run),
                Some(other) => found.push(other),
            }
        }
        Err(Error::Internal { reason: format!("the claims of {} contradict each other", self.name) })
    }

    fn alarm(&self) {
        self.lag.update(|stats| stats.alarms += 1);
    }

    /// Once for each position that is not in the log.
    fn report_set_back(&self, state: Option<&LogState>, last: u64) {
        let mut lease = self.lease.lock();
        if lease.reported.as_ref() != state {
            lease.reported = state.cloned();
            drop(lease);
            self.alarm();
            let drained = state.map_or(0, |state| state.sequence);
            tracing::error!(
                log = %self.name, drained, last,
                "the outbox was set back: the last entry that is in history is not in the log; a failover, a restore or a removal lost entries"
            );
        }
    }

    async fn trim_once(&self, state: &LogState, epoch: i64) -> Result<(), DrainError> {
        let mark = u32::from_str_radix(&state.mark, 16).ok();
        let is_trimmed = self.lease.lock().is_trimmed;
        if !is_trimmed {
            self.trim(LogPosition { sequence: state.sequence, mark }, epoch).await?;
        }
        Ok(())
    }

    /// Trims what history and all other readers have read.
    async fn trim(&self, through: LogPosition, epoch: i64) -> Result<(), DrainError> {
        let mut positions = vec![through];
        for reader in &self.readers {
            positions.push(reader.position().await?);
        }
        let is_complete = positions.iter().all(|position| position.sequence >= through.sequence);
        let is_held = self.log.trim(positions, epoch).await?;
        let mut lease = self.lease.lock();
        lease.is_trimmed = is_held && is_complete;
        if !is_held {
            lease.held = None;
        }
        Ok(())
    }
}

/// Waits for a message of the log, at most for an interval.
async fn wait(messages: &mut Option<Subscription>, at_most: Duration) {
    let Some(next) = messages.as_mut().map(Subscription::next) else { return sleep(at_most).await };
    if let Ok(None) = timeout(at_most, next).await {
        // The store was closed, or the subscription ended: the next pass tells.
        *messages = None;
    }
}

fn mark_text(entry: &Entry) -> String {
    format!("{:08x}", entry.mark)
}

fn position(incarnation: String, last: &Entry) -> LogState {
    LogState { incarnation, sequence: last.sequence, mark: mark_text(last) }
}
