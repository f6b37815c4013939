//! A batch: the transactions of one commit, run speculatively on the read cache and on each other's writes.
//!
//! A transaction that finds all of its reads joins a group ([`groups`]). One that misses a read waits for the
//! call of this batch, which makes the read. One that must not share this commit is deferred to a later
//! batch.

mod group;
mod groups;
mod merge;

pub(crate) use group::Group;

use super::queued::{Combine, QueuedTransaction};
use crate::cache::{Fetches, Keys, ReadCache, Reads, Trace, View};
use crate::clock::{BodyTime, Clock};
use crate::limits::*;
use emberkeep_hot::command::*;
use emberkeep_hot::limits::BODY_WARN;
use groups::{Admission, Groups};
use std::time::{Duration, Instant};

/// A commit under construction.
pub(crate) struct Batch {
    groups: Groups,
    fetches: Fetches,
    /// The transactions that miss the fetches.
    waiting: Vec<QueuedTransaction>,
    /// Transactions for a later batch.
    deferred: Vec<QueuedTransaction>,
    /// What bodies were shown, if one asked for the time.
    time: Option<BodyTime>,
    started: Instant,
    /// When the last body ended and the next one began: one reading of the clock serves both.
    ran_until: Instant,
    /// That of the last transaction: one with a call of its own fills the batch.
    combine: Combine,
}

/// A batch that takes no more transactions.
pub(crate) struct ClosedBatch {
    pub(crate) groups: Vec<Group>,
    /// Reads that transactions still miss; made after the writes of the same call.
    pub(crate) fetches: Vec<(RawKey, Read)>,
    pub(crate) waiting: Vec<QueuedTransaction>,
    pub(crate) time: Option<BodyTime>,
}

impl Batch {
    /// A batch for about so many transactions.
    pub(crate) fn new(now: Instant, transactions: usize) -> Batch {
        Batch {
            groups: Groups::new(transactions),
            fetches: Fetches::default(),
            waiting: vec![],
            deferred: vec![],
            time: None,
            started: now,
            ran_until: now,
            combine: Combine::Freely,
        }
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.fetches.is_empty()
    }

    /// Whether a transaction is in it or waits for its call.
    fn is_begun(&self) -> bool {
        self.groups.transactions() + self.waiting.len() > 0
    }

    pub(crate) fn take_deferred(&mut self) -> Vec<QueuedTransaction> {
        std::mem::take(&mut self.deferred)
    }

    pub(crate) fn close(self) -> ClosedBatch {
        ClosedBatch {
            groups: self.groups.close(),
            fetches: self.fetches.into_iter().collect(),
            waiting: self.waiting,
            time: self.time,
        }
    }

    /// Runs a transaction on top of the batch. Afterwards it is in the batch, waits for a read, was deferred
    /// or is already answered. It is returned if the batch is full: then it belongs into the next one.
    pub(crate) fn admit(
        &mut self,
        mut transaction: QueuedTransaction,
        cache: &ReadCache,
        clock: &Clock,
    ) -> Option<QueuedTransaction> {
        if self.is_full_for(&transaction) {
            return Some(transaction);
        }
        transaction.pause_until(None);
        let is_blocked = |key| cache.is_in_flight_contended(key, self.started);
        if transaction.blocked_on().iter().any(is_blocked) {
            self.deferred.push(transaction);
            return None;
        }
        transaction.block_on(vec![]);
        self.combine = transaction.combine();
        self.reuse_time(&transaction, clock);
        if self.prefetch(&transaction, cache) {
            transaction.start_prefetch();
            self.waiting.push(transaction);
            return None;
        }
        let returned = self.run(transaction, cache, clock);
        if !self.is_begun() {
            // The transaction left the batch, so no body in it has been shown a time. The next one must not
            // get the time that this one reused.
            self.time = None;
        }
        returned
    }

    fn is_full_for(&self, transaction: &QueuedTransaction) -> bool {
        let is_apart = self.combine == Combine::OwnCall || transaction.combine() == Combine::OwnCall;
        self.groups.transactions() >= BATCH_TRANSACTIONS_MAX
            || self.fetches.len() >= BATCH_FETCHES_MAX
            || (self.is_begun() && is_apart)
    }

