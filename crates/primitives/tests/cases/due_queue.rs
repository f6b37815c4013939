//! The due queue.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Score, Write};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::DueQueue;
use emberkeep_primitives::due_queue::ServeReport;
use emberkeep_schema::{Id, List, Number, SortedSet, family};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

family! {
    /// What is due.
    pub DUE = "deadline-test:{realm}" {
        kind: SortedSet<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

family! {
    /// What handlers saw, in order.
    pub HANDLED = "deadline-test:{realm}:handled" {
        kind: List<Number<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

/// A long time ago, and one that is far off.
const PAST: i64 = 1_000_000;
const FUTURE: i64 = 4_000_000_000_000;

async fn set(scope: &Scope<Realm>, what: u32, at: i64) {
    scope.transact(move |tx| DueQueue::new(DUE.key()).set(tx, &what, at)).await.unwrap();
}

async fn pop(scope: &Scope<Realm>, limit: usize) -> Vec<(u32, i64)> {
    scope.transact(move |tx| DueQueue::new(DUE.key()).pop_due(tx, limit)).await.unwrap()
}

pub async fn what_is_due_comes_first_and_once(store: Store) {
    let scope = store.scope(Realm::new());
    for (what, at) in [(1, PAST + 2), (2, FUTURE), (3, PAST + 1), (4, PAST + 3)] {
        set(&scope, what, at).await;
    }
    assert_eq!(pop(&scope, 2).await, [(3, PAST + 1), (1, PAST + 2)]);
    assert_eq!(pop(&scope, 10).await, [(4, PAST + 3)]);
    assert_eq!(pop(&scope, 10).await, []);
    let next = scope.transact(|tx| DueQueue::new(DUE.key()).next(tx)).await;
    assert_eq!(next, Ok(Some(FUTURE)));
}

pub async fn a_later_word_replaces_an_earlier_one(store: Store) {
    let scope = store.scope(Realm::new());
    set(&scope, 1, PAST).await;
    set(&scope, 1, FUTURE).await;
    assert_eq!(pop(&scope, 10).await, []);
    assert_eq!(scope.transact(|tx| DueQueue::new(DUE.key()).get(tx, &1)).await, Ok(Some(FUTURE)));
    let cancel = || scope.transact(|tx| DueQueue::new(DUE.key()).cancel(tx, &1));
    assert_eq!((cancel().await, cancel().await), (Ok(true), Ok(false)));
    assert_eq!(scope.transact(|tx| DueQueue::new(DUE.key()).get(tx, &1)).await, Ok(None));
}

pub async fn each_deadline_is_handed_to_one_caller(store: Store) {
    let scope = store.scope(Realm::new());
    share(vec![scope; 8]).await;
}

pub async fn two_processes_share_what_is_due(one: Store, other: Store) {
    let realm = Realm::new();
    let (one, other) = (one.scope(realm), other.scope(realm));
    share(vec![one.clone(), other.clone(), one, other]).await;
}

/// Lets callers pop as long as there is something, and sees that each deadline came to one of them.
async fn share(callers: Vec<Scope<Realm>>) {
    callers[0]
        .transact(|tx| (0..400).try_for_each(|what| DueQueue::new(DUE.key()).set(tx, &what, PAST)))
        .await
        .unwrap_or_else(|error: Error| panic!("{error}"));
    let callers: Vec<_> = callers
        .into_iter()
        .map(|scope| {
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let popped = pop(&scope, 7).await;
                    if popped.is_empty() {
                        return mine;
                    }
                    mine.extend(popped.into_iter().map(|(what, _)| what));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for caller in callers {
        all.extend(caller.await.unwrap());
    }
    let each: HashSet<u32> = all.iter().copied().collect();
    assert_eq!((all.len(), each.len()), (400, 400));
}

pub async fn what_is_no_member_is_dropped_when_its_time_comes(store: Store) {
    let scope = store.scope(Realm::new());
    let key = Bytes::from(DUE.key().to_text(store.key_layout(), scope.partition()));
    let rubbish = move |tx: &mut Tx<'_, Realm>| {
        let entry = (Bytes::from_static(b"no number"), Score::new(5.0)?);
        tx.raw_write(key.clone(), Write::ZAdd(vec![entry]))
    };
    scope.transact(rubbish).await.unwrap();
    set(&scope, 1, PAST).await;
    assert_eq!(pop(&scope, 10).await, [(1, PAST)]);
    assert_eq!(scope.exists(&DUE.key()).await, Ok(false));
}

/// A driver with its shutdown signal.
struct RunningDriver {
    stop: oneshot::Sender<()>,
    task: JoinHandle<ServeReport>,
}

impl RunningDriver {
    async fn stop(self) -> ServeReport {
        drop(self.stop);
        self.task.await.unwrap()
    }
}

/// Starts a driver that writes down what is due, and fails for entries below 10 while `fails` is set.
fn drive(scope: &Scope<Realm>, poll: Duration, fails: &Arc<AtomicBool>) -> RunningDriver {
    let ((stop, stopped), fails) = (oneshot::channel::<()>(), fails.clone());
    let handler = move |tx: &mut Tx<'_, Realm>, what: &u32, _at: i64| {
        tx.rpush(&HANDLED.key(), what)?;
        if *what < 10 && fails.load(Ordering::SeqCst) {
            return Err(Error::Invalid { what: "entry", problem: what.to_string() });
        }
        Ok(())
    };
    let serve = DueQueue::new(DUE.key()).serve(scope, handler).poll_every(poll);
    RunningDriver { stop, task: tokio::spawn(serve.until(async { drop(stopped.await) })) }
}

async fn handled(scope: &Scope<Realm>) -> Vec<u32> {
    scope.lrange(&HANDLED.key(), 0, -1).await.unwrap()
}

/// Waits until so many entries were handled.
async fn wait_for(scope: &Scope<Realm>, count: usize) -> Vec<u32> {
    let started = Instant::now();
    loop {
        let handled = handled(scope).await;
        if handled.len() >= count {
            return handled;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{} of {count} handled", handled.len());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A poll interval that no case waits for.
const NEVER: Duration = Duration::from_secs(3_600);

pub async fn a_driver_handles_what_is_due_in_order(store: Store) {
    let scope = store.scope(Realm::new());
    let fill = |tx: &mut Tx<'_, Realm>| {
        (0..200).try_for_each(|what| DueQueue::new(DUE.key()).set(tx, &what, PAST + i64::from(what)))
    };
    scope.transact(fill).await.unwrap();
    set(&scope, 1_000, FUTURE).await;
    let driver = drive(&scope, NEVER, &Arc::default());
    assert_eq!(wait_for(&scope, 200).await, (0..200).collect::<Vec<u32>>());
    assert_eq!(driver.stop().await, ServeReport { handled: 200, failed: 0 });
    assert_eq!(scope.zcard(&DUE.key()).await, Ok(1));
}

pub async fn a_driver_wakes_for_an_earlier_deadline(store: Store) {
    let scope = store.scope(Realm::new());
    set(&scope, 1_000, FUTURE).await;
    let driver = drive(&scope, NEVER, &Arc::default());
    // Each finds the driver asleep, or about to be.
    for what in 20..40 {
        set(&scope, what, PAST).await;
        wait_for(&scope, what as usize - 19).await;
    }
    let soon = store.now().await.unwrap() + 30;
    set(&scope, 40, soon).await;
    assert_eq!(wait_for(&scope, 21).await, (20..41).collect::<Vec<u32>>());
    assert!(store.now().await.unwrap() >= soon, "nothing is handled early");
    assert_eq!(driver.stop().await, ServeReport { handled: 21, failed: 0 });
}

pub async fn an_entry_that_fails_is_reported_and_does_not_stop_the_others(store: Store) {
    let scope = store.scope(Realm::new());
    for what in [1, 20, 2, 30] {
        set(&scope, what, PAST + i64::from(what)).await;
    }
    let fails = Arc::new(AtomicBool::new(true));
    let driver = drive(&scope, NEVER, &fails);
    assert_eq!(wait_for(&scope, 2).await, [20, 30]);
    fails.store(false, Ordering::SeqCst);
    let mut all = wait_for(&scope, 4).await;
    all.sort_unstable();
    assert_eq!(all, [1, 2, 20, 30]);
    let served = driver.stop().await;
    assert!(served.handled == 4 && served.failed >= 2, "{served:?}");
}

pub async fn many_drivers_share_a_queue(store: Store) {
    drive_together(vec![store.scope(Realm::new()); 8]).await;
}

pub async fn drivers_of_two_processes_share_a_queue(one: Store, other: Store) {
    let realm = Realm::new();
    let (one, other) = (one.scope(realm), other.scope(realm));
    drive_together(vec![one.clone(), other.clone(), one, other]).await;
}

/// Lets drivers work while deadlines are set, and sees that each was handled once.
async fn drive_together(scopes: Vec<Scope<Realm>>) {
    let scope = scopes[0].clone();
    let poll = Duration::from_millis(20);
    let drivers: Vec<_> = scopes.iter().map(|scope| drive(scope, poll, &Arc::default())).collect();
    for what in 0..300 {
        set(&scopes[what as usize % scopes.len()], what, PAST).await;
    }
    let mut all = wait_for(&scope, 300).await;
    all.sort_unstable();
    assert_eq!(all, (0..300).collect::<Vec<u32>>());
    let mut served = 0;
    for driver in drivers {
        served += driver.stop().await.handled;
    }
    assert_eq!((served, handled(&scope).await.len()), (300, 300));
}

/// With a clock of the test's own: a handler that sets its entry anew is called to the millisecond.
pub async fn a_driver_follows_the_engines_clock() {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let scope = Store::new(Arc::new(engine)).scope(Realm::new());
    set(&scope, 7, 1_000_500).await;
    let (found, errors) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (noted, counted) = (found.clone(), errors.clone());
    let handler = move |tx: &mut Tx<'_, Realm>, what: &u32, at: i64| {
        noted.lock().unwrap().push((at, tx.now()));
        DueQueue::new(DUE.key()).set(tx, what, at + 500)
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let serve = DueQueue::new(DUE.key())
        .serve(&scope, handler)
        .on_error(move |_, _: &Error| {
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .poll_every(Duration::from_millis(1));
    let task = tokio::spawn(serve.until(async { drop(stopped.await) }));
    for (advance, calls) in [(499, 0), (1, 1), (499, 1), (1, 2), (1_200, 4)] {
        clock.advance(advance);
        while found.lock().unwrap().len() < calls {
            tokio::task::yield_now().await;
        }
        // The driver looks again and finds nothing: after some of its turns no more has happened.
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(found.lock().unwrap().len(), calls);
    }
    drop(stop);
    assert_eq!(task.await.unwrap(), ServeReport { handled: 4, failed: 0 });
    let found = found.lock().unwrap().clone();
    assert_eq!(
        found,
        [(1_000_500, 1_000_500), (1_001_000, 1_001_000), (1_001_500, 1_002_200), (1_002_000, 1_002_200)]
    );
    assert_eq!(errors.load(Ordering::SeqCst), 0);
}

/// Everything that is logged, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// On one thread, whose log the test reads: errors of a handler are not silent.
pub async fn errors_of_a_handler_are_logged_and_counted() {
    let (log, fails) = (Log::default(), Arc::new(AtomicBool::new(true)));
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let scope = Store::new(Arc::new(Embedded::in_memory())).scope(Realm::new());
    set(&scope, 3, 1).await;
    let driver = drive(&scope, Duration::from_millis(1), &fails);
    let logged = || String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !logged().contains("handler") && Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    let served = driver.stop().await;
    assert!(served.handled == 0 && served.failed >= 1, "{served:?}");
    let logged = logged();
    assert!(logged.contains("WARN") && logged.contains("queue=\"DUE\""), "{logged}");
    assert!(logged.contains("entry"), "the error of the handler is in it: {logged}");
}
