//! A transaction on its way through the engine, and its caller's end.

use super::cancel_guard::{CancelGuard, CancelOnDrop};
use super::lease::{LeaseRegistry, Leases};
use crate::cache::{ReadRef, Reads};
use crate::clock::BodyTime;
use crate::limits::*;
use emberkeep_hot::command::{Effects, RawKey, Read, Write};
use emberkeep_hot::engine::TransactionRequest;
use emberkeep_hot::limits::TRANSACTION_DEADLINE_MAX;
use emberkeep_hot::tx::{Event, RawTx, ReadSource, Transaction, run_once};
use emberkeep_hot::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// With which transactions this one may share a commit, from the widest to the narrowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Combine {
    /// With any transactions of its partition.
    #[default]
    Freely,
    /// Not with transactions on the same keys: it has a group of its own.
    OwnGroup,
    /// With none: it has a call of its own.
    OwnCall,
}

/// Replies of one atomic call, and the server's time at that call, if the call asked for it.
pub(crate) struct Snapshot {
    pub(crate) reads: Reads,
    pub(crate) time_ms: Option<i64>,
}

/// A transaction that waits for its commit.
pub(crate) struct QueuedTransaction {
    transaction: Box<dyn Transaction>,
    seed: u64,
    prefetched: Vec<(RawKey, Read)>,
    started: Instant,
    deadline: Instant,
    /// Runs so far; a prefetch counts as one.
    attempts: u32,
    /// Answers so far that it was not executed.
    failures: u32,
    /// Stale answers so far.
    stale: u32,
    combine: Combine,
    /// Its last run set strings under a condition: in a group of its own its answer counts them.
    has_conditions: bool,
    /// Runs in a row that each missed a read although the read missed before was fetched.
    misses: u32,
    /// The time of its last run, once it has missed often: the keys that it reads may depend on the time, and
    /// then it would miss for ever. A transaction with a time of its own has a call of its own.
    reused_time: Option<BodyTime>,
    paused_until: Option<Instant>,
    /// The keys of its last run, if it had to wait for one of them: until that is over it need not run again.
    blocked_on: Vec<RawKey>,
    /// Replies of one atomic call: a transaction that reads nothing else needs no validation.
    snapshot: Option<Arc<Snapshot>>,
    leases: Leases,
    /// Answers in a row that another process has the lease.
    lease_waits: u32,
    /// An error that replaces the body's result, if its reads prove true.
    verdict: Option<Error>,
    guard: Arc<CancelGuard>,
    reply: oneshot::Sender<Result<Box<dyn Transaction>>>,
}

/// The caller's end of a [`QueuedTransaction`]. Dropped before the commit was sent, it cancels the
/// transaction.
pub(crate) struct PendingResult {
    guard: CancelOnDrop,
    started: Instant,
    deadline: Instant,
    answer: oneshot::Receiver<Result<Box<dyn Transaction>>>,
}

impl PendingResult {
    /// Waits until the transaction is answered or its deadline has passed.
    pub(crate) async fn wait(self, backend: &str) -> Result<Box<dyn Transaction>> {
        let unknown = |reason: &str| {
            Err(Error::OutcomeUnknown { backend: backend.to_owned(), reason: reason.to_owned() })
        };
        let guard = &self.guard.0;
        match tokio::time::timeout_at((self.deadline + DEADLINE_GRACE).into(), self.answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) if guard.try_cancel() => Err(Error::Closed),
            Ok(Err(_)) => unknown("the engine ended with the commit in flight"),
            Err(_) if guard.try_cancel() => Err(guard.deadline_error(backend, self.started)),
            Err(_) => unknown("the deadline passed with the commit in flight"),
        }
    }
}

