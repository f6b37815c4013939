//! What the partition's task does with a commit that came back: answers its transactions or queues them again.

use crate::cache::view::Reads;
use crate::commit::batch::group::Group;
use crate::commit::in_flight::{InFlight, Outcome};
use crate::commit::partition_task::{CompletedCommit, PartitionTask};
use crate::commit::queued::{QueuedTransaction, Snapshot};
use crate::failure::{Failure, forbidden};
use crate::limits::*;
use crate::script::{self, Answer, GroupAnswer, Request, Status};
use crate::shared::add;
use emberkeep_hot::command::{Kind, RawKey, Read, wrong_type};
use emberkeep_hot::{Error, show};
use redis::Value;
use std::sync::Arc;
use std::time::Instant;

/// What is known of a commit that was answered.
struct Sent<'a> {
    call: &'a Request,
    begun: Instant,
    /// Why too few replicas have it.
    unconfirmed: Option<&'a str>,
}

impl PartitionTask {
    /// Takes a commit back.
    pub(crate) fn land(&mut self, landed: CompletedCommit) {
        let CompletedCommit { in_flight, outcome, groups, fetches, waiting, tick } = landed;
        let InFlight { call, mut sequence, check_acl, begun, allowance, .. } = in_flight;
        match outcome {
            Outcome::Answer(answer, unconfirmed, clock) => {
                self.clock.follow(&clock);
                if let Some(sequence) = sequence.as_mut().filter(|_| wrote_receipt(&answer, &groups)) {
                    sequence.written = Some(begun);
                }
                self.idle_sequences.extend(sequence);
                if check_acl {
                    self.checked(&answer, &groups);
                }
                if matches!(answer.status, Status::ClocksDiffer) {
                    let reason = format!(
                        "the transaction's time and the server's differ by more than {allowance:?}: the server's clock was set, or the commit took longer to get there than calls before it"
                    );
                    return self.not_executed(groups, waiting, &reason);
                }
                let sent = Sent { call: &call, begun, unconfirmed: unconfirmed.as_deref() };
                self.answered(sent, answer, groups, (fetches, waiting, tick));
            }
            Outcome::Executed { committed, unconfirmed } => {
                self.forget();
                for (index, group) in groups.into_iter().enumerate() {
                    match committed.get(index) {
                        Some(true) => self.committed(group, unconfirmed.as_deref()),
                        _ => self.again(group, None),
                    }
                }
                self.requeue(waiting, None);
            }
            Outcome::Abandoned => {
                self.idle_sequences.extend(sequence);
                groups.into_iter().for_each(|group| self.again(group, None));
                self.requeue(waiting, None);
            }
            Outcome::NotExecuted { reason, lost } => {
                if lost {
                    self.forget();
                } else {
                    self.idle_sequences.extend(sequence);
                }
                self.not_executed(groups, waiting, &reason);
            }
            Outcome::Refused(error) => {
                self.idle_sequences.extend(sequence);
                self.refused(groups, waiting, &error);
            }
            Outcome::Unknown { reason } => {
                self.forget();
                groups.into_iter().for_each(|group| self.unknown(group, &reason));
                self.requeue(waiting, None);
            }
        }
    }

    /// The commit asked for our user's rights: what passed is known now.
    fn checked(&mut self, answer: &Answer, groups: &[Group]) {
        for (group, answer) in groups.iter().zip(&answer.groups) {
            if matches!(answer, GroupAnswer::Committed) {
                self.rights.passed(group);
            }
        }
    }

    /// The script answered: for every group, then for the reads that transactions missed.
    fn answered(
        &mut self,
        sent: Sent<'_>,
        answer: Answer,
        groups: Vec<Group>,
        (fetches, waiting, tick): (Vec<(RawKey, Read)>, Vec<QueuedTransaction>, u64),
    ) {
        let failed = match answer.status {
            Status::Done | Status::ClocksDiffer => None,
            Status::SequenceClosed => {
                self.idle_sequences.clear();
                groups.into_iter().for_each(|group| self.again(group, None));
                return self.requeue(waiting, None);
            }
            Status::Partial { group, message } => Some((group, message)),
        };
        let (complete, time_ms) = (failed.is_none(), answer.time_ms);
        for (number, (group, answer)) in (1..).zip(groups.into_iter().zip(answer.groups)) {
            match &failed {
                Some((at, message)) if number == *at => self.partial(group, message),
                _ => self.settle_group(&sent, group, answer, time_ms),
            }
        }
        if complete {
            self.fetched(fetches, answer.fetched, waiting, (tick, time_ms));
        } else {
            self.requeue(waiting, None);
        }
    }

