//! What the partition's task does with a commit that came back: answers its transactions or queues them
//! again.

use super::PartitionTask;
use crate::backoff::Backoff;
use crate::cache::Reads;
use crate::commit::batch::{ClosedBatch, Group};
use crate::commit::in_flight::{InFlight, Outcome};
use crate::commit::queued::{Combine, QueuedTransaction, Snapshot};
use crate::failure::{Failure, forbidden};
use crate::script::{self, Answer, GroupAnswer, Status};
use crate::shared::add;
use emberkeep_hot::command::{Kind, KindFound, Precondition, RawKey, Read, not_an_integer_field, wrong_type};
use emberkeep_hot::store::not_an_entry;
use emberkeep_hot::{Error, show};
use redis::Value;
use std::sync::Arc;
use std::time::Instant;

/// A commit that came back.
pub(super) struct CompletedCommit {
    pub(super) commit: InFlight,
    pub(super) outcome: Outcome,
    pub(super) batch: ClosedBatch,
    /// The tick at which it was sent.
    pub(super) tick: u64,
}

impl CompletedCommit {
    pub(super) fn transactions(&self) -> usize {
        let in_groups: usize = self.batch.groups.iter().map(|group| group.transactions().len()).sum();
        in_groups + self.batch.waiting.len()
    }
}

/// Answers the transactions of a commit or queues them again.
pub(super) fn complete(task: &mut PartitionTask, completed: CompletedCommit) {
    let CompletedCommit { commit, outcome, batch: ClosedBatch { groups, fetches, waiting, .. }, tick } =
        completed;
    let InFlight { mut sequence, check_acl, begun, allowance, .. } = commit;
    // A sequence whose commit may still arrive is never used again.
    match outcome {
        Outcome::Answered { answer, unconfirmed, clock } => {
            task.clock.follow(&clock);
            if let Some(sequence) = sequence.as_mut().filter(|_| wrote_receipt(&answer, &groups)) {
                sequence.record_written(begun);
            }
            task.idle_sequences.extend(sequence);
            if check_acl && !answer.is_restricted {
                add_verified(task, &answer, &groups);
            }
            if matches!(answer.status, Status::ClocksDiffer) {
                let reason = format!(
                    "the transaction's time and the server's differ by more than {allowance:?}: the server's clock was set, or the commit took longer to get there than calls before it"
                );
                return not_executed(task, groups, waiting, &reason);
            }
            let time_ms = answer.time_us.map(|us| us / 1_000);
            Completion { task, begun, unconfirmed, time_ms }.answered(
                answer,
                groups,
                (fetches, waiting, tick),
            );
        }
        Outcome::Executed { committed: passed, unconfirmed } => {
            clear_cache(task);
            for (index, group) in groups.into_iter().enumerate() {
                match passed.get(index) {
                    Some(true) => committed(task, group, unconfirmed.as_deref()),
                    _ => run_again(task, group, None),
                }
            }
            requeue(task, waiting, None);
        }
        Outcome::Cancelled => {
            task.idle_sequences.extend(sequence);
            groups.into_iter().for_each(|group| run_again(task, group, None));
            requeue(task, waiting, None);
        }
        Outcome::NotExecuted { reason, lost } => {
            if lost {
                clear_cache(task);
            } else {
                task.idle_sequences.extend(sequence);
            }
            not_executed(task, groups, waiting, &reason);
        }
        Outcome::Refused(error) => {
            task.idle_sequences.extend(sequence);
            refused(task, groups, waiting, &error);
        }
        Outcome::Unknown { reason } => {
            clear_cache(task);
            groups.into_iter().for_each(|group| unknown(task, group, &reason));
            requeue(task, waiting, None);
        }
    }
}

/// A commit that the script answered.
struct Completion<'a> {
    task: &'a mut PartitionTask,
    begun: Instant,
    /// Why too few replicas have confirmed it.
    unconfirmed: Option<String>,
    time_ms: Option<i64>,
}

