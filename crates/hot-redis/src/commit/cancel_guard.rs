//! The agreement between a caller that stops waiting and the engine that may be sending its transaction.

use crate::limits::ANSWERS_BEFORE_PROBLEM_IS_OVER;
use emberkeep_hot::Error;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Instant;

/// Whether a transaction is being sent or was cancelled, and why it has not committed yet.
///
/// A transaction with effects is sent only after `try_send` returned `true`. A caller reports "nothing was
/// written" only after `try_cancel` returned `true`. Never both.
#[derive(Default)]
pub(crate) struct CancelGuard {
    state: AtomicU8,
    /// Conflicts and leases of other processes so far.
    conflicts: AtomicU32,
    /// Answers so far to reads that it missed.
    answers: AtomicU32,
    /// Why the backend could not be used, for the caller whose deadline passes.
    problem: Mutex<Option<Problem>>,
}

/// Why the backend could not be used.
struct Problem {
    error: Error,
    /// Answers since then. One proves little: a server that refuses writes still answers reads, and finds a
    /// commit stale that was built on one it refused.
    answers: u32,
}

/// Cancels a transaction that was not sent when its caller's future is dropped.
pub(super) struct CancelOnDrop(pub(super) Arc<CancelGuard>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // After an answer this changes nothing: the engine has let go of the transaction.
        self.0.try_cancel();
    }
}

const QUEUED: u8 = 0;
const SENT: u8 = 1;
const CANCELLED: u8 = 2;

impl CancelGuard {
    /// The effects are about to be sent. `false` = the caller cancelled.
    pub(crate) fn try_send(&self) -> bool {
        let state = self.state.compare_exchange(QUEUED, SENT, Ordering::AcqRel, Ordering::Acquire);
        state != Err(CANCELLED)
    }

    /// The effects were certainly not executed and may be sent again.
    pub(crate) fn set_not_executed(&self) {
        let _ = self.state.compare_exchange(SENT, QUEUED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The caller stops waiting. `false` = the effects may have been executed.
    pub(crate) fn try_cancel(&self) -> bool {
        self.state.compare_exchange(QUEUED, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.state.load(Ordering::Acquire) == SENT
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }

    /// The backend could not be used.
    pub(crate) fn set_problem(&self, problem: Error) {
        *self.problem.lock() = Some(Problem { error: problem, answers: 0 });
    }

    /// The backend answered, and another process was faster.
    pub(crate) fn count_conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
        self.weaken_problem();
    }

    /// The backend answered reads that were missed.
    pub(crate) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.weaken_problem();
    }

    fn weaken_problem(&self) {
        let mut problem = self.problem.lock();
        if let Some(current) = &mut *problem {
            current.answers += 1;
            if current.answers >= ANSWERS_BEFORE_PROBLEM_IS_OVER {
                *problem = None;
            }
        }
    }

    /// The error of a caller whose deadline passed with nothing sent: the backend's problem, conflicts, or a
    /// deadline too short for the round trips of the body.
    pub(crate) fn deadline_error(&self, backend: &str, started: Instant) -> Error {
        let (waited, attempts) = (started.elapsed(), self.conflicts.load(Ordering::Relaxed));
        let answers = self.answers.load(Ordering::Relaxed);
        match self.problem.lock().as_ref().map(|problem| problem.error.clone()) {
            Some(error) => error,
            None if attempts > 0 => Error::Conflict { waited, attempts, transaction: None },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_sent_or_cancelled_but_never_both() {
        let guard = CancelGuard::default();
        assert!(guard.try_send() && guard.try_send(), "a redirect sends it again");
        assert!(!guard.try_cancel(), "it is on its way");
        guard.set_not_executed();
        assert!(guard.try_cancel());
        assert!(!guard.try_send(), "its caller has reported that nothing was written");
        guard.set_not_executed();
        assert!(guard.is_cancelled());
    }

    #[test]
    fn a_problem_of_the_backend_is_over_after_answers_in_a_row() {
        let guard = CancelGuard::default();
        let error = Error::Closed;
        let reported = |guard: &CancelGuard| guard.deadline_error("r", Instant::now());
        guard.set_problem(error.clone());
        guard.count_conflict();
        guard.count_answer();
        assert_eq!(reported(&guard), error, "two answers prove little");
        guard.set_problem(error.clone());
        (1..ANSWERS_BEFORE_PROBLEM_IS_OVER).for_each(|_| guard.count_answer());
        assert_eq!(reported(&guard), error, "the count began anew");
        guard.count_answer();
        assert!(matches!(reported(&guard), Error::Conflict { attempts: 1, .. }), "{:?}", reported(&guard));
    }
}