    fn settle_group(&mut self, sent: &Sent<'_>, mut group: Group, answer: GroupAnswer, time_ms: Option<i64>) {
        match answer {
            GroupAnswer::Committed => self.committed(group, sent.unconfirmed),
            GroupAnswer::NotBegun => self.again(group, None),
            GroupAnswer::Stale(replies) => self.stale(group, replies, time_ms, sent.begun),
            GroupAnswer::Wait => {
                add(&self.shared.counters.lease_waits, 1);
                let waits = group.transactions.iter().map(|job| job.waits).max().unwrap_or(0);
                let until = Instant::now() + (LEASE_POLL * (1 << waits.min(16))).min(LEASE_POLL_MAX);
                let written: Vec<RawKey> = group.written().cloned().collect();
                written.iter().for_each(|key| self.known.wait(key, until));
                group.transactions.iter_mut().for_each(|job| {
                    job.waits += 1;
                    job.guard.hinder();
                });
                self.again(group, Some(until));
            }
            GroupAnswer::WrongType { key, found } => {
                let key = sent.call.key_at(key).cloned().unwrap_or_default();
                let expected = group.requirements(&self.log_keys).into_iter().find(|r| r.key == key);
                let kind = expected.map_or(Kind::Text, |r| r.kind);
                self.one_to_blame(group, wrong_type(&key, kind, found));
            }
            GroupAnswer::LogFull => {
                let max = group.effects.log.iter().map(|entry| entry.entries_max).min().unwrap_or(0);
                let partition = show(&self.partition);
                self.one_to_blame(group, Error::LogFull { partition, max });
            }
            GroupAnswer::Forbidden { command } => {
                self.one_to_blame(group, forbidden(&self.shared.name, &command));
            }
        }
    }

    /// Replies to the reads that transactions missed.
    fn fetched(
        &mut self,
        fetches: Vec<(RawKey, Read)>,
        values: Vec<Value>,
        waiting: Vec<QueuedTransaction>,
        (tick, time_ms): (u64, Option<i64>),
    ) {
        let mut seen = Reads::default();
        let mut refusal = None;
        for ((key, read), value) in fetches.into_iter().zip(values) {
            match script::reply(&read, value) {
                Ok(reply) => {
                    self.known.saw(&key, &read, reply.clone(), tick);
                    seen.push((key, read, reply));
                }
                Err(text) => refusal = Some(Failure::of_text(&self.shared.name, &text)),
            }
        }
        match refusal {
            Some(Failure::Refused(error)) => return self.refused(vec![], waiting, &error),
            Some(other) => return self.not_executed(vec![], waiting, &other.reason()),
            None => {}
        }
        let seen = Arc::new(Snapshot { reads: seen, time_ms });
        for mut job in waiting.into_iter().rev() {
            job.fresh = Some(seen.clone());
            job.not_before = None;
            job.guard.answer();
            if job.misses > MISSES_BEFORE_CONFLICT {
                // The backend answers; it is the body that does not settle.
                job.guard.hinder();
            }
            self.queue.push_front(job);
        }
    }

    fn committed(&mut self, mut group: Group, unconfirmed: Option<&str>) {
        add(&self.shared.counters.committed, group.transactions.len() as u64);
        if !group.effects.is_empty() {
            group.transactions.iter_mut().for_each(|job| job.leases.ended());
        }
        group.written().for_each(|key| self.known.landed(key, group.tick, true));
        match unconfirmed {
            Some(reason) if !group.effects.is_empty() => {
                let error =
                    Error::OutcomeUnknown { backend: self.shared.name.clone(), reason: reason.into() };
                group.transactions.into_iter().for_each(|job| job.fail(error.clone()));
            }
            _ => group.transactions.into_iter().for_each(QueuedTransaction::finish),
        }
    }

    /// Others changed something the group read: it runs again on the replies that came with the answer.
    fn stale(&mut self, mut group: Group, replies: Vec<Value>, time_ms: Option<i64>, begun: Instant) {
        add(&self.shared.counters.conflicts, group.transactions.len() as u64);
        self.void(&group);
        // It was built on what a commit before it would leave, and that one was not executed: nobody else is to blame.
        let refused = self.problem.as_ref().filter(|(at, _)| *at >= begun).map(|(_, error)| error.clone());
        let now = Instant::now();
        let mut seen = Reads::default();
        for ((key, read, before), value) in std::mem::take(&mut group.compared).into_iter().zip(replies) {
            let Ok(reply) = script::reply(&read, value) else { continue };
            if reply != before {
                self.known.contended(&key, now);
                for job in group.transactions.iter_mut().filter(|_| group.asks) {
                    job.leases.add(&self.leases, &key);
                }
            }
            seen.push((key, read, reply));
        }
        for (key, read, reply) in seen.iter() {
            self.known.saw(key, read, reply.clone(), group.tick);
        }
        let seen = Arc::new(Snapshot { reads: seen, time_ms });
        for mut job in group.transactions.into_iter().rev() {
            job.stale += 1;
            job.waits = 0;
            job.alone = job.stale >= STALE_BEFORE_OWN_GROUP;
            job.fresh = Some(seen.clone());
            match &refused {
                Some(error) => job.guard.set_problem(error.clone()),
                None => job.guard.hinder(),
            }
            job.guard.back();
            self.queue.push_front(job);
        }
    }

