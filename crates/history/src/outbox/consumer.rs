//! The consumer of an outbox: reads, delivers, acknowledges, trims.
//!
//! Budget: one page of the log at a time, [`DRAIN_PAGE_ENTRIES`]; a pass after each message of the log and every
//! [`DRAIN_POLL_EVERY`] without one. A consumer without the lease asks for it every [`LEASE_POLL_EVERY`]. While a store
//! is unavailable it tries again with growing pauses, or moves the entries into its spool. Stop condition: the caller's,
//! or a store that was closed. It can be dropped at any point: what is not acknowledged is delivered again.

use super::error::DrainError;
use super::lag::{Lag, LogLag};
use super::log::{Done, OutboxLog, TypedLog};
use super::relay::{self, Relay};
use crate::backoff::Backoff;
use crate::contract::Pending;
use crate::delivery::{Batch, ConsumerStats, Delivered, Deliverer, Projection, Rejection};
use crate::error::Result;
use crate::history::History;
use crate::limits::{
    DRAIN_PAGE_ENTRIES, DRAIN_PAUSE_MAX, DRAIN_PAUSE_MIN, DRAIN_POLL_EVERY, INCARNATION_BYTES_MAX,
    LEASE_POLL_EVERY, LEASE_TTL, SOURCE_BYTES_MAX, SPOOL_AFTER, SPOOL_BYTES_DEFAULT,
};
use crate::validate;
use emberkeep_hot::Scope;
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::store::LogPosition;
use emberkeep_primitives::lease::{Acquisition, LeaseRecord};
use emberkeep_primitives::log_feed::LogReader;
use emberkeep_schema::{Codec, Family, Json, Key, Log, Partition, Persistent, RefuseAbove, Text};
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

mod round;
pub(super) use round::mark_text;

/// Drains one log into history. Many consumers of a log may run; the one with the lease works.
pub struct Consumer {
    log: Arc<dyn OutboxLog>,
    /// The name of the log: its partition and key.
    name: String,
    deliverer: Deliverer,
    relay: Option<Relay>,
    spool_after: Duration,
    poll_every: Duration,
    lag: Lag,
    /// Other readers of the log. Nothing is trimmed that they have not read.
    readers: Vec<Arc<dyn LogReader>>,
    /// When one of them did not say how far it is.
    readers_failed_at: Mutex<Option<Instant>>,
    /// Entries of a page that is delivered directly: fewer while history is slow.
    page_entries: AtomicUsize,
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
    /// What the lease's record says of entries that are done.
    done: Option<Done>,
    /// The entry for which a set-back was reported.
    reported: Option<(u64, String)>,
}

/// Appends to a log what it is to carry.
type Filler = dyn Fn(bool) -> Pending<'static, Result<(), DrainError>> + Send + Sync;