impl QueuedTransaction {
    pub(crate) fn new(order: TransactionRequest) -> (QueuedTransaction, PendingResult) {
        let (reply, answer) = oneshot::channel();
        let (guard, started) = (Arc::<CancelGuard>::default(), Instant::now());
        // Bounded, so that a sum of times does not overflow.
        let deadline = started + order.deadline.min(TRANSACTION_DEADLINE_MAX);
        let pending = PendingResult { guard: CancelOnDrop(guard.clone()), started, deadline, answer };
        let queued = QueuedTransaction {
            transaction: order.transaction,
            seed: order.seed,
            prefetched: order.prefetched,
            started,
            deadline,
            attempts: 0,
            failures: 0,
            stale: 0,
            combine: Combine::Freely,
            has_conditions: false,
            misses: 0,
            reused_time: None,
            paused_until: None,
            blocked_on: vec![],
            snapshot: None,
            leases: Leases::default(),
            lease_waits: 0,
            verdict: None,
            guard,
            reply,
        };
        (queued, pending)
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn guard(&self) -> &Arc<CancelGuard> {
        &self.guard
    }

    /// The name that its caller gave it.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.transaction.name()
    }

    /// A call that it takes part in is sent.
    pub(crate) fn count_round_trip(&mut self) {
        self.transaction.observe(Event::RoundTrip);
    }

    /// Counts an answer that it was not executed. Returns how many there were before.
    pub(crate) fn count_failure(&mut self) -> u32 {
        self.failures += 1;
        self.failures - 1
    }