impl Completion<'_> {
    /// Handles the answers to every group, then the replies to the reads that transactions missed.
    fn answered(
        mut self,
        answer: Answer,
        groups: Vec<Group>,
        (fetches, waiting, tick): (Vec<(RawKey, Read)>, Vec<QueuedTransaction>, u64),
    ) {
        let failed = match answer.status {
            Status::Done | Status::ClocksDiffer => None,
            Status::SequenceClosed => {
                self.task.idle_sequences.clear();
                groups.into_iter().for_each(|group| run_again(self.task, group, None));
                return requeue(self.task, waiting, None);
            }
            Status::Partial { group, message } => Some((group, message)),
        };
        for (number, (group, answer)) in (1..).zip(groups.into_iter().zip(answer.groups)) {
            match &failed {
                Some((at, message)) if number == *at => partial(self.task, group, message),
                _ => self.group_answered(group, answer),
            }
        }
        match failed {
            None => self.fetched(fetches, answer.fetched, waiting, tick),
            Some(_) => requeue(self.task, waiting, None),
        }
    }

    fn group_answered(&mut self, mut group: Group, answer: GroupAnswer) {
        match answer {
            GroupAnswer::Committed => committed(self.task, group, self.unconfirmed.as_deref()),
            GroupAnswer::NotBegun => run_again(self.task, group, None),
            GroupAnswer::Stale(replies) => self.stale(group, replies),
            GroupAnswer::Leased => {
                add(&self.task.shared.counters.lease_waits, 1);
                let waits =
                    group.transactions().iter().map(QueuedTransaction::lease_waits).max().unwrap_or(0);
                let until = Instant::now() + Backoff::LEASE.pause(waits);
                let keys = group.written().chain(group.appended());
                keys.for_each(|key| self.task.cache.mark_leased(key, until));
                group.transactions_mut().for_each(QueuedTransaction::record_lease_wait);
                run_again(self.task, group, Some(until));
            }
            GroupAnswer::WrongType { requirement, found } => {
                let error = match self.requirement(&group, requirement) {
                    Some(Precondition { key, field: Some(field), .. })
                        if found == KindFound::NotAnInteger =>
                    {
                        not_an_integer_field(&key, &field)
                    }
                    Some(Precondition { key, kind, .. }) => wrong_type(&key, kind, found),
                    None => wrong_type(b"", Kind::Text, found),
                };
                one_at_fault(self.task, group, error);
            }
            GroupAnswer::Overflow { requirement, value } => {
                let error = self.requirement(&group, requirement).map(|required| required.overflow(value));
                let error = error.unwrap_or_else(|| wrong_type(b"", Kind::Text, KindFound::NotAnInteger));
                one_at_fault(self.task, group, error);
            }
            GroupAnswer::LogFull { entry } => {
                let full =
                    group.effects().log.get(entry).map(|append| (show(&append.log), append.entries_max));
                let (key, max) = full.unwrap_or_default();
                one_at_fault(self.task, group, Error::LogFull { key, max });
            }
            GroupAnswer::LogCorrupt { entry } => {
                let log = group.effects().log.get(entry).map(|append| append.log.clone()).unwrap_or_default();
                one_at_fault(self.task, group, not_an_entry(&log));
            }
            GroupAnswer::Forbidden { command } => {
                let error = forbidden(&self.task.shared.name, &command);
                one_at_fault(self.task, group, error);
            }
        }
    }

    /// The requirement of this number in the request.
    fn requirement(&self, group: &Group, number: usize) -> Option<Precondition> {
        group.requirements().into_iter().nth(number)
    }

    /// Another process changed something that the group read: it runs again on the replies that came with the
    /// answer.
    fn stale(&mut self, mut group: Group, replies: Vec<Value>) {
        let task = &mut *self.task;
        add(&task.shared.counters.conflicts, group.transactions().len() as u64);
        void(task, &group);
        // It was built on what a commit before it would leave, and that one was not executed: there was no
        // conflict.
        let problem = task.problem.as_ref().filter(|(at, _)| *at >= self.begun);
        let problem = problem.map(|(_, error)| error.clone());
        let now = Instant::now();
        let mut reads = Reads::default();
        for ((key, read, before), value) in group.take_reads().into_iter().zip(replies) {
            let Ok(reply) = script::reply(&read, value) else { continue };
            if reply != before {
                task.cache.mark_contended(&key, now);
                if group.asks_lease() {
                    let leases = &task.leases;
                    group.transactions_mut().for_each(|transaction| transaction.add_lease(leases, &key));
                }
            }
            reads.insert((key, read), reply);
        }
        for ((key, read), reply) in &reads {
            task.cache.insert(key, read, reply.clone(), group.tick());
        }
        let snapshot = Arc::new(Snapshot { reads, time_ms: self.time_ms });
        for mut transaction in group.into_transactions().into_iter().rev() {
            transaction.record_stale(snapshot.clone(), problem.as_ref());
            task.queue.push_front(transaction);
        }
    }

    /// Replies to the reads that transactions missed.
    fn fetched(
        self,
        fetches: Vec<(RawKey, Read)>,
        values: Vec<Value>,
        waiting: Vec<QueuedTransaction>,
        tick: u64,
    ) {
        let Completion { task, time_ms, .. } = self;
        let mut reads = Reads::default();
        let mut failure = None;
        for ((key, read), value) in fetches.into_iter().zip(values) {
            match script::reply(&read, value) {
                Ok(reply) => {
                    task.cache.insert(&key, &read, reply.clone(), tick);
                    reads.insert((key, read), reply);
                }
                Err(text) => failure = Some(Failure::of_text(&task.shared.name, &text)),
            }
        }
        match failure {
            Some(Failure::Refused(error)) => return refused(task, vec![], waiting, &error),
            Some(other) => return not_executed(task, vec![], waiting, &other.reason()),
            None => {}
        }
        let snapshot = Arc::new(Snapshot { reads, time_ms });
        for mut transaction in waiting.into_iter().rev() {
            transaction.record_fetched(snapshot.clone());
            task.queue.push_front(transaction);
        }
    }
}

