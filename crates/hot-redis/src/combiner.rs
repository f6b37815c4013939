//! The task of one partition: takes transactions in order, combines them into commits, sends up to [`LANES_MAX`] of them
//! one behind the other, and runs again what proved stale.
//!
//! It is the engine's own task, not a caller's: a caller that goes away strands nobody. It ends when the partition
//! has been idle for [`PARTITION_IDLE`] or the engine closes; transactions that are queued are finished first.

use crate::batch::Batch;
use crate::budget::Share;
use crate::clock::Clock;
use crate::flight::{Flight, Lane, Outcome, turn_key};
use crate::group::Group;
use crate::job::Job;
use crate::known::Known;
use crate::leases::LeaseBook;
use crate::limits::*;
use crate::node::ALWAYS;
use crate::rights::Rights;
use crate::shared::{Shared, add};
use crate::wire::{Call, GroupWords, Swap};
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
pub(crate) struct Combiner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: Bytes,
    pub(crate) log_keys: (RawKey, RawKey),
    inbox: mpsc::UnboundedReceiver<Job>,
    pub(crate) queue: VecDeque<Job>,
    pub(crate) known: Known,
    /// Of the memory for guesses.
    share: Arc<Share>,
    pub(crate) rights: Rights,
    /// That of the partition's server: servers of a Cluster need not agree on the time.
    pub(crate) clock: Clock,
    flights: FuturesUnordered<BoxFuture<'static, Landed>>,
    pub(crate) idle_lanes: Vec<Lane>,
    pub(crate) leases: Arc<LeaseBook>,
    /// When a commit was last not executed, and why.
    pub(crate) problem: Option<(Instant, Error)>,
    closed: bool,
}

/// A commit that came back.
pub(crate) struct Landed {
    pub(crate) flight: Flight,
    pub(crate) outcome: Outcome,
    pub(crate) groups: Vec<Group>,
    pub(crate) fetches: Vec<(RawKey, Read)>,
    pub(crate) waiting: Vec<Job>,
    /// The tick at which it was sent.
    pub(crate) tick: u64,
}

impl Landed {
    fn transactions(&self) -> usize {
        self.groups.iter().map(|group| group.jobs.len()).sum::<usize>() + self.waiting.len()
    }
}

