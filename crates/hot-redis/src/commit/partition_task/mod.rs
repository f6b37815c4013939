//! The task of one partition: takes transactions in order, combines them into commits, sends up to
//! [`COMMITS_IN_FLIGHT_MAX`] of them one after the other, and runs again what proved stale.
//!
//! It belongs to the engine, not to a caller: a caller that goes away does not stop the others, and takes its
//! own transaction along if that was not sent yet. It ends when
//! the partition has been idle for [`PARTITION_IDLE`] or the engine closes; queued transactions are finished
//! first.

mod complete;

use super::batch::{Batch, ClosedBatch, Group};
use super::in_flight::InFlight;
use super::lease::{LeaseRegistry, lease_key};
use super::queued::QueuedTransaction;
use super::receipt::CommitSequence;
use crate::acl::VerifiedCommands;
use crate::cache::ReadCache;
use crate::cache::budget::Share;
use crate::clock::{BodyTime, Clock};
use crate::cluster::ALWAYS;
use crate::limits::*;
use crate::script::{CommitRequest, CompareAndSet, CompareAndSetRequest, GroupRequest, Request};
use crate::shared::{Shared, add};
use bytes::Bytes;
use complete::{CompletedCommit, complete};
use emberkeep_hot::Error;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The state of a partition's task.
pub(crate) struct PartitionTask {
    shared: Arc<Shared>,
    partition: Bytes,
    inbox: mpsc::UnboundedReceiver<QueuedTransaction>,
    queue: VecDeque<QueuedTransaction>,
    cache: ReadCache,
    /// Of the memory for read caches.
    share: Arc<Share>,
    acl: VerifiedCommands,
    /// That of the partition's server: servers of a Cluster need not agree on the time.
    clock: Clock,
    in_flight: FuturesUnordered<BoxFuture<'static, CompletedCommit>>,
    idle_sequences: Vec<CommitSequence>,
    leases: Arc<LeaseRegistry>,
    /// When a commit was last not executed, and why.
    problem: Option<(Instant, Error)>,
    is_closed: bool,
}

impl PartitionTask {
    pub(crate) fn new(
        shared: Arc<Shared>,
        partition: Bytes,
        inbox: mpsc::UnboundedReceiver<QueuedTransaction>,
    ) -> PartitionTask {
        PartitionTask {
            clock: Clock::new(shared.clock_of_slot(shared.router.slot(&partition))),
            share: shared.budget.share(),
            shared,
            partition,
            inbox,
            queue: VecDeque::new(),
            cache: ReadCache::default(),
            acl: VerifiedCommands::default(),
            in_flight: FuturesUnordered::new(),
            idle_sequences: vec![],
            leases: Arc::default(),
            problem: None,
            is_closed: false,
        }
    }

    /// Works until idle or closed. `retire` removes the partition from the engine's table when it has been
    /// idle; then the inbox closes.
    pub(crate) async fn run(mut self, retire: impl Fn()) {
        loop {
            while let Ok(transaction) = self.inbox.try_recv() {
                self.queue.push_back(transaction);
            }
            self.send_batches();
            self.release_leases();
            if self.queue.is_empty() && self.in_flight.is_empty() && self.is_closed {
                return;
            }
            self.share.report(self.cache.bytes());
            if self.wait().await {
                retire();
            }
        }
    }