/// The commit checked the ACL: what passed need not be checked again for a while.
fn add_verified(task: &mut PartitionTask, answer: &Answer, groups: &[Group]) {
    for (group, answer) in groups.iter().zip(&answer.groups) {
        if matches!(answer, GroupAnswer::Committed) {
            task.acl.add(group.effects());
        }
    }
}

fn committed(task: &mut PartitionTask, mut group: Group, unconfirmed: Option<&str>) {
    add(&task.shared.counters.committed, group.transactions().len() as u64);
    let has_effects = !group.effects().is_empty();
    if has_effects {
        group.transactions_mut().for_each(QueuedTransaction::end_leases);
    }
    group.written().for_each(|key| task.cache.record_answered(key, group.tick(), true));
    group.appended().for_each(|log| task.cache.record_append_answered(log, group.tick()));
    match unconfirmed {
        Some(reason) if has_effects => {
            let error = Error::OutcomeUnknown { backend: task.shared.name.clone(), reason: reason.into() };
            fail_all(group, &error);
        }
        _ => group.into_transactions().into_iter().for_each(QueuedTransaction::finish),
    }
}

/// A check failed that perhaps only one transaction of the group violates: each is tried in a group of its
/// own.
fn one_at_fault(task: &mut PartitionTask, mut group: Group, error: Error) {
    if group.transactions().len() == 1 {
        void(task, &group);
        return fail_all(group, &error);
    }
    group.transactions_mut().for_each(|transaction| transaction.separate(Combine::OwnGroup));
    run_again(task, group, None);
}

