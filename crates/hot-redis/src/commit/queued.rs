//! A transaction on its way through the engine.

use crate::cache::view::Reads;
use crate::commit::lease::Leases;
use crate::distinct::Named;
use crate::limits::{ANSWERS_BEFORE_PROBLEM_IS_OVER, MISSES_BEFORE_TIME_IS_REUSED};
use emberkeep_hot::command::{RawKey, Read, Reply};
use emberkeep_hot::tx::Transaction;
use emberkeep_hot::{Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Replies that came from one atomic call, and the server's time at that call, if it told.
pub(crate) struct Snapshot {
    pub(crate) reads: Reads,
    pub(crate) time_ms: Option<i64>,
}

/// What a run was told of the time.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    /// What the body saw.
    pub(crate) now_ms: i64,
    /// The estimate of the server's time behind it, which the commit compares.
    pub(crate) estimate_ms: i64,
}

/// A transaction, what is known of its reads, and who waits for it.
pub(crate) struct QueuedTransaction {
    pub(crate) transaction: Box<dyn Transaction>,
    pub(crate) seed: u64,
    pub(crate) prefetched: Vec<(RawKey, Read)>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    pub(crate) attempts: u32,
    /// Stale answers so far.
    pub(crate) stale: u32,
    /// Must not share a commit with transactions on the same keys.
    pub(crate) alone: bool,
    /// Must not share a call with any other transaction: a call with it was refused, and somebody is to blame.
    pub(crate) solo: bool,
    /// Runs one after the other that missed a read although the one before it was fetched.
    pub(crate) misses: u32,
    /// The time of its last run, once it has missed often: what it reads may depend on the time, and then it would miss
    /// for ever. A transaction with a time of its own shares its call with nobody.
    pub(crate) time: Option<Time>,
    pub(crate) not_before: Option<Instant>,
    /// The keys of its last run, if it had to wait for one of them: while it must, it need not run again.
    pub(crate) held_up_by: Vec<RawKey>,
    /// Replies that came from one atomic call: a transaction that read nothing else needs no validation.
    pub(crate) fresh: Option<Arc<Snapshot>>,
    /// What it may have leases on, by earlier runs.
    pub(crate) leases: Leases,
    /// Answers in a row that another has the lease.
    pub(crate) waits: u32,
    /// An error that takes the place of the body's result, if its reads prove true.
    pub(crate) verdict: Option<Error>,
    pub(crate) guard: Arc<CancelGuard>,
    pub(crate) reply: oneshot::Sender<Result<Box<dyn Transaction>>>,
}

/// What the caller and the engine must agree on when the caller's time is up: whether the transaction is on its way.
///
/// A transaction with effects is sent only after `send` said yes, and a caller tells "nothing was written" only after
/// `give_up` said yes. Exactly one of the two can.
#[derive(Default)]
pub(crate) struct CancelGuard {
    state: AtomicU8,
    /// Answers so far that others stood in the way.
    hindered: AtomicU32,
    /// Answers so far to reads that it missed.
    answers: AtomicU32,
    /// Why the backend could not be used, for the caller whose deadline passes.
    problem: Mutex<Option<Problem>>,
}

/// Why the backend could not be used.
struct Problem {
    error: Error,
    /// Answers since. One proves little: a server that refuses writes answers reads, and finds a commit stale that was
    /// built on one it refused.
    answers: u32,
}

const QUEUED: u8 = 0;
const SENT: u8 = 1;
const GIVEN_UP: u8 = 2;

impl CancelGuard {
    /// The transaction's effects are about to be sent. `false` = its caller gave up.
    pub(crate) fn send(&self) -> bool {
        let state = self.state.compare_exchange(QUEUED, SENT, Ordering::AcqRel, Ordering::Acquire);
        state != Err(GIVEN_UP)
    }

