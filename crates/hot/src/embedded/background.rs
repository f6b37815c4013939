//! The background thread: removes expired keys and rewrites the journal. It is a thread and not a task, so
//! that the engine works without a runtime.
//!
//! Budget: a sweep of [`SWEEP_BUDGET`] every [`SWEEP_PAUSE`]; while sweeps use their budget up, a quarter of
//! one core. It stops when the engine is closed or dropped: a sweep ends early, a rewrite is abandoned.
//! After a panic in a sweep or a rewrite the thread logs it and continues after its pause.

use super::Inner;
use super::{expire, rewrite};
use crate::limits::{SWEEP_BUDGET, SWEEP_PAUSE};
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause after a sweep that did not come to its end.
const BUSY_PAUSE: Duration = Duration::from_millis(SWEEP_BUDGET.as_millis() as u64 * 3);

/// The thread, and how to end it.
pub(super) struct Background {
    stop: Arc<StopSignal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct StopSignal {
    asked: Mutex<bool>,
    wake: Condvar,
}

impl StopSignal {
    /// Waits; `true` when it is time to end.
    fn pause(&self, time: Duration) -> bool {
        let mut asked = self.asked.lock();
        if !*asked {
            self.wake.wait_for(&mut asked, time);
        }
        *asked
    }
}

impl Background {
    /// Starts the thread; without one (a system that refuses threads) the engine still works.
    pub(super) fn start(inner: Arc<Inner>) -> Background {
        let stop = Arc::new(StopSignal::default());
        let asked = stop.clone();
        let thread =
            std::thread::Builder::new().name("ember-sweep".into()).spawn(move || run(&inner, &asked));
        if let Err(error) = &thread {
            tracing::error!(%error, "no thread for the sweep: ended keys keep their memory until they are written");
        }
        Background { stop, thread: Mutex::new(thread.ok()) }
    }

    /// Asks the thread to end and waits for it.
    pub(super) fn stop(&self) {
        *self.stop.asked.lock() = true;
        self.stop.wake.notify_one();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the sweep's thread panicked");
        }
    }
}

fn run(inner: &Inner, stop: &StopSignal) {
    let mut pause = SWEEP_PAUSE;
    while !stop.pause(pause) {
        let cut_short = guarded("sweep", || expire::cycle(inner, SWEEP_BUDGET).cut_short);
        pause = if cut_short == Some(true) { BUSY_PAUSE } else { SWEEP_PAUSE };
        guarded("rewrite", || {
            if inner.wants_rewrite()
                && let Err(error) = rewrite::rewrite(inner)
            {
                tracing::error!(%error, "the journal was not rewritten; it goes on growing");
            }
        });
    }
}

/// Runs a part of the thread's work; `None` if it panicked, also if only its log line did.
fn guarded<T>(what: &str, run: impl FnOnce() -> T) -> Option<T> {
    let ran = catch_unwind(AssertUnwindSafe(run));
    if ran.is_err() {
        // The log may be what panicked.
        let _ = catch_unwind(|| tracing::error!(what, "a background task panicked; it is started again"));
    }
    ran.ok()
}
