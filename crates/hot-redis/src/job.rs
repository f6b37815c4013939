//! A step on its way through the engine.

use emberkeep_hot::command::{RawKey, Read, Reply};
use emberkeep_hot::tx::Step;
use emberkeep_hot::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::oneshot;

/// A step, what is known of its reads, and who waits for it.
pub(crate) struct Job {
    pub(crate) step: Box<dyn Step>,
    pub(crate) seed: u64,
    pub(crate) announced: Vec<(RawKey, Read)>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    pub(crate) attempts: u32,
    /// Stale answers so far.
    pub(crate) stale: u32,
    /// Must not share a commit with steps on the same keys.
    pub(crate) alone: bool,
    pub(crate) not_before: Option<Instant>,
    /// Replies that came from one atomic call: a step that read nothing else needs no validation.
    pub(crate) fresh: Vec<(RawKey, Read, Reply)>,
    /// An error that takes the place of the body's result, if its reads prove true.
    pub(crate) verdict: Option<Error>,
    /// Why the backend could not be used, for the caller whose deadline passes.
    pub(crate) problem: Option<Error>,
    /// Whether a commit with this step may be on its way.
    pub(crate) in_flight: Arc<AtomicBool>,
    pub(crate) reply: oneshot::Sender<Result<Box<dyn Step>>>,
}

impl Job {
    /// Hands the step back with its result, or the error that took its place.
    pub(crate) fn finish(self) {
        let result = match self.verdict {
            Some(error) => Err(error),
            None => Ok(self.step),
        };
        // The caller may be gone; that is its right.
        let _ = self.reply.send(result);
    }

    pub(crate) fn fail(self, error: Error) {
        let _ = self.reply.send(Err(error));
    }

    /// The deadline passed with nothing in flight.
    pub(crate) fn give_up(self) {
        let conflict = Error::Conflict { waited: self.started.elapsed(), attempts: self.attempts };
        let error = self.problem.clone().unwrap_or(conflict);
        self.fail(error);
    }

    pub(crate) fn set_in_flight(&self, yes: bool) {
        self.in_flight.store(yes, Ordering::Release);
    }
}
