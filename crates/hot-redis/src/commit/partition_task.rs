//! The task of one partition: takes transactions in order, combines them into commits, sends up to [`COMMITS_IN_FLIGHT_MAX`] of them
//! one behind the other, and runs again what proved stale.
//!
//! It is the engine's own task, not a caller's: a caller that goes away strands nobody. It ends when the partition
//! has been idle for [`PARTITION_IDLE`] or the engine closes; transactions that are queued are finished first.

use crate::acl::VerifiedCommands;
use crate::cache::ReadCache;
use crate::cache::budget::Share;
use crate::clock::Clock;
use crate::cluster::server::ALWAYS;
use crate::commit::batch::Batch;
use crate::commit::batch::group::Group;
use crate::commit::in_flight::{CommitSequence, InFlight, Outcome, lease_key};
use crate::commit::lease::LeaseRegistry;
use crate::commit::queued::QueuedTransaction;
use crate::limits::*;
use crate::script::{CompareAndSet, GroupRequest, Request};
use crate::shared::{Shared, add};
use bytes::Bytes;
use emberkeep_hot::Error;
use emberkeep_hot::command::{RawKey, Read};
use emberkeep_hot::store::log_keys;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The task's state.
pub(crate) struct PartitionTask {
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: Bytes,
    pub(crate) log_keys: (RawKey, RawKey),
    inbox: mpsc::UnboundedReceiver<QueuedTransaction>,
    pub(crate) queue: VecDeque<QueuedTransaction>,
    pub(crate) known: ReadCache,
    /// Of the memory for guesses.
    share: Arc<Share>,
    pub(crate) rights: VerifiedCommands,
    /// That of the partition's server: servers of a Cluster need not agree on the time.
    pub(crate) clock: Clock,
    in_flight: FuturesUnordered<BoxFuture<'static, CompletedCommit>>,
    pub(crate) idle_sequences: Vec<CommitSequence>,
    pub(crate) leases: Arc<LeaseRegistry>,
    /// When a commit was last not executed, and why.
    pub(crate) problem: Option<(Instant, Error)>,
    closed: bool,
}

/// A commit that came back.
pub(crate) struct CompletedCommit {
    pub(crate) in_flight: InFlight,
    pub(crate) outcome: Outcome,
    pub(crate) groups: Vec<Group>,
    pub(crate) fetches: Vec<(RawKey, Read)>,
    pub(crate) waiting: Vec<QueuedTransaction>,
    /// The tick at which it was sent.
    pub(crate) tick: u64,
}

impl CompletedCommit {
    fn transactions(&self) -> usize {
        self.groups.iter().map(|group| group.transactions.len()).sum::<usize>() + self.waiting.len()
    }
}

impl PartitionTask {
    pub(crate) fn new(
        shared: Arc<Shared>,
        partition: Bytes,
        inbox: mpsc::UnboundedReceiver<QueuedTransaction>,
    ) -> PartitionTask {
        PartitionTask {
            log_keys: log_keys(&shared.layout, &partition),
            clock: Clock::new(shared.clock_of_slot(shared.router.slot(&partition))),
            share: shared.budget.share(),
            shared,
            partition,
            inbox,
            queue: VecDeque::new(),
            known: ReadCache::default(),
            rights: VerifiedCommands::default(),
            in_flight: FuturesUnordered::new(),
            idle_sequences: vec![],
            leases: Arc::default(),
            problem: None,
            closed: false,
        }
    }

    /// Works until idle or closed. `retire` cuts off the supply when the partition has been idle.
    pub(crate) async fn run(mut self, retire: impl Fn()) {
        loop {
            while let Ok(job) = self.inbox.try_recv() {
                self.queue.push_back(job);
            }
            self.launch();
            self.release();
            if self.queue.is_empty() && self.in_flight.is_empty() && self.closed {
                return;
            }
            self.share.report(self.known.bytes());
            if self.wait().await {
                retire();
            }
        }
    }

