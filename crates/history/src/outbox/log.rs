//! The log of an outbox without its types: what the consumer does in hot state.

use super::error::DrainError;
use super::plan::mark_of_bytes;
use crate::contract::Pending;
use crate::delivery::Entry;
use crate::limits::LEASE_TTL;
use bytes::Bytes;
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::store::{LogEntry, LogPosition};
use emberkeep_hot::{Result, Scope};
use emberkeep_primitives::lease::{Acquisition, Lease, LeaseError, LeaseRecord};
use emberkeep_schema::{
    Codec, Family, Json, Key, KeyLayout, Log, Partition, Persistent, RefuseAbove, Text, Topology,
};

/// A page of the log.
pub(super) struct LogEntries {
    pub(super) entries: Vec<Entry>,
    /// The newest sequence of the log; 0 = there is no log.
    pub(super) last: u64,
}

/// The log, its lease and its messages.
pub(super) trait OutboxLog: Send + Sync {
    /// The partition and the key, as they stand in the names of sources.
    fn name(&self) -> (&str, &str);
    /// Entries after a sequence.
    fn page(&self, after: u64, limit: usize) -> Pending<'_, Result<LogEntries>>;
    /// Removes the entries before the lowest position, if the entries of all positions are there and the lease is held.
    /// `false` = it is not held.
    fn trim(&self, positions: Vec<LogPosition>, epoch: i64) -> Pending<'_, Result<bool>>;
    /// Acquires the lease, or renews it.
    fn acquire<'a>(&'a self, holder: &'a str) -> Pending<'a, Result<Acquisition>>;
    /// Ends the lease.
    fn release(&self, epoch: i64) -> Pending<'_, Result<()>>;
    /// The messages of the log.
    fn subscribe(&self) -> Pending<'_, Result<Subscription>>;
}

/// A log of declared type.
pub(super) struct TypedLog<F: Family, L: Family> {
    scope: Scope<F::Partition>,
    log: Key<F>,
    lease: Lease<L>,
    partition: String,
    key: String,
}

impl<P, F, L> TypedLog<F, L>
where
    P: Partition,
    F: Family<Partition = P>,
    L: Family<Partition = P, Kind = Text<Json<LeaseRecord>>, Ttl = Persistent>,
{
    pub(super) fn new(scope: &Scope<P>, log: Key<F>, lease: Key<L>) -> Result<TypedLog<F, L>, DrainError> {
        // The name of a log stays when it moves from one server to a Cluster.
        let prefix = scope.store().key_layout().prefix();
        let layout = KeyLayout::new(prefix, Topology::Single).unwrap_or_default();
        let mut partition = Vec::new();
        scope.partition().write(&mut partition);
        Ok(TypedLog {
            key: log.to_text(&layout, scope.partition()),
            partition: String::from_utf8_lossy(&partition).into_owned(),
            lease: Lease::new(lease, LEASE_TTL)?,
            scope: scope.clone().named("history.drain"),
            log,
        })
    }
}

impl<P, F, L, C, const MAX: usize> OutboxLog for TypedLog<F, L>
where
    P: Partition,
    F: Family<Partition = P, Kind = Log<C, RefuseAbove<MAX>>>,
    L: Family<Partition = P, Kind = Text<Json<LeaseRecord>>, Ttl = Persistent>,
    C: Codec,
{
    fn name(&self) -> (&str, &str) {
        (&self.partition, &self.key)
    }

    fn page(&self, after: u64, limit: usize) -> Pending<'_, Result<LogEntries>> {
        Box::pin(async move {
            let page = self.scope.log_after_encoded(&self.log, after, limit).await?;
            let entries = page.entries.into_iter().map(entry_of).collect::<Result<_>>()?;
            Ok(LogEntries { entries, last: page.last })
        })
    }

    fn trim(&self, positions: Vec<LogPosition>, epoch: i64) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let (log, lease) = (self.log.clone(), self.lease.clone());
            let trimmed = self.scope.transact_with(positions, move |tx, positions| {
                lease.check(tx, epoch)?;
                let lowest = positions.iter().min_by_key(|position| position.sequence).copied();
                let Some(lowest) = lowest.filter(|lowest| lowest.sequence > 0) else { return Ok(()) };
                // A reader that has not noticed yet that the log was set back stands at an entry that is not in it.
                for other in positions.iter().filter(|other| **other != lowest) {
                    if tx.log_after_encoded(&log, *other, 1)?.is_reset {
                        return Ok(());
                    }
                }
                tx.log_trim(&log, lowest)?;
                Ok::<_, LeaseError>(())
            });
            match trimmed.await {
                Ok(()) => Ok(true),
                Err(LeaseError::Store(error)) => Err(error),
                Err(_) => Ok(false),
            }
        })
    }

    fn acquire<'a>(&'a self, holder: &'a str) -> Pending<'a, Result<Acquisition>> {
        let (lease, holder) = (self.lease.clone(), holder.to_owned());
        Box::pin(async move { self.scope.transact(move |tx| lease.acquire(tx, &holder)).await })
    }

    fn release(&self, epoch: i64) -> Pending<'_, Result<()>> {
        let lease = self.lease.clone();
        Box::pin(async move { self.scope.transact(move |tx| lease.release(tx, epoch)).await.map(drop) })
    }

    fn subscribe(&self) -> Pending<'_, Result<Subscription>> {
        let channel = self.log.to_text(self.scope.store().key_layout(), self.scope.partition());
        Box::pin(async move { self.scope.store().subscribe(vec![Bytes::from(channel)], vec![]).await })
    }
}

fn entry_of(LogEntry { sequence, mark, event }: LogEntry<Bytes>) -> Result<Entry> {
    let bytes = event?;
    Ok(match mark {
        Some(mark) => Entry { sequence, mark, event: Ok(bytes) },
        None => Entry { sequence, mark: mark_of_bytes(&bytes), event: Err(bytes) },
    })
}