    /// A check failed that only one transaction of the group may be guilty of: each is tried alone.
    fn one_to_blame(&mut self, mut group: Group, error: Error) {
        if group.transactions.len() == 1 {
            self.void(&group);
            return group.transactions.into_iter().for_each(|job| job.fail(error.clone()));
        }
        group.transactions.iter_mut().for_each(|job| job.alone = true);
        self.again(group, None);
    }

    /// The server refused the call as a whole. If more than one transaction was in it, each is sent by itself: the others
    /// must not suffer for the one that is refused.
    fn refused(&mut self, groups: Vec<Group>, waiting: Vec<QueuedTransaction>, error: &Error) {
        let mut transactions = Vec::new();
        for group in groups {
            self.void(&group);
            transactions.extend(group.transactions);
        }
        transactions.extend(waiting);
        if transactions.len() == 1 {
            return transactions.into_iter().for_each(|job| job.fail(error.clone()));
        }
        transactions.iter_mut().for_each(|job| job.solo = true);
        self.requeue(transactions, None);
    }

    fn again(&mut self, group: Group, not_before: Option<Instant>) {
        self.void(&group);
        self.requeue(group.transactions, not_before);
    }

    fn requeue(&mut self, transactions: Vec<QueuedTransaction>, not_before: Option<Instant>) {
        for mut job in transactions.into_iter().rev() {
            job.not_before = not_before;
            // Only here and beside: whoever is not queued again was sent, and stays so until it is answered.
            job.guard.back();
            self.queue.push_front(job);
        }
    }

    /// The connection broke: it may be another server that answers next, with another history and other rights.
    fn forget(&mut self) {
        self.known.forget_guesses();
        self.rights.forget();
    }

    /// The group's writes did not happen.
    fn void(&mut self, group: &Group) {
        group.written().for_each(|key| self.known.landed(key, group.tick, false));
    }

    fn not_executed(&mut self, groups: Vec<Group>, waiting: Vec<QueuedTransaction>, reason: &str) {
        let advice = "the backend is starting, failing over or unreachable; the transaction was tried until its deadline";
        let problem = Error::Unavailable { backend: self.shared.name.clone(), reason: reason.into(), advice };
        let pause = |job: &QueuedTransaction| (RETRY_PAUSE * job.attempts.clamp(1, 8)).min(RETRY_PAUSE_MAX);
        let mut transactions = Vec::new();
        for group in groups {
            self.void(&group);
            transactions.extend(group.transactions);
        }
        transactions.extend(waiting);
        for mut job in transactions.into_iter().rev() {
            job.not_before = Some(Instant::now() + pause(&job));
            job.guard.back();
            self.queue.push_front(job);
        }
        // Also those that were not in this call would have failed.
        self.queue.iter().for_each(|job| job.guard.set_problem(problem.clone()));
        self.problem = Some((Instant::now(), problem));
    }

    fn unknown(&mut self, group: Group, reason: &str) {
        self.void(&group);
        if group.effects.is_empty() {
            return group.transactions.into_iter().for_each(|job| job.give_up(&self.shared.name));
        }
        let error = Error::OutcomeUnknown { backend: self.shared.name.clone(), reason: reason.into() };
        group.transactions.into_iter().for_each(|job| job.fail(error.clone()));
    }

    /// The alarm: a write failed after others were made, although everything was checked before.
    fn partial(&mut self, group: Group, message: &str) {
        self.void(&group);
        let keys = group.keys.iter().map(|key| show(key)).collect();
        let error = Error::PartialCommit { reason: message.into(), keys };
        tracing::error!(%error, "a commit failed after its first write");
        group.transactions.into_iter().for_each(|job| job.fail(error.clone()));
    }
}

/// Whether a group with effects was committed: then the sequence's receipt was written.
fn wrote_receipt(answer: &Answer, groups: &[Group]) -> bool {
    let written = |(group, answer): (&Group, &GroupAnswer)| {
        matches!(answer, GroupAnswer::Committed) && !group.effects.is_empty()
    };
    groups.iter().zip(&answer.groups).any(written)
}