    /// Waits for something to do. `true` = nothing happened for a long time.
    async fn wait(&mut self) -> bool {
        let wake = self.next_wake();
        let idle = self.queue.is_empty() && self.in_flight.is_empty();
        tokio::select! {
            biased;
            Some(landed) = self.in_flight.next(), if !self.in_flight.is_empty() => {
                let alone = landed.transactions() <= 1 && self.queue.is_empty();
                self.land(landed);
                if !alone {
                    // Those who were just answered get the chance to call again before the next commit is made.
                    tokio::task::yield_now().await;
                }
            }
            job = self.inbox.recv(), if !self.closed => match job {
                Some(job) => self.queue.push_back(job),
                None => self.closed = true,
            },
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now).into()), if wake.is_some() => {}
            () = self.share.give_back.notified() => self.known.give_back(),
            () = tokio::time::sleep(PARTITION_IDLE), if idle && !self.closed => return true,
        }
        false
    }

    /// When the next transaction that pauses may go on.
    fn next_wake(&self) -> Option<Instant> {
        if self.in_flight.len() >= self.in_flight_max() {
            return None;
        }
        self.queue.iter().filter_map(|job| job.not_before).min()
    }

    /// Commits that may be in in_flight. One until the server has told its time: what the transactions of a second one were shown
    /// might lie after what those behind the first one's answer are shown.
    fn in_flight_max(&self) -> usize {
        if self.clock.is_borrowed() { 1 } else { COMMITS_IN_FLIGHT_MAX }
    }

    /// Makes and sends commits while there are lanes and transactions.
    fn launch(&mut self) {
        while self.in_flight.len() < self.in_flight_max() && !self.queue.is_empty() {
            let mut batch = self.compose();
            // In front of those that were not looked at: they came first.
            batch.deferred.drain(..).rev().for_each(|job| self.queue.push_front(job));
            if batch.is_empty() {
                return;
            }
            batch.close();
            self.send(batch);
        }
    }

    /// Gives leases back that no transaction needs any more. Nobody waits for it: they end by themselves, too.
    fn release(&self) {
        let keys = self.leases.take_unneeded();
        if keys.is_empty() {
            return;
        }
        let (shared, partition) = (self.shared.clone(), self.partition.clone());
        tokio::spawn(async move {
            let slot = shared.router.slot(&partition);
            let _ = shared
                .eval(slot, &shared.release_script, ALWAYS, |verb, script| {
                    let mut cmd = redis::cmd(verb);
                    cmd.arg(script).arg(keys.len());
                    keys.iter().for_each(|key| {
                        cmd.arg(lease_key(&shared, &partition, key));
                    });
                    cmd.arg(&shared.process);
                    cmd
                })
                .await;
        });
    }

    fn compose(&mut self) -> Batch {
        let now = Instant::now();
        let mut batch = Batch::new(now, self.log_keys.clone(), self.queue.len());
        let mut pausing = VecDeque::new();
        while let Some(job) = self.queue.pop_front() {
            if now >= job.deadline || job.guard.is_given_up() {
                job.give_up(&self.shared.name);
            } else if job.not_before.is_some_and(|until| until > now) {
                pausing.push_back(job);
            } else if let Some(job) = batch.admit(job, &self.known, &self.clock) {
                self.queue.push_front(job);
                break;
            }
        }
        pausing.append(&mut self.queue);
        self.queue = pausing;
        batch
    }

    fn send(&mut self, batch: Batch) {
        let Batch { mut groups, fetches, waiting, estimate_ms, now_ms: shown_ms, .. } = batch;
        let fetches = fetches.into_vec();
        let check_acl = self.rights.must_be_checked(&groups, Instant::now());
        let patience = if self.clock.is_far() { 0 } else { STALE_BEFORE_LEASE };
        for group in &mut groups {
            group.asks = group.transactions.iter().any(|job| job.stale >= patience);
        }
        let call = self.call_of(&groups, &fetches, check_acl);
        let writing = || groups.iter().filter(|group| !group.effects.is_empty());
        let guards: Vec<_> =
            writing().flat_map(|group| &group.transactions).map(|job| job.guard.clone()).collect();
        let frees = !guards.is_empty() && writing().all(Group::frees);
        let transactions = groups.iter().flat_map(|group| &group.transactions).chain(&waiting);
        let deadline = transactions.map(|job| job.deadline).max().unwrap_or_else(Instant::now);
        self.count(&groups, &fetches);
        let tick = self.predict(&mut groups);
        let sequence = (!guards.is_empty()).then(|| self.take_sequence());
        // A call that writes nothing is granted no lease.
        groups.iter_mut().for_each(|group| group.asks &= sequence.is_some());
        let clock = self.clock.server().clone();
        let (estimate_ms, allowance) = match (estimate_ms, &sequence) {
            (Some(ms), _) => {
                let age = Duration::from_millis((clock.estimate_ms() - ms).max(0) as u64);
                (Some(ms), clock.allowance(age))
            }
            // No body used the time. It still tells a late copy of the commit, where no receipt does.
            (None, Some(sequence)) if !sequence.has_receipt() => {
                (Some(clock.estimate_ms()), COMMIT_LATENESS_MAX)
            }
            (None, _) => (None, Duration::ZERO),
        };
        let in_flight = InFlight {
            check_acl,
            call,
            groups: groups.len(),
            sequence,
            frees,
            estimate_ms,
            allowance,
            shown_ms,
            deadline,
            guards,
            clock,
            begun: Instant::now(),
        };
        let (shared, partition) = (self.shared.clone(), self.partition.clone());
        self.in_flight.push(Box::pin(async move {
            let outcome = in_flight.execute(&shared, &partition).await;
            CompletedCommit { in_flight, outcome, groups, fetches, waiting, tick }
        }));
    }

    /// The words of a commit: as swaps where all of it is that simple.
    fn call_of(&self, groups: &[Group], fetches: &[(RawKey, Read)], check_acl: bool) -> Request {
        if !check_acl {
            let swaps = groups.iter().map(|group| {
                let is_plain = group.requirements(&self.log_keys).is_empty();
                let swap =
                    CompareAndSet::of(&group.compared, &group.effects, group.asks).filter(|_| is_plain)?;
                group.leased().iter().all(|key| swap.is_of(key)).then_some(swap)
            });
            let swaps = swaps.collect::<Option<Vec<_>>>();
            if let Some(call) =
                swaps.and_then(|swaps| Request::of_swaps(&swaps, fetches, &self.shared.process))
            {
                return call;
            }
        }
        let words = groups.iter().map(|group| GroupRequest {
            ask_lease: group.asks,
            leased: group.leased(),
            reads: &group.compared,
            effects: &group.effects,
            requirements: group.requirements(&self.log_keys),
            log_keys: &self.log_keys,
        });
        Request::of_groups(&words.collect::<Vec<_>>(), fetches, &self.shared.process)
    }

    fn count(&self, groups: &[Group], fetches: &[(RawKey, Read)]) {
        let counters = &self.shared.counters;
        let transactions: usize = groups.iter().map(|group| group.transactions.len()).sum();
        add(&counters.commit_calls, !groups.is_empty() as u64);
        add(&counters.read_calls, (groups.is_empty() && !fetches.is_empty()) as u64);
        if transactions > 1 {
            add(&counters.combined_commits, 1);
            add(&counters.combined_transactions, transactions as u64);
        }
    }

    /// From now on guesses are what these commits will leave behind. Answers their tick.
    fn predict(&mut self, groups: &mut [Group]) -> u64 {
        let tick = self.known.tick();
        for group in groups {
            group.tick = tick;
            for of_key in group.effects.writes.chunk_by(|(key, _), (next, _)| key == next) {
                self.known.sent(&of_key[0].0, of_key);
            }
        }
        self.known.advance();
        tick
    }

    fn take_sequence(&mut self) -> CommitSequence {
        let mut sequence = self.idle_sequences.pop().unwrap_or_else(|| {
            let number = self.shared.sequences_opened.fetch_add(1, Ordering::Relaxed);
            let partition = String::from_utf8_lossy(&self.partition);
            let name = format!("r:{partition}:{}:{number}", self.shared.process);
            let receipt = self.shared.engine_key(&self.partition, name.as_bytes());
            CommitSequence { receipt, sequence: 0, written: None }
        });
        sequence.sequence += 1;
        sequence
    }
}
