//! The task of one partition: takes steps in order, combines them into commits, sends up to [`LANES_MAX`] of them
//! one behind the other, and runs again what proved stale.
//!
//! It is the engine's own task, not a caller's: a caller that goes away strands nobody. It ends when the partition
//! has been idle for [`PARTITION_IDLE`] or the engine closes; steps that are queued are finished first.

use crate::batch::{Admission, Batch, Group};
use crate::flight::{Flight, Lane, Outcome};
use crate::job::Job;
use crate::known::Known;
use crate::limits::*;
use crate::shared::{Shared, add};
use crate::wire::{self, Answer, Call, GroupAnswer, GroupWords, Status};
use bytes::Bytes;
use emberkeep_hot::command::{RawKey, Read, wrong_type};
use emberkeep_hot::store::log_keys;
use emberkeep_hot::{Error, show};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::mpsc;

/// The task's state.
pub(crate) struct Combiner {
    shared: Arc<Shared>,
    partition: Bytes,
    log_keys: (RawKey, RawKey),
    inbox: mpsc::UnboundedReceiver<Job>,
    queue: VecDeque<Job>,
    known: Known,
    flights: FuturesUnordered<BoxFuture<'static, Landed>>,
    idle_lanes: Vec<Lane>,
    closed: bool,
}

/// A commit that came back.
struct Landed {
    flight: Flight,
    outcome: Outcome,
    groups: Vec<Group>,
    fetches: Vec<(RawKey, Read)>,
    waiting: Vec<Job>,
}