/// The server refused the call as a whole. If it had several transactions, each is sent in a call of its own,
/// so that only the one at fault fails.
fn refused(task: &mut PartitionTask, groups: Vec<Group>, waiting: Vec<QueuedTransaction>, error: &Error) {
    let mut transactions = void_all(task, groups, waiting);
    if transactions.len() == 1 {
        return transactions.into_iter().for_each(|transaction| transaction.fail(error.clone()));
    }
    transactions.iter_mut().for_each(|transaction| transaction.separate(Combine::OwnCall));
    requeue(task, transactions, None);
}

fn run_again(task: &mut PartitionTask, group: Group, paused_until: Option<Instant>) {
    void(task, &group);
    requeue(task, group.into_transactions(), paused_until);
}

fn requeue(task: &mut PartitionTask, transactions: Vec<QueuedTransaction>, paused_until: Option<Instant>) {
    for mut transaction in transactions.into_iter().rev() {
        // A transaction that is not queued again counts as sent until it is answered.
        transaction.record_not_executed(paused_until);
        task.queue.push_front(transaction);
    }
}

/// The connection broke: the next answer may come from another server, with another history and another ACL.
fn clear_cache(task: &mut PartitionTask) {
    task.cache.clear();
    task.acl.clear();
}

/// The group's writes did not happen.
fn void(task: &mut PartitionTask, group: &Group) {
    group.written().for_each(|key| task.cache.record_answered(key, group.tick(), false));
    group.appended().for_each(|log| task.cache.record_append_answered(log, group.tick()));
}

fn void_all(
    task: &mut PartitionTask,
    groups: Vec<Group>,
    waiting: Vec<QueuedTransaction>,
) -> Vec<QueuedTransaction> {
    let mut transactions = Vec::new();
    for group in groups {
        void(task, &group);
        transactions.extend(group.into_transactions());
    }
    transactions.extend(waiting);
    transactions
}

fn not_executed(task: &mut PartitionTask, groups: Vec<Group>, waiting: Vec<QueuedTransaction>, reason: &str) {
    let advice =
        "the backend is starting, failing over or unreachable; the transaction was tried until its deadline";
    let problem = Error::Unavailable { backend: task.shared.name.clone(), reason: reason.into(), advice };
    for mut transaction in void_all(task, groups, waiting).into_iter().rev() {
        let pause = Backoff::RETRY.pause(transaction.count_failure());
        transaction.record_not_executed(Some(Instant::now() + pause));
        task.queue.push_front(transaction);
    }
    // Transactions that were not in this call would have failed as well.
    task.queue.iter().for_each(|transaction| transaction.guard().set_problem(problem.clone()));
    task.problem = Some((Instant::now(), problem));
}

fn unknown(task: &mut PartitionTask, group: Group, reason: &str) {
    void(task, &group);
    if group.effects().is_empty() {
        let transactions = group.into_transactions().into_iter();
        return transactions.for_each(|transaction| transaction.expire(&task.shared.name));
    }
    let error = Error::OutcomeUnknown { backend: task.shared.name.clone(), reason: reason.into() };
    fail_all(group, &error);
}

/// A write failed after others were made, although everything was checked before.
fn partial(task: &mut PartitionTask, group: Group, message: &str) {
    void(task, &group);
    let keys = group.keys().iter().map(|key| show(key)).collect();
    let error = Error::PartialCommit { reason: message.into(), keys };
    tracing::error!(%error, "a commit failed after its first write");
    fail_all(group, &error);
}

fn fail_all(group: Group, error: &Error) {
    group.into_transactions().into_iter().for_each(|transaction| transaction.fail(error.clone()));
}

/// Whether a group with effects was committed: then the script wrote the receipt.
fn wrote_receipt(answer: &Answer, groups: &[Group]) -> bool {
    let written = |(group, answer): (&Group, &GroupAnswer)| {
        matches!(answer, GroupAnswer::Committed) && !group.effects().is_empty()
    };
    groups.iter().zip(&answer.groups).any(written)
}