impl Combiner {
    pub(crate) fn new(
        shared: Arc<Shared>,
        partition: Bytes,
        inbox: mpsc::UnboundedReceiver<Job>,
    ) -> Combiner {
        Combiner {
            log_keys: log_keys(&shared.layout, &partition),
            clock: Clock::new(shared.clock_of_slot(shared.router.slot(&partition))),
            share: shared.budget.share(),
            shared,
            partition,
            inbox,
            queue: VecDeque::new(),
            known: Known::default(),
            rights: Rights::default(),
            flights: FuturesUnordered::new(),
            idle_lanes: vec![],
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
            if self.queue.is_empty() && self.flights.is_empty() && self.closed {
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
        let idle = self.queue.is_empty() && self.flights.is_empty();
        tokio::select! {
            biased;
            Some(landed) = self.flights.next(), if !self.flights.is_empty() => {
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
        if self.flights.len() >= self.lanes_max() {
            return None;
        }
        self.queue.iter().filter_map(|job| job.not_before).min()
    }

    /// Commits that may be in flight. One until the server has told its time: what the transactions of a second one were shown
    /// might lie after what those behind the first one's answer are shown.
    fn lanes_max(&self) -> usize {
        if self.clock.is_borrowed() { 1 } else { LANES_MAX }
    }

    /// Makes and sends commits while there are lanes and transactions.
    fn launch(&mut self) {
        while self.flights.len() < self.lanes_max() && !self.queue.is_empty() {
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
                        cmd.arg(turn_key(&shared, &partition, key));
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
            if now >= job.deadline || job.claim.is_given_up() {
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
        let check_rights = self.rights.must_be_checked(&groups, Instant::now());
        let patience = if self.clock.is_far() { 0 } else { STALE_BEFORE_TURN };
        for group in &mut groups {
            group.asks = group.jobs.iter().any(|job| job.stale >= patience);
        }
        let call = self.call_of(&groups, &fetches, check_rights);
        let writing = || groups.iter().filter(|group| !group.effects.is_empty());
        let claims: Vec<_> = writing().flat_map(|group| &group.jobs).map(|job| job.claim.clone()).collect();
        let frees = !claims.is_empty() && writing().all(Group::frees);
        let jobs = groups.iter().flat_map(|group| &group.jobs).chain(&waiting);
        let deadline = jobs.map(|job| job.deadline).max().unwrap_or_else(Instant::now);
        self.count(&groups, &fetches);
        let tick = self.predict(&mut groups);
        let lane = (!claims.is_empty()).then(|| self.take_lane());
        // A call that writes nothing is granted no lease.
        groups.iter_mut().for_each(|group| group.asks &= lane.is_some());
        let clock = self.clock.server().clone();
        let (estimate_ms, allowance) = match (estimate_ms, &lane) {
            (Some(ms), _) => {
                let age = Duration::from_millis((clock.estimate_ms() - ms).max(0) as u64);
                (Some(ms), clock.allowance(age))
            }
            // No body used the time. It still tells a late copy of the commit, where no receipt does.
            (None, Some(lane)) if !lane.has_receipt() => (Some(clock.estimate_ms()), COMMIT_LATENESS_MAX),
            (None, _) => (None, Duration::ZERO),
        };
        let flight = Flight {
            check_rights,
            call,
            groups: groups.len(),
            lane,
            frees,
            estimate_ms,
            allowance,
            shown_ms,
            deadline,
            claims,
            clock,
            begun: Instant::now(),
        };
        let (shared, partition) = (self.shared.clone(), self.partition.clone());
        self.flights.push(Box::pin(async move {
            let outcome = flight.fly(&shared, &partition).await;
            Landed { flight, outcome, groups, fetches, waiting, tick }
        }));
    }

    /// The words of a commit: as swaps where all of it is that simple.
    fn call_of(&self, groups: &[Group], fetches: &[(RawKey, Read)], check_rights: bool) -> Call {
        if !check_rights {
            let swaps = groups.iter().map(|group| {
                let is_plain = group.requirements(&self.log_keys).is_empty();
                let swap = Swap::of(&group.compared, &group.effects, group.asks).filter(|_| is_plain)?;
                group.leased().iter().all(|key| swap.is_of(key)).then_some(swap)
            });
            let swaps = swaps.collect::<Option<Vec<_>>>();
            if let Some(call) = swaps.and_then(|swaps| Call::of_swaps(&swaps, fetches, &self.shared.process))
            {
                return call;
            }
        }
        let words = groups.iter().map(|group| GroupWords {
            ask_turn: group.asks,
            leased: group.leased(),
            reads: &group.compared,
            effects: &group.effects,
            requirements: group.requirements(&self.log_keys),
            log_keys: &self.log_keys,
        });
        Call::of_groups(&words.collect::<Vec<_>>(), fetches, &self.shared.process)
    }

    fn count(&self, groups: &[Group], fetches: &[(RawKey, Read)]) {
        let counters = &self.shared.counters;
        let transactions: usize = groups.iter().map(|group| group.jobs.len()).sum();
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

    fn take_lane(&mut self) -> Lane {
        let mut lane = self.idle_lanes.pop().unwrap_or_else(|| {
            let number = self.shared.lanes_opened.fetch_add(1, Ordering::Relaxed);
            let partition = String::from_utf8_lossy(&self.partition);
            let name = format!("r:{partition}:{}:{number}", self.shared.process);
            let receipt = self.shared.own_key(&self.partition, name.as_bytes());
            Lane { receipt, sequence: 0, written: None }
        });
        lane.sequence += 1;
        lane
    }
}
