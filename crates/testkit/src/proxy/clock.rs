//! A precise timer.
//!
//! The runtime's own timer counts whole milliseconds, which is more than the delays we want to
//! imitate. So one thread sleeps, precisely, until the next waiter's time and wakes it, to within
//! about 0.1 ms.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// A sleeping thread wakes this late: Linux rounds its timers by 50 µs, then comes the hand-over to
/// the runtime. Waking that much earlier keeps the error from adding up over both directions.
const LATENESS: Duration = Duration::from_micros(80);

/// A handle to the thread that wakes; the thread ends when the last handle is gone.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    waiters: Sender<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    due: Instant,
    wake: oneshot::Sender<()>,
}

impl Clock {
    pub(super) fn start() -> Self {
        let (waiters, arrivals) = channel();
        std::thread::Builder::new()
            .name("fault-clock".into())
            .spawn(move || keep_time(&arrivals))
            .expect("a thread can be started");
        Self { waiters }
    }

    /// Returns at `due`, or at once if that is past.
    pub(super) async fn until(&self, due: Instant) {
        if due <= Instant::now() + LATENESS / 2 {
            return;
        }
        let due = due.checked_sub(LATENESS).unwrap_or(due);
        let (wake, woken) = oneshot::channel();
        if self.waiters.send(Waiter { due, wake }).is_ok() {
            let _ = woken.await;
        }
    }
}

/// Takes in new waiters and wakes those whose time has come, until no waiter can arrive any more.
fn keep_time(arrivals: &Receiver<Waiter>) {
    let mut waiting: BinaryHeap<Reverse<Waiter>> = BinaryHeap::new();
    loop {
        let arrived = match waiting.peek() {
            None => arrivals.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(Reverse(next)) => arrivals.recv_timeout(next.due.saturating_duration_since(Instant::now())),
        };
        match arrived {
            Ok(waiter) => waiting.push(Reverse(waiter)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        wake_due(&mut waiting);
    }
}

fn wake_due(waiting: &mut BinaryHeap<Reverse<Waiter>>) {
    let now = Instant::now();
    while waiting.peek().is_some_and(|Reverse(next)| next.due <= now) {
        if let Some(Reverse(waiter)) = waiting.pop() {
            // The connection may be gone meanwhile.
            let _ = waiter.wake.send(());
        }
    }
}

impl Ord for Waiter {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Waiter {}
