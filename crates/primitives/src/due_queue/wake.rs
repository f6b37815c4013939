//! Wakes the drivers of this process when an earlier deadline is set.
//!
//! A driver registers the name of its queue while it runs, with the time until which it sleeps. Two stores of
//! one process that use the same name wake each other without need, and no more.

use emberkeep_hot::command::RawKey;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How many drivers run: most processes have none, and then setting a deadline costs nothing more.
static DRIVERS: AtomicUsize = AtomicUsize::new(0);
static SLEEPERS: Mutex<Option<HashMap<RawKey, Vec<Arc<Sleeper>>>>> = Mutex::new(None);

thread_local! {
    /// The queue whose handler this thread runs, and the earliest deadline that the handler set in it.
    static HANDLING: RefCell<Option<(RawKey, Option<i64>)>> = const { RefCell::new(None) };
}

/// Runs a handler of a queue and returns the earliest deadline that it set there. Its driver is awake, and
/// need not be woken for that.
pub(super) fn handling<T>(queue: &RawKey, handler: impl FnOnce() -> T) -> (T, Option<i64>) {
    /// Ends it, also if the handler panics.
    struct HandlingGuard;
    impl Drop for HandlingGuard {
        fn drop(&mut self) {
            HANDLING.set(None);
        }
    }
    HANDLING.set(Some((queue.clone(), None)));
    let _ends = HandlingGuard;
    let result = handler();
    (result, HANDLING.take().and_then(|(_, earliest)| earliest))
}

/// Notes a deadline of the queue whose handler runs. `false` = it is none.
fn noted(queue: &RawKey, at_ms: i64) -> bool {
    HANDLING.with_borrow_mut(|handling| match handling {
        Some((handled, earliest)) if handled == queue => {
            *earliest = Some(earliest.map_or(at_ms, |earliest| earliest.min(at_ms)));
            true
        }
        _ => false,
    })
}

/// A driver that may be asleep.
#[derive(Debug)]
struct Sleeper {
    /// A deadline before this one wakes it, in milliseconds since 1970.
    until_ms: AtomicI64,
    notify: Notify,
}

/// A registered driver, until it is dropped.
pub(super) struct Registration {
    queue: RawKey,
    sleeper: Arc<Sleeper>,
}

fn sleepers() -> MutexGuard<'static, Option<HashMap<RawKey, Vec<Arc<Sleeper>>>>> {
    // Nothing that holds the lock can panic half-way.
    SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the drivers of a queue that sleep beyond a deadline. It is called before the transaction commits, so
/// a driver reads the queue more than once after that.
pub(super) fn deadline_set(queue: impl FnOnce() -> RawKey, at_ms: i64) {
    if DRIVERS.load(Ordering::Acquire) == 0 {
        return;
    }
    let queue = queue();
    if noted(&queue, at_ms) {
        return;
    }
    let sleepers = sleepers();
    for sleeper in sleepers.as_ref().and_then(|sleepers| sleepers.get(&queue)).into_iter().flatten() {
        if at_ms < sleeper.until_ms.load(Ordering::Acquire) {
            sleeper.notify.notify_one();
        }
    }
}

impl Registration {
    /// Registers a driver that is awake.
    pub(super) fn new(queue: RawKey) -> Registration {
        let sleeper = Arc::new(Sleeper { until_ms: AtomicI64::new(i64::MAX), notify: Notify::new() });
        let mut sleepers = sleepers();
        sleepers.get_or_insert_default().entry(queue.clone()).or_default().push(sleeper.clone());
        DRIVERS.fetch_add(1, Ordering::AcqRel);
        Registration { queue, sleeper }
    }

    /// The driver is about to read the queue: every deadline that is set from now on wakes it afterwards.
    pub(super) fn reads(&self) {
        self.sleeper.until_ms.store(i64::MAX, Ordering::Release);
    }

    /// Waits until an earlier deadline than `until_ms` is set.
    pub(super) async fn earlier(&self, until_ms: i64) {
        self.sleeper.until_ms.store(until_ms, Ordering::Release);
        self.sleeper.notify.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut sleepers = sleepers();
        if let Some(sleepers) = sleepers.as_mut()
            && let Some(drivers) = sleepers.get_mut(&self.queue)
        {
            drivers.retain(|driver| !Arc::ptr_eq(driver, &self.sleeper));
            if drivers.is_empty() {
                sleepers.remove(&self.queue);
            }
        }
        DRIVERS.fetch_sub(1, Ordering::AcqRel);
    }
}