    /// Whether its caller waits no longer.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        now >= self.deadline || self.guard.is_cancelled() || self.reply.is_closed()
    }

    pub(crate) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    pub(crate) fn pause_until(&mut self, until: Option<Instant>) {
        self.paused_until = until;
    }

    pub(crate) fn blocked_on(&self) -> &[RawKey] {
        &self.blocked_on
    }

    pub(crate) fn block_on(&mut self, keys: Vec<RawKey>) {
        self.blocked_on = keys;
    }

    /// With which transactions it may share its next commit.
    pub(crate) fn combine(&self) -> Combine {
        match (self.reused_time, self.has_conditions) {
            (Some(_), _) => Combine::OwnCall,
            (None, true) => self.combine.max(Combine::OwnGroup),
            (None, false) => self.combine,
        }
    }

    /// One transaction of its batch is at fault: from now on it shares a commit with fewer.
    pub(crate) fn separate(&mut self, combine: Combine) {
        self.combine = self.combine.max(combine);
    }

    pub(crate) fn reused_time(&self) -> Option<BodyTime> {
        self.reused_time
    }

    /// Its prefetched reads are being fetched, which counts as a run.
    pub(crate) fn start_prefetch(&mut self) {
        self.attempts += 1;
    }

    /// The reads that its body will probably make; empty after the first run.
    pub(crate) fn prefetched(&self) -> &[(RawKey, Read)] {
        if self.attempts == 0 { &self.prefetched } else { &[] }
    }

    /// Runs the body. Returns its effects; empty if it does not commit.
    pub(crate) fn run(&mut self, source: &mut dyn ReadSource) -> Effects {
        self.attempts += 1;
        self.verdict = None;
        let mut effects = Effects::default();
        let commit = run_once(&mut *self.transaction, RawTx::new(source, &mut effects, self.seed));
        let commit = commit.unwrap_or_else(|error| {
            self.verdict = Some(error);
            false
        });
        if !commit {
            effects.clear();
        }
        let is_conditional = |(_, write): &(_, Write)| matches!(write, Write::SetIfGreater(..));
        self.has_conditions = effects.writes.iter().any(is_conditional);
        effects
    }

    /// Its run missed a read; `time` is what the body was shown, if it asked.
    pub(crate) fn record_miss(&mut self, time: Option<BodyTime>) {
        self.misses += 1;
        self.reused_time = time.filter(|_| self.misses >= MISSES_BEFORE_TIME_IS_REUSED);
    }

    /// Its run found all reads.
    pub(crate) fn record_hit(&mut self) {
        self.misses = 0;
        self.reused_time = None;
    }

    /// Replaces the body's result by an error, which is reported only if the reads prove true.
    pub(crate) fn set_verdict(&mut self, error: Error) {
        self.verdict = Some(error);
    }

    /// Whether all of these reads came from one atomic call.
    pub(crate) fn has_snapshot_of(&self, reads: &Reads) -> bool {
        let snapshot = self.snapshot.as_ref().map(|snapshot| &snapshot.reads);
        reads.iter().all(|((key, read), reply)| {
            snapshot.and_then(|snapshot| snapshot.get(&ReadRef(key, read))) == Some(reply)
        })
    }

    /// Whether that call was made at this time, as exactly as a commit would compare it.
    pub(crate) fn has_snapshot_at(&self, estimate_ms: i64, allowance: Duration) -> bool {
        let time = self.snapshot.as_ref().and_then(|snapshot| snapshot.time_ms);
        time.is_some_and(|time| time.abs_diff(estimate_ms) <= allowance.as_millis() as u64)
    }

    /// Whether it has lost often enough to ask for a fairness lease.
    pub(crate) fn wants_lease(&self, patience: u32) -> bool {
        self.stale >= patience
    }

    pub(crate) fn leased_keys(&self) -> &[RawKey] {
        self.leases.keys()
    }

    /// It may have been granted a lease on this key.
    pub(crate) fn add_lease(&mut self, registry: &Arc<LeaseRegistry>, key: &RawKey) {
        self.leases.add(registry, key);
    }

    /// Its commit has ended its leases.
    pub(crate) fn end_leases(&mut self) {
        self.leases.end();
    }

    pub(crate) fn lease_waits(&self) -> u32 {
        self.lease_waits
    }

    /// Another process has the lease on one of its keys.
    pub(crate) fn record_lease_wait(&mut self) {
        self.lease_waits += 1;
        self.guard.count_conflict();
    }

    /// Its reads were stale. `problem` = not another process is the reason, but a commit before it that was
    /// not executed.
    pub(crate) fn record_stale(&mut self, snapshot: Arc<Snapshot>, problem: Option<&Error>) {
        self.stale += 1;
        self.lease_waits = 0;
        if self.combine != Combine::OwnCall {
            let lost_often = self.stale >= STALE_BEFORE_OWN_GROUP;
            self.combine = if lost_often { Combine::OwnGroup } else { Combine::Freely };
        }
        self.snapshot = Some(snapshot);
        match problem {
            Some(error) => self.guard.set_problem(error.clone()),
            None => {
                self.guard.count_conflict();
                self.transaction.observe(Event::Conflict);
            }
        }
        self.guard.set_not_executed();
    }

    /// The reads that it missed were answered.
    pub(crate) fn record_fetched(&mut self, snapshot: Arc<Snapshot>) {
        self.snapshot = Some(snapshot);
        self.paused_until = None;
        self.guard.count_answer();
        if self.misses > MISSES_BEFORE_CONFLICT {
            // The backend answers; the body keeps reading other keys.
            self.guard.count_conflict();
        }
    }

    /// It was certainly not executed, and may run again at this time.
    pub(crate) fn record_not_executed(&mut self, paused_until: Option<Instant>) {
        self.paused_until = paused_until;
        self.guard.set_not_executed();
    }

    /// So many of its conditional writes were not made.
    pub(crate) fn record_not_greater(&mut self, count: usize) {
        self.transaction.observe(Event::NotGreater(count));
    }

    /// Returns the transaction with its result, or the error that replaces it.
    pub(crate) fn finish(self) {
        let result = match self.verdict {
            Some(error) => Err(self.transaction.explain(error)),
            None => Ok(self.transaction),
        };
        // The caller may have stopped waiting.
        let _ = self.reply.send(result);
    }

    pub(crate) fn fail(self, error: Error) {
        let _ = self.reply.send(Err(self.transaction.explain(error)));
    }

    /// The deadline passed with nothing in flight.
    pub(crate) fn expire(self, backend: &str) {
        let error = self.guard.deadline_error(backend, self.started);
        self.fail(error);
    }
}