    /// Waits for something to do. `true` = the partition was idle for [`PARTITION_IDLE`].
    async fn wait(&mut self) -> bool {
        let wake = self.next_wake();
        let is_idle = self.queue.is_empty() && self.in_flight.is_empty();
        tokio::select! {
            biased;
            Some(commit) = self.in_flight.next(), if !self.in_flight.is_empty() => {
                let has_one_caller = commit.transactions() <= 1 && self.queue.is_empty();
                complete(self, commit);
                if !has_one_caller {
                    // Callers that were just answered can submit again before the next batch is made.
                    tokio::task::yield_now().await;
                }
            }
            transaction = self.inbox.recv(), if !self.is_closed => match transaction {
                Some(transaction) => self.queue.push_back(transaction),
                None => self.is_closed = true,
            },
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now).into()), if wake.is_some() => {}
            () = self.share.shrink.notified() => self.cache.shrink(),
            () = tokio::time::sleep(PARTITION_IDLE), if is_idle && !self.is_closed => return true,
        }
        false
    }

    /// When the next paused transaction may go on.
    fn next_wake(&self) -> Option<Instant> {
        if self.in_flight.len() >= self.in_flight_max() {
            return None;
        }
        self.queue.iter().filter_map(QueuedTransaction::paused_until).min()
    }

    /// Commits that may be in flight. One until the server's time was observed: otherwise the transactions of
    /// a second one might be shown a later time than those that run after the first one's answer.
    fn in_flight_max(&self) -> usize {
        if self.clock.is_borrowed() { 1 } else { COMMITS_IN_FLIGHT_MAX }
    }

    fn send_batches(&mut self) {
        while self.in_flight.len() < self.in_flight_max() && !self.queue.is_empty() {
            let mut batch = self.make_batch();
            // In front of those that did not run: they came first.
            batch.take_deferred().into_iter().rev().for_each(|deferred| self.queue.push_front(deferred));
            if batch.is_empty() {
                return;
            }
            self.send(batch.close());
        }
    }

    /// Releases leases that no transaction needs any more. The task does not wait for it: leases also expire.
    fn release_leases(&self) {
        let keys = self.leases.take_unneeded();
        if keys.is_empty() {
            return;
        }
        let (shared, partition) = (self.shared.clone(), self.partition.clone());
        tokio::spawn(async move {
            let slot = shared.router.slot(&partition);
            let command = |verb, script: &str| {
                let mut cmd = redis::cmd(verb);
                cmd.arg(script).arg(keys.len());
                keys.iter().for_each(|key| {
                    cmd.arg(lease_key(&shared.layout, &partition, key));
                });
                cmd.arg(&shared.process);
                cmd
            };
            let _ = shared.eval(slot, &shared.scripts.release_leases, ALWAYS, command).await;
        });
    }

    fn make_batch(&mut self) -> Batch {
        let now = Instant::now();
        let mut batch = Batch::new(now, self.queue.len());
        let mut paused = VecDeque::new();
        while let Some(transaction) = self.queue.pop_front() {
            if transaction.is_expired(now) {
                transaction.expire(&self.shared.name);
            } else if transaction.paused_until().is_some_and(|until| until > now) {
                paused.push_back(transaction);
            } else if let Some(transaction) = batch.admit(transaction, &self.cache, &self.clock) {
                self.queue.push_front(transaction);
                break;
            }
        }
        paused.append(&mut self.queue);
        self.queue = paused;
        batch
    }

    fn send(&mut self, mut batch: ClosedBatch) {
        let effects = batch.groups.iter().map(Group::effects);
        let check_acl = self.acl.must_be_checked(effects, Instant::now());
        let patience = if self.clock.is_far() { 0 } else { STALE_BEFORE_LEASE };
        for group in &mut batch.groups {
            let asks = group.transactions().iter().any(|transaction| transaction.wants_lease(patience));
            group.set_asks_lease(asks);
        }
        let request = self.request_of(&batch, check_acl);
        let writing = || batch.groups.iter().filter(|group| !group.effects().is_empty());
        let guards: Vec<_> =
            writing().flat_map(Group::transactions).map(|transaction| transaction.guard().clone()).collect();
        let frees = !guards.is_empty() && writing().all(Group::frees);
        let transactions = batch.groups.iter().flat_map(Group::transactions).chain(&batch.waiting);
        let deadline = transactions.map(QueuedTransaction::deadline).max().unwrap_or_else(Instant::now);
        self.count(&mut batch);
        let tick = self.record_sent(&mut batch.groups);
        let sequence = (!guards.is_empty()).then(|| self.next_sequence());
        // A call that writes nothing is granted no lease.
        for group in batch.groups.iter_mut().filter(|_| sequence.is_none()) {
            group.set_asks_lease(false);
        }
        let (estimate_ms, allowance) = self.compared_time(batch.time, sequence.as_ref());
        let commit = InFlight {
            check_acl,
            request,
            groups: batch.groups.len(),
            sequence,
            frees,
            estimate_ms,
            allowance,
            shown_ms: batch.time.map(|time| time.now_ms),
            deadline,
            guards,
            clock: self.clock.server().clone(),
            begun: Instant::now(),
        };
        let (shared, partition) = (self.shared.clone(), self.partition.clone());
        self.in_flight.push(Box::pin(async move {
            let outcome = commit.execute(&shared, &partition).await;
            CompletedCommit { commit, outcome, batch, tick }
        }));
    }

    /// The estimate of the server's time that the commit compares, and the largest difference.
    fn compared_time(
        &self,
        shown: Option<BodyTime>,
        sequence: Option<&CommitSequence>,
    ) -> (Option<i64>, Duration) {
        match (shown, sequence) {
            (Some(BodyTime { estimate_ms, .. }), _) => {
                let age_ms = (self.clock.estimate_ms() - estimate_ms).max(0) as u64;
                (Some(estimate_ms), self.clock.allowance(Duration::from_millis(age_ms)))
            }
            // No body used the time. It still exposes a late copy of the commit, where no receipt does.
            (None, Some(sequence)) if !sequence.has_receipt() => {
                (Some(self.clock.estimate_ms()), COMMIT_LATENESS_MAX)
            }
            (None, _) => (None, Duration::ZERO),
        }
    }

    /// The request for a batch: by the faster script where every group has that shape.
    fn request_of(&self, batch: &ClosedBatch, check_acl: bool) -> Request {
        let (groups, fetches, process) = (&batch.groups, &batch.fetches, &self.shared.process);
        if !check_acl {
            let strings = groups.iter().map(|group| self.as_compare_and_set(group));
            let strings = strings.collect::<Option<Vec<_>>>();
            let request = strings.and_then(|strings| CompareAndSetRequest::new(&strings, fetches, process));
            if let Some(request) = request {
                return Request::CompareAndSet(request);
            }
        }
        let groups = groups.iter().map(|group| GroupRequest {
            ask_lease: group.asks_lease(),
            leased: group.leased(),
            reads: group.reads(),
            effects: group.effects(),
            requirements: group.requirements(),
        });
        Request::Commit(CommitRequest::new(&groups.collect::<Vec<_>>(), fetches, process))
    }

    fn as_compare_and_set<'a>(&self, group: &'a Group) -> Option<CompareAndSet<'a>> {
        let needs_no_check = group.requirements().is_empty();
        let string = CompareAndSet::of(group.reads(), group.effects(), group.asks_lease());
        let string = string.filter(|_| needs_no_check)?;
        group.leased().iter().all(|key| string.is_of(key)).then_some(string)
    }

    fn count(&self, batch: &mut ClosedBatch) {
        let in_groups = batch.groups.iter_mut().flat_map(Group::transactions_mut);
        in_groups.chain(&mut batch.waiting).for_each(QueuedTransaction::count_round_trip);
        let counters = &self.shared.counters;
        let transactions: usize = batch.groups.iter().map(|group| group.transactions().len()).sum();
        add(&counters.commit_calls, !batch.groups.is_empty() as u64);
        add(&counters.read_calls, (batch.groups.is_empty() && !batch.fetches.is_empty()) as u64);
        if transactions > 1 {
            add(&counters.combined_commits, 1);
            add(&counters.combined_transactions, transactions as u64);
        }
    }

    /// From now on the cache has what these groups will leave behind. Returns their tick.
    fn record_sent(&mut self, groups: &mut [Group]) -> u64 {
        let tick = self.cache.tick();
        for group in groups {
            group.set_tick(tick);
            for of_key in group.effects().writes.chunk_by(|(key, _), (next, _)| key == next) {
                self.cache.record_sent(&of_key[0].0, of_key);
            }
            group.appended().for_each(|log| self.cache.record_append_sent(log));
        }
        self.cache.advance();
        tick
    }

    fn next_sequence(&mut self) -> CommitSequence {
        let idle = self.idle_sequences.pop();
        idle.unwrap_or_else(|| CommitSequence::open(&self.shared, &self.partition)).next()
    }
}
