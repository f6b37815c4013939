//! Waits for a sync without a runtime: a caller registers a waker with the number it waits for.

use super::state::JournalState;
use crate::error::Result;
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Wakers by sequence number. Each sync wakes only those that it made durable.
#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<Vec<(u64, Waker)>>);

impl Waiters {
    /// Wakes all callers that wait for a number up to `through`.
    pub(super) fn wake(&self, through: u64) {
        let ready: Vec<_> = self.0.lock().extract_if(.., |(sequence, _)| *sequence <= through).collect();
        // Outside the lock: a waker may run its task at once.
        for (_, waker) in ready {
            waker.wake();
        }
    }
}

/// The future of [`Journal::wait_durable`](super::Journal::wait_durable).
pub(super) struct WaitDurable<'a> {
    pub(super) state: &'a JournalState,
    pub(super) sequence: u64,
    pub(super) registered: Option<Waker>,
}

impl Future for WaitDurable<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(result) = self.state.durable(self.sequence) {
            return Poll::Ready(result);
        }
        if self.registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        let waker = context.waker().clone();
        let mut waiters = self.state.waiters.0.lock();
        // Check again under the lock that `wake` takes after a sync: either it finds this waker, or this
        // check sees the new number. Otherwise the wake-up could be lost.
        if let Some(result) = self.state.durable(self.sequence) {
            return Poll::Ready(result);
        }
        waiters.push((self.sequence, waker.clone()));
        drop(waiters);
        self.registered = Some(waker);
        Poll::Pending
    }
}