/// What a pass over the log did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Entries that were delivered, dead letters included. An entry that came again is counted again.
    pub delivered: usize,
    /// Entries that became dead letters.
    pub dead_letters: usize,
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
            relay: None,
            spool_after: SPOOL_AFTER,
            poll_every: DRAIN_POLL_EVERY,
            lag,
            readers: Vec::new(),
            readers_failed_at: Mutex::default(),
            page_entries: AtomicUsize::new(DRAIN_PAGE_ENTRIES),
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
    /// does. It is told whether entries are in the spool of this consumer. An error ends the pass, and is tried again. Passes then follow each other at the poll interval, and not at
    /// messages.
    pub fn filled_by(
        mut self,
        fill: impl Fn(bool) -> Pending<'static, Result<(), DrainError>> + Send + Sync + 'static,
    ) -> Self {
        self.filler = Some(Arc::new(fill));
        self
    }

    /// The other readers of the log.
    pub fn readers(&self) -> &[Arc<dyn LogReader>] {
        &self.readers
    }

    /// The same consumer, which moves entries into a local spool while history is away, and delivers them from there: hot
    /// state holds seconds of events, not the outage. Every consumer needs a folder of its own; logs may share it.
    ///
    /// An entry that was moved is on disk in this folder and nowhere else. If its machine does not come back, a consumer
    /// with the folder, or a copy of it, delivers it on another one. A spool of `bytes_max` is full: then
    /// entries stay in the log, and a full log refuses its transactions.
    ///
    /// For stores that can be away. An embedded store is as near as the folder is.
    pub fn through_spool(mut self, folder: impl AsRef<Path>, bytes_max: u64) -> Result<Self> {
        self.relay = Some(Relay::open(folder.as_ref(), &self.name, bytes_max)?);
        Ok(self)
    }

    /// Looks into the spool that a former process left in a folder of spools: [`lag`](Self::lag) counts what is in it. `false` =
    /// there is none. A folder that a process uses is an error.
    pub fn open_left_spool(&mut self, folder: impl AsRef<Path>) -> Result<bool> {
        self.relay = Relay::open_left(folder.as_ref(), &self.name, SPOOL_BYTES_DEFAULT)?;
        Ok(self.relay.is_some())
    }

    /// The same consumer, which moves entries into its spool when history has been away for this time, or took it for a
    /// page.
    pub fn spool_after(mut self, away: Duration) -> Self {
        self.spool_after = away;
        self
    }

    /// The log: partition and key, as in [`DeadLetter::log`](crate::DeadLetter).
    pub fn log(&self) -> &str {
        &self.name
    }

    /// Counters, and how far it is behind.
    pub fn stats(&self) -> ConsumerStats {
        let is_holder = self.lease.lock().held.is_some();
        let (mut stats, usage) = (self.lag.stats(), self.relay.as_ref().map(Relay::usage));
        if let Some((entries, bytes, age)) = usage {
            (stats.spooled_entries, stats.spool_bytes) = (entries, bytes);
            stats.lag_entries += entries;
            stats.oldest_age = stats.oldest_age.max(age);
        }
        ConsumerStats { is_holder, ..stats }
    }

    /// What waits in the log and in the spool now. It reads both stores and changes neither, so it needs no lease.
    pub async fn lag(&self) -> Result<LogLag, DrainError> {
        let state = self.deliverer.history.acknowledged(&self.name).await?;
        let waiting = self.waiting(state.as_ref(), self.log.done().await?).await?;
        let spooled = self.relay.as_ref().map_or(0, |relay| relay.usage().0);
        let oldest = waiting.entries.first().and_then(|first| self.deliverer.time_of(first));
        let in_spool = self.relay.as_ref().map(|relay| relay.oldest(&self.deliverer)).transpose()?.flatten();
        let oldest = oldest.into_iter().chain(in_spool).min();
        let is_set_back = waiting.set_back.is_some();
        Ok(LogLag { log: self.name.clone(), entries: waiting.count() + spooled, oldest, is_set_back })
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

    /// Drains what is in the spool and in the log now, for its other readers too, and releases the lease. `None` = another
    /// consumer has the lease.
    pub async fn drain_once(&self) -> Result<Option<Drained>, DrainError> {
        for reader in &self.readers {
            if let Err(error) = reader.feed_once().await {
                tracing::warn!(log = %self.name, %error, "a reader of an outbox failed");
            }
        }
        let spooled = self.deliver_spool().await?;
        let drained = self.drain().await;
        self.release().await;
        let later = self.deliver_spool().await?;
        let add = |drained: Drained| Drained {
            delivered: drained.delivered + spooled.delivered + later.delivered,
            dead_letters: drained.dead_letters + spooled.dead_letters + later.dead_letters,
        };
        Ok(drained?.map(add))
    }

    async fn work(&self) {
        tokio::select! {
            () = self.work_on_log() => {}
            () = self.work_on_spool() => {}
        }
    }

    async fn work_on_spool(&self) {
        let Some(relay) = &self.relay else { return std::future::pending().await };
        let mut backoff = Backoff::new(DRAIN_PAUSE_MIN, DRAIN_PAUSE_MAX);
        loop {
            match self.deliver_spool().await {
                Ok(_) => {
                    backoff.reset();
                    let _ = timeout(self.poll_every, relay.stored()).await;
                }
                Err(error) if error.is_closed() => return,
                Err(error) => {
                    tracing::warn!(log = %self.name, %error, "the spool of an outbox waits");
                    self.count_error(&error);
                    backoff.wait().await;
                }
            }
        }
    }

    /// Delivers what is in the spool.
    async fn deliver_spool(&self) -> Result<Drained, DrainError> {
        let (Some(relay), (partition, key)) = (&self.relay, self.log.name()) else {
            return Ok(Drained::default());
        };
        let log = relay::Log { deliverer: &self.deliverer, name: &self.name, partition, key };
        let mut drained = Drained::default();
        while let Some(delivered) = relay.deliver(&log).await? {
            relay.history_answered();
            drained.delivered += delivered.entries;
            drained.dead_letters += delivered.dead_letters;
            self.count_delivered(delivered);
        }
        Ok(drained)
    }

    fn count_delivered(&self, delivered: Delivered) {
        self.lag.update(|stats| {
            stats.delivered += delivered.entries as u64;
            stats.dead_letters += delivered.dead_letters as u64;
            stats.alarms += delivered.overwritten as u64;
        });
        if delivered.overwritten > 0 {
            tracing::error!(
                log = %self.name, entries = delivered.overwritten,
                "an external client overwrote entries of the outbox; they are dead letters, and what they said is lost"
            );
        }
    }

    fn count_error(&self, error: &DrainError) {
        self.lag.update(|stats| {
            stats.errors += 1;
            stats.last_error = Some(error.to_string());
        });
    }

    async fn work_on_log(&self) {
        let (mut messages, mut backoff) = (None, Backoff::new(DRAIN_PAUSE_MIN, DRAIN_PAUSE_MAX));
        loop {
            if messages.is_none() {
                // Before the log is read, so that no entry comes between. Without messages it polls.
                messages = self.log.subscribe().await.ok();
            }
            // A message from before this pass tells nothing new.
            while messages.as_mut().is_some_and(|messages| messages.try_next().is_some()) {}
            match self.drain().await {
                Ok(drained) => {
                    backoff.reset();
                    if self.relay.as_ref().is_none_or(|relay| !relay.is_used()) {
                        self.lag.update(|stats| stats.last_error = None);
                    }
                    match drained {
                        Some(_) if self.filler.is_some() => sleep(self.poll_every).await,
                        Some(_) => wait(&mut messages, self.poll_every).await,
                        None => sleep(LEASE_POLL_EVERY).await,
                    }
                }
                Err(error) if error.is_closed() => return,
                Err(error) => {
                    self.report(&error).await;
                    backoff.wait().await;
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
        self.count_error(error);
        let read = async {
            let log = self.log.page(LogPosition::START, 1).await.ok()?;
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
            fill(self.relay.as_ref().is_some_and(Relay::is_used)).await?;
        }
        while let Some(epoch) = self.hold_lease().await? {
            match self.pass(epoch).await? {
                Some(Delivered { entries, dead_letters, .. }) => {
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
        let (acquired, done) = self.log.acquire(&self.holder).await?;
        let mut lease = self.lease.lock();
        match acquired {
            Acquisition::Granted { epoch, .. } => {
                lease.is_trimmed &= held.is_some();
                lease.done = done;
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
}

/// Waits for a message of the log, at most for an interval.
async fn wait(messages: &mut Option<Subscription>, at_most: Duration) {
    let Some(next) = messages.as_mut().map(Subscription::next) else { return sleep(at_most).await };
    if let Ok(None) = timeout(at_most, next).await {
        // The store was closed, or the subscription ended: the next pass tells.
        *messages = None;
    }
}