    fn run(
        &mut self,
        mut transaction: QueuedTransaction,
        cache: &ReadCache,
        clock: &Clock,
    ) -> Option<QueuedTransaction> {
        let mut view = View::new(cache, clock, self.groups.layers(), self.started, &mut self.time);
        let effects = transaction.run(&mut view);
        let Trace { reads, missing, layered, used_now } = view.into_trace();
        self.warn_of_slow_body(transaction.name());
        let time = self.time.filter(|_| used_now);
        if !missing.is_empty() {
            transaction.record_miss(time);
            self.fetch(reads, missing);
            self.waiting.push(transaction);
            return None;
        }
        transaction.record_hit();
        let is_read_only = effects.is_empty() && layered.is_empty();
        let is_at_its_time =
            |time: BodyTime| transaction.has_snapshot_at(time.estimate_ms, clock.allowance(Duration::ZERO));
        if is_read_only && time.is_none_or(is_at_its_time) && transaction.has_snapshot_of(&reads) {
            // Its reads, and the time if it used that, are of one moment: there is nothing to validate.
            transaction.finish();
            return None;
        }
        self.join(transaction, reads, layered, effects, cache)
    }

    /// Puts a transaction that found all of its reads into a group.
    fn join(
        &mut self,
        mut transaction: QueuedTransaction,
        reads: Reads,
        layered: Keys,
        effects: Effects,
        cache: &ReadCache,
    ) -> Option<QueuedTransaction> {
        let keys = keys_of(&reads, layered, &effects);
        let touched = self.groups.touched_by(&keys);
        if !self.groups.may_share(transaction.combine(), &keys, &touched, &effects.log)
            || self.must_wait(&mut transaction, &keys, &effects.log, cache)
        {
            let logs = effects.log.into_iter().map(|append| append.log);
            transaction.block_on(keys.into_iter().chain(logs).collect());
            self.deferred.push(transaction);
            return None;
        }
        match self.groups.add(transaction, keys, touched, reads, effects) {
            Admission::Added => None,
            Admission::Deferred(transaction) => {
                self.deferred.push(*transaction);
                None
            }
            Admission::Full(transaction) => Some(*transaction),
        }
    }

    /// Whether another process has the lease on a key or a log, or speculation on a commit in flight is useless.
    /// An entry of a log depends on no commit in flight, but if entries did not wait, one commit with entries would
    /// follow the other, and a transaction that reads the log would never run between them.
    fn must_wait(
        &self,
        transaction: &mut QueuedTransaction,
        keys: &Keys,
        appends: &[LogAppend],
        cache: &ReadCache,
    ) -> bool {
        if cache.is_uncontended(self.started) {
            return false;
        }
        let all = || keys.iter().chain(appends.iter().map(|append| &append.log));
        let leased_until = all().filter_map(|key| cache.leased_until(key, self.started)).max();
        transaction.pause_until(leased_until);
        leased_until.is_some() || all().any(|key| cache.is_in_flight_contended(key, self.started))
    }

    /// Shows a transaction the time of its last run again, while that is not too old. Transactions that
    /// follow one another still see time pass: this one began earlier.
    fn reuse_time(&mut self, transaction: &QueuedTransaction, clock: &Clock) {
        let age_max = (REUSED_TIME_AGE_MAX + clock.round_trip()).as_millis() as i64;
        let is_recent = |time: &BodyTime| clock.estimate_ms() - time.estimate_ms <= age_max;
        if let Some(time) = transaction.reused_time().filter(is_recent) {
            self.time = Some(time);
        }
    }

    fn warn_of_slow_body(&mut self, name: Option<&'static str>) {
        let now = Instant::now();
        let took = now - self.ran_until;
        self.ran_until = now;
        if took > BODY_WARN {
            tracing::warn!(
                name,
                ?took,
                "a transaction's body is slow and holds up the transactions of its partition"
            );
        }
    }

    /// Fetches the prefetched reads of a transaction that has not run yet. `false` = all of them are cached.
    fn prefetch(&mut self, transaction: &QueuedTransaction, cache: &ReadCache) -> bool {
        let reads = transaction.prefetched();
        if reads.iter().all(|(key, read)| cache.can_answer(key, &least_of(read), self.started)) {
            return false;
        }
        self.fetches.extend(reads.iter().cloned());
        true
    }