    /// The transaction's effects are certainly not on their way any more.
    pub(crate) fn back(&self) {
        let _ = self.state.compare_exchange(SENT, QUEUED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The caller's time is up. `false` = the effects may be on their way.
    pub(crate) fn give_up(&self) -> bool {
        self.state.compare_exchange(QUEUED, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.state.load(Ordering::Acquire) == SENT
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.state.load(Ordering::Acquire) == GIVEN_UP
    }

    /// The backend could not be used.
    pub(crate) fn set_problem(&self, problem: Error) {
        *self.problem.lock() = Some(Problem { error: problem, answers: 0 });
    }

    /// The backend answered, and others stood in the way.
    pub(crate) fn hinder(&self) {
        self.hindered.fetch_add(1, Ordering::Relaxed);
        self.was_answered();
    }

    /// The backend answered reads that were missed.
    pub(crate) fn answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.was_answered();
    }

    fn was_answered(&self) {
        let mut problem = self.problem.lock();
        if let Some(known) = &mut *problem {
            known.answers += 1;
            if known.answers >= ANSWERS_BEFORE_PROBLEM_IS_OVER {
                *problem = None;
            }
        }
    }

    /// The error of a caller whose deadline passed with nothing sent: others stood in the way, the backend did, or it
    /// was too short for all the round trips of the body.
    pub(crate) fn too_late(&self, backend: &str, started: Instant) -> Error {
        let (waited, attempts) = (started.elapsed(), self.hindered.load(Ordering::Relaxed));
        let answers = self.answers.load(Ordering::Relaxed);
        match self.problem.lock().as_ref().map(|problem| problem.error.clone()) {
            Some(error) => error,
            None if attempts > 0 => Error::Conflict { waited, attempts },
            None if answers > 0 => Error::Unavailable {
                backend: backend.to_owned(),
                reason: format!(
                    "the deadline passed after {waited:?}; its reads were answered {answers} times"
                ),
                advice: "read together what does not depend on each other, or set a longer deadline",
            },
            None => Error::Unavailable {
                backend: backend.to_owned(),
                reason: format!("no answer within {waited:?}"),
                advice: "check that it runs, can be reached and is not overloaded",
            },
        }
    }
}

impl QueuedTransaction {
    /// Whether all of this came from one atomic call.
    pub(crate) fn has_fresh(&self, reads: &[(RawKey, Read, Reply)]) -> bool {
        let fresh = self.fresh.as_ref();
        let found = |read: &(RawKey, Read, Reply)| {
            fresh.and_then(|fresh| fresh.reads.find(&read.name())).is_some_and(|found| found == read)
        };
        reads.iter().all(found)
    }

    /// Whether that call was made at this time, as exactly as a commit would compare it.
    pub(crate) fn is_fresh_at(&self, estimate_ms: i64, allowance: Duration) -> bool {
        let time = self.fresh.as_ref().and_then(|fresh| fresh.time_ms);
        time.is_some_and(|time| time.abs_diff(estimate_ms) <= allowance.as_millis() as u64)
    }

    /// Whether its call is its own.
    pub(crate) fn is_apart(&self) -> bool {
        self.solo || self.time.is_some()
    }

    /// Its run missed a read, and asked for the time or did not.
    pub(crate) fn missed(&mut self, time: Option<Time>) {
        self.misses += 1;
        self.time = time.filter(|_| self.misses >= MISSES_BEFORE_TIME_IS_REUSED);
    }

    /// Hands the transaction back with its result, or the error that took its place.
    pub(crate) fn finish(self) {
        let result = match self.verdict {
            Some(error) => Err(self.transaction.explain(error)),
            None => Ok(self.transaction),
        };
        // The caller may be gone; that is its right.
        let _ = self.reply.send(result);
    }

    pub(crate) fn fail(self, error: Error) {
        let _ = self.reply.send(Err(self.transaction.explain(error)));
    }

    /// The deadline passed with nothing in in_flight.
    pub(crate) fn give_up(self, backend: &str) {
        let error = self.guard.too_late(backend, self.started);
        self.fail(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_sent_or_given_up_but_never_both() {
        let guard = CancelGuard::default();
        assert!(guard.send() && guard.send(), "a redirect sends it again");
        assert!(!guard.give_up(), "it is on its way");
        guard.back();
        assert!(guard.give_up());
        assert!(!guard.send(), "its caller was told that nothing was written");
        guard.back();
        assert!(guard.is_given_up());
    }

    #[test]
    fn a_problem_of_the_backend_is_over_after_answers_in_a_row() {
        let guard = CancelGuard::default();
        let error = Error::Closed;
        let told = |guard: &CancelGuard| guard.too_late("r", Instant::now());
        guard.set_problem(error.clone());
        guard.hinder();
        guard.answer();
        assert_eq!(told(&guard), error, "two answers prove little");
        guard.set_problem(error.clone());
        (1..ANSWERS_BEFORE_PROBLEM_IS_OVER).for_each(|_| guard.answer());
        assert_eq!(told(&guard), error, "it began anew");
        guard.answer();
        assert!(matches!(told(&guard), Error::Conflict { attempts: 1, .. }), "{:?}", told(&guard));
    }
}