impl Combiner {
    pub(crate) fn new(
        shared: Arc<Shared>,
        partition: Bytes,
        inbox: mpsc::UnboundedReceiver<Job>,
    ) -> Combiner {
        Combiner {
            log_keys: log_keys(&shared.naming, &partition),
            shared,
            partition,
            inbox,
            queue: VecDeque::new(),
            known: Known::default(),
            flights: FuturesUnordered::new(),
            idle_lanes: vec![],
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
            if self.queue.is_empty() && self.flights.is_empty() && self.closed {
                return;
            }
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
                self.land(landed);
                // Those who were just answered get the chance to call again before the next commit is made.
                tokio::task::yield_now().await;
            }
            job = self.inbox.recv(), if !self.closed => match job {
                Some(job) => self.queue.push_back(job),
                None => self.closed = true,
            },
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now).into()), if wake.is_some() => {}
            () = tokio::time::sleep(PARTITION_IDLE), if idle && !self.closed => return true,
        }
        false
    }

    /// When the next step that pauses may go on.
    fn next_wake(&self) -> Option<Instant> {
        if self.flights.len() >= LANES_MAX {
            return None;
        }
        self.queue.iter().filter_map(|job| job.not_before).min()
    }

    /// Makes and sends commits while there are lanes and steps.
    fn launch(&mut self) {
        while self.flights.len() < LANES_MAX && !self.queue.is_empty() {
            let mut batch = self.compose();
            self.queue.extend(batch.deferred.drain(..));
            if batch.is_empty() {
                return;
            }
            batch.close();
            self.send(batch);
        }
    }

    fn compose(&mut self) -> Batch {
        let mut batch = Batch::new();
        let now = Instant::now();
        let mut pausing = VecDeque::new();
        while let Some(job) = self.queue.pop_front() {
            if now >= job.deadline {
                job.give_up();
            } else if job.not_before.is_some_and(|until| until > now) {
                pausing.push_back(job);
            } else if let Admission::Full(job) = batch.admit(job, &self.known, &self.shared.clock) {
                self.queue.push_front(job);
                break;
            }
        }
        pausing.append(&mut self.queue);
        self.queue = pausing;
        batch
    }

    fn send(&mut self, batch: Batch) {
        let Batch { groups, fetches, waiting, estimate_ms, .. } = batch;
        let mut call = Call::default();
        for group in &groups {
            call.group(&GroupWords {
                ask_turn: group.jobs.iter().any(|job| job.stale >= STALE_BEFORE_TURN),
                reads: &group.reads,
                effects: &group.effects,
                requirements: group.requirements(&self.log_keys),
                log_keys: &self.log_keys,
            });
        }
        call.fetches(&fetches);
        let writes = groups.iter().any(|group| !group.effects.is_empty());
        let jobs = groups.iter().flat_map(|group| &group.jobs);
        let deadline = jobs.clone().map(|job| job.deadline).max().unwrap_or_else(Instant::now);
        jobs.for_each(|job| job.set_in_flight(writes));
        self.count(&groups, &fetches);
        self.predict(&groups);
        let lane = writes.then(|| self.take_lane());
        let flight = Flight { call, groups: groups.len(), lane, estimate_ms, deadline };
        let (shared, partition) = (self.shared.clone(), self.partition.clone());
        self.flights.push(Box::pin(async move {
            let outcome = flight.fly(&shared, &partition).await;
            Landed { flight, outcome, groups, fetches, waiting }
        }));
    }

    fn count(&self, groups: &[Group], fetches: &[(RawKey, Read)]) {
        let counters = &self.shared.counters;
        let steps: usize = groups.iter().map(|group| group.jobs.len()).sum();
        add(&counters.commit_calls, !groups.is_empty() as u64);
        add(&counters.read_calls, (groups.is_empty() && !fetches.is_empty()) as u64);
        if steps > 1 {
            add(&counters.combined_commits, 1);
            add(&counters.combined_steps, steps as u64);
        }
    }

    /// From now on guesses are what these commits will leave behind.
    fn predict(&mut self, groups: &[Group]) {
        for group in groups {
            let writes = &group.effects.writes;
            for key in group.written() {
                let of_key: Vec<_> =
                    writes.iter().filter(|(k, _)| k == key).map(|(_, w)| w.clone()).collect();
                self.known.sent(key, &of_key);
            }
        }
        self.known.advance();
    }

    fn take_lane(&mut self) -> Lane {
        let mut lane = self.idle_lanes.pop().unwrap_or_else(|| {
            let number = self.shared.lanes_opened.fetch_add(1, Ordering::Relaxed);
            let partition = String::from_utf8_lossy(&self.partition);
            let name = format!("r:{partition}:{}:{number}", self.shared.process);
            Lane { receipt: self.shared.own_key(&self.partition, name.as_bytes()), sequence: 0 }
        });
        lane.sequence += 1;
        lane
    }

    /// Takes a commit back: answers its steps or queues them again.
    fn land(&mut self, landed: Landed) {
        let Landed { flight, outcome, groups, fetches, waiting } = landed;
        groups.iter().flat_map(|group| &group.jobs).for_each(|job| job.set_in_flight(false));
        let Flight { call, lane, .. } = flight;
        match outcome {
            Outcome::Answer(answer) => {
                self.idle_lanes.extend(lane);
                self.settle(&call, answer, groups, fetches, waiting);
            }
            Outcome::Executed { committed } => {
                self.known.forget_guesses();
                for (index, group) in groups.into_iter().enumerate() {
                    match committed.get(index) {
                        Some(true) => self.committed(group),
                        _ => self.again(group, None),
                    }
                }
                self.requeue(waiting, None);
            }
            Outcome::NotExecuted { reason, lost } => {
                if lost {
                    self.known.forget_guesses();
                } else {
                    self.idle_lanes.extend(lane);
                }
                self.not_executed(groups, waiting, &reason);
            }
            Outcome::Refused(error) => {
                self.idle_lanes.extend(lane);
                for group in groups {
                    self.void(&group);
                    group.jobs.into_iter().for_each(|job| job.fail(error.clone()));
                }
                waiting.into_iter().for_each(|job| job.fail(error.clone()));
            }
            Outcome::Unknown { reason } => {
                self.known.forget_guesses();
                for group in groups {
                    self.void(&group);
                    self.unknown(group, &reason);
                }
                self.requeue(waiting, None);
            }
        }
    }

    /// The script answered: group by group, then the fetches.
    fn settle(
        &mut self,
        call: &Call,
        answer: Answer,
        groups: Vec<Group>,
        fetches: Vec<(RawKey, Read)>,
        waiting: Vec<Job>,
    ) {
        match answer.status {
            Status::Done => {}
            Status::ClocksDiffer | Status::LaneClosed => {
                if matches!(answer.status, Status::LaneClosed) {
                    self.idle_lanes.clear();
                }
                groups.into_iter().for_each(|group| self.again(group, None));
                return self.requeue(waiting, None);
            }
            Status::Partial { group, message } => {
                return self.partial(groups, group, &message, waiting);
            }
        }
        for (group, answer) in groups.into_iter().zip(answer.groups) {
            self.settle_group(call, group, answer);
        }
        let mut seen = Vec::with_capacity(fetches.len());
        for ((key, read), value) in fetches.into_iter().zip(answer.fetched) {
            if let Some(reply) = wire::reply(&read, value) {
                self.known.saw(&key, &read, reply.clone());
                seen.push((key, read, reply));
            }
        }
        for mut job in waiting {
            job.fresh.clone_from(&seen);
            self.queue.push_front(job);
        }
    }

    fn settle_group(&mut self, call: &Call, group: Group, answer: GroupAnswer) {
        match answer {
            GroupAnswer::Committed => self.committed(group),
            GroupAnswer::Stale(replies) => self.stale(group, replies),
            GroupAnswer::Wait => {
                add(&self.shared.counters.turn_waits, 1);
                let until = Instant::now() + TURN_POLL;
                let written: Vec<RawKey> = group.written().cloned().collect();
                written.iter().for_each(|key| self.known.wait(key, until));
                self.again(group, Some(until));
            }
            GroupAnswer::WrongType { key, found } => {
                let key = call.key_at(key).cloned().unwrap_or_default();
                let expected = group.requirements(&self.log_keys).into_iter().find(|r| r.key == key);
                let kind = expected.map_or(emberkeep_hot::command::Kind::Text, |r| r.kind);
                self.one_to_blame(group, wrong_type(&key, kind, found));
            }
            GroupAnswer::LogFull => {
                let max = group.effects.log.iter().map(|entry| entry.entries_max).min().unwrap_or(0);
                let partition = show(&self.partition);
                self.one_to_blame(group, Error::LogFull { partition, max });
            }
        }
    }

    fn committed(&mut self, group: Group) {
        add(&self.shared.counters.committed, group.jobs.len() as u64);
        group.written().for_each(|key| self.known.landed(key, true));
        group.jobs.into_iter().for_each(Job::finish);
    }

    /// Others changed something the group read: it runs again on the replies that came with the answer.
    fn stale(&mut self, mut group: Group, replies: Vec<redis::Value>) {
        add(&self.shared.counters.conflicts, group.jobs.len() as u64);
        self.void(&group);
        let now = Instant::now();
        let mut seen = Vec::with_capacity(replies.len());
        for ((key, read, before), value) in std::mem::take(&mut group.reads).into_iter().zip(replies) {
            let Some(reply) = wire::reply(&read, value) else { continue };
            if reply != before {
                self.known.contended(&key, now);
            }
            seen.push((key, read, reply));
        }
        for (key, read, reply) in &seen {
            self.known.saw(key, read, reply.clone());
        }
        for mut job in group.jobs.into_iter().rev() {
            job.stale += 1;
            job.alone = job.stale >= STALE_BEFORE_ALONE;
            job.fresh.clone_from(&seen);
            self.queue.push_front(job);
        }
    }

    /// A check failed that only one step of the group may be guilty of: each is tried alone.
    fn one_to_blame(&mut self, group: Group, error: Error) {
        if group.jobs.len() == 1 {
            self.void(&group);
            return group.jobs.into_iter().for_each(|job| job.fail(error.clone()));
        }
        let mut group = group;
        group.jobs.iter_mut().for_each(|job| job.alone = true);
        self.again(group, None);
    }

    fn again(&mut self, group: Group, not_before: Option<Instant>) {
        self.void(&group);
        self.requeue(group.jobs, not_before);
    }

    fn requeue(&mut self, jobs: Vec<Job>, not_before: Option<Instant>) {
        for mut job in jobs.into_iter().rev() {
            job.not_before = not_before;
            self.queue.push_front(job);
        }
    }

    /// The group's writes did not happen.
    fn void(&mut self, group: &Group) {
        group.written().for_each(|key| self.known.landed(key, false));
    }

    fn not_executed(&mut self, groups: Vec<Group>, waiting: Vec<Job>, reason: &str) {
        let advice =
            "the backend is starting, failing over or unreachable; the step was tried until its deadline";
        let problem = Error::Unavailable { backend: self.shared.name.clone(), reason: reason.into(), advice };
        let pause = |job: &Job| (RETRY_PAUSE * job.attempts.clamp(1, 8)).min(RETRY_PAUSE_MAX);
        let mut jobs = Vec::new();
        for group in groups {
            self.void(&group);
            jobs.extend(group.jobs);
        }
        jobs.extend(waiting);
        for mut job in jobs.into_iter().rev() {
            job.not_before = Some(Instant::now() + pause(&job));
            job.problem = Some(problem.clone());
            self.queue.push_front(job);
        }
    }

    fn unknown(&self, group: Group, reason: &str) {
        let has_effects = !group.effects.is_empty();
        for job in group.jobs {
            if has_effects {
                job.fail(Error::OutcomeUnknown { backend: self.shared.name.clone(), reason: reason.into() });
            } else {
                job.give_up();
            }
        }
    }

    /// The alarm: a write failed after others were made, although everything was checked before.
    fn partial(&mut self, groups: Vec<Group>, failed: usize, message: &str, waiting: Vec<Job>) {
        for (index, group) in groups.into_iter().enumerate() {
            self.void(&group);
            if index + 1 < failed {
                self.committed(group);
            } else if index + 1 == failed {
                let keys = group.keys.iter().map(|key| show(key)).collect();
                let error = Error::PartialCommit { reason: message.into(), keys };
                tracing::error!(%error, "a commit failed after its first write");
                group.jobs.into_iter().for_each(|job| job.fail(error.clone()));
            } else {
                self.requeue(group.jobs, None);
            }
        }
        self.requeue(waiting, None);
    }
}