    /// Fetches all reads of the transaction so far and those that it misses: together they come from one
    /// moment.
    fn fetch(&mut self, reads: Reads, missing: Vec<(RawKey, Read)>) {
        self.fetches.extend(reads.into_keys());
        for (key, read) in missing {
            let takes = |write: &Write| matches!(write, Write::LPop(_) | Write::LTrim(1.., _));
            let is_shortened = self.groups.writes().get(&key).is_some_and(|writes| writes.iter().any(takes));
            self.fetches.insert((key, if is_shortened { from_head(read) } else { read }));
        }
    }
}

/// What must be cached of a prefetched read. The head of a list is prefetched for later transactions too: as
/// long as its first element is cached, a fetch is not worth a round trip.
fn least_of(read: &Read) -> Read {
    match read {
        Read::LRange(0, 1..) => Read::LRange(0, 0),
        read => read.clone(),
    }
}

/// The read to make of a list that transactions of this batch shorten. Fetches are made after their writes,
/// so the elements behind those that they take are at the head then.
fn from_head(read: Read) -> Read {
    match read {
        Read::LRange(0.., last @ 0..) if last < CACHE_LIST_HEAD_MAX as i64 => Read::LRange(0, last),
        read => read,
    }
}

fn keys_of(reads: &Reads, layered: Keys, effects: &Effects) -> Keys {
    let mut keys = layered;
    for key in reads.keys().map(|(key, _)| key).chain(effects.writes.iter().map(|(key, _)| key)) {
        if !keys.contains(key) {
            keys.insert(key.clone());
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ServerClock;
    use bytes::Bytes;
    use emberkeep_hot::engine::TransactionRequest;
    use emberkeep_hot::tx::{RawTx, Transaction};
    use std::any::Any;
    use std::sync::Arc;

    /// Writes the time it is shown to a key.
    struct Stamp(&'static str);

    impl Transaction for Stamp {
        fn run(&mut self, mut tx: RawTx<'_>) -> bool {
            let now = Bytes::from(tx.now().to_string());
            tx.write(RawKey::from_static(self.0.as_bytes()), Write::Set(now, Expiry::Never)).is_ok()
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            self
        }
    }

    fn stamp(key: &'static str, reused: Option<BodyTime>) -> QueuedTransaction {
        let (mut queued, _) = QueuedTransaction::new(TransactionRequest {
            partition: Bytes::new(),
            prefetched: vec![],
            transaction: Box::new(Stamp(key)),
            deadline: Duration::from_secs(2),
            seed: 0,
        });
        (0..MISSES_BEFORE_TIME_IS_REUSED).for_each(|_| queued.record_miss(reused));
        queued
    }

    #[test]
    fn a_time_that_a_transaction_reuses_is_shown_to_no_other() {
        let (mut cache, now) = (ReadCache::default(), Instant::now());
        let clock = Clock::new(Arc::new(ServerClock::new(0, Arc::default())));
        clock.observe(1_000_000_000, now);
        let reused = BodyTime { now_ms: 999_970, estimate_ms: 999_970 };
        let shown = |batch: &Batch| batch.time.map(|time| (time.now_ms, time.estimate_ms));
        let mut batch = Batch::new(now, 1);
        assert!(batch.admit(stamp("a", Some(reused)), &cache, &clock).is_none());
        assert_eq!(
            (shown(&batch), batch.groups.transactions()),
            (Some((999_970, 999_970)), 1),
            "its own time"
        );

        cache.mark_leased(&RawKey::from_static(b"a"), now + Duration::from_secs(1));
        let mut batch = Batch::new(now, 1);
        assert!(batch.admit(stamp("a", Some(reused)), &cache, &clock).is_none());
        assert_eq!(batch.take_deferred().len(), 1, "another process has the lease");
        assert_eq!(batch.groups.transactions(), 0);
        assert!(batch.admit(stamp("b", None), &cache, &clock).is_none());
        assert_eq!(batch.groups.transactions(), 1);
        assert!(shown(&batch) >= Some((1_000_000, 1_000_000)), "{:?}", shown(&batch));
        assert!(shown(&batch).is_some_and(|(_, estimate)| estimate >= 1_000_000), "{:?}", shown(&batch));
    }
}
