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

/// Entries up to this one are in history or in a spool. It stands in the lease's record and changes with the trim. Until all
/// readers of the log have read as far, entries before it are in the log too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) sequence: u64,
    pub(super) mark: u32,
    /// Some entries of this log were moved into spools.
    pub(super) is_spooled: bool,
}

impl Done {
    fn to_note(self) -> String {
        let spooled = if self.is_spooled { SPOOLED } else { "" };
        format!("{}-{:08x}{spooled}", self.sequence, self.mark)
    }

    /// A note that is none of ours is as good as none.
    fn of_note(note: &str) -> Option<Done> {
        let (text, is_spooled) = note.strip_suffix(SPOOLED).map_or((note, false), |text| (text, true));
        let (sequence, mark) = text.split_once('-')?;
        Some(Done { sequence: sequence.parse().ok()?, mark: u32::from_str_radix(mark, 16).ok()?, is_spooled })
    }
}

const SPOOLED: &str = " spooled";

/// The log, its lease and its messages.
pub(super) trait OutboxLog: Send + Sync {
    /// The partition and the key, as they stand in the names of sources.
    fn name(&self) -> (&str, &str);
    /// Entries after a position. None after one with a mark that is not in the log.
    fn page(&self, after: LogPosition, limit: usize) -> Pending<'_, Result<LogEntries>>;
    /// Notes an entry that is done for the next holder, and removes the entries before the lowest of it and the positions of
    /// readers, if all of these are there. `false` = the lease is not held. The note may be ahead of what was removed.
    fn trim(&self, done: Done, readers: Vec<LogPosition>, epoch: i64) -> Pending<'_, Result<bool>>;
    /// Acquires the lease, or renews it. With what the last holder noted.
    fn acquire<'a>(&'a self, holder: &'a str) -> Pending<'a, Result<(Acquisition, Option<Done>)>>;
    /// What the last holder noted.
    fn done(&self) -> Pending<'_, Result<Option<Done>>>;
    /// Ends the lease, if it still has this epoch, so that another consumer takes over at once.
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

    fn page(&self, after: LogPosition, limit: usize) -> Pending<'_, Result<LogEntries>> {
        Box::pin(async move {
            let page = self.scope.log_after_encoded(&self.log, after, limit).await?;
            let entries = page.entries.into_iter().map(entry_of).collect::<Result<_>>()?;
            Ok(LogEntries { entries, last: page.last })
        })
    }

    fn trim(&self, done: Done, readers: Vec<LogPosition>, epoch: i64) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let (log, lease) = (self.log.clone(), self.lease.clone());
            let mut positions = readers;
            positions.push(LogPosition { sequence: done.sequence, mark: Some(done.mark) });
            let trimmed = self.scope.transact_with(positions, move |tx, positions| {
                lease.leave_note(tx, epoch, &done.to_note())?;
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

    fn acquire<'a>(&'a self, holder: &'a str) -> Pending<'a, Result<(Acquisition, Option<Done>)>> {
        let (lease, holder) = (self.lease.clone(), holder.to_owned());
        let acquired = self.scope.transact(move |tx| Ok((lease.acquire(tx, &holder)?, lease.note(tx)?)));
        Box::pin(async move {
            let (acquisition, note) = acquired.await?;
            Ok((acquisition, note.as_deref().and_then(Done::of_note)))
        })
    }

    fn done(&self) -> Pending<'_, Result<Option<Done>>> {
        let lease = self.lease.clone();
        let read = self.scope.transact(move |tx| lease.note(tx));
        Box::pin(async move { Ok(read.await?.as_deref().and_then(Done::of_note)) })
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
        Some(mark) => Entry { sequence, position: sequence, mark, event: Ok(bytes) },
        None => Entry { sequence, position: sequence, mark: mark_of_bytes(&bytes), event: Err(bytes) },
    })
}
