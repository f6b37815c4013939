//! Consumers with a spool: history is away, and hot state does not hold the outage. Two of them, copies of their
//! folders, and logs that show entries again which are in a spool.

mod arena;
mod folders;

use arena::*;
use emberkeep_history::outbox::{Consumer, DrainError};
use emberkeep_history::{Error, History, HistoryStore};
use emberkeep_hot::Scope;
use emberkeep_hot::command::Write;
use folders::Folder;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const SPOOL_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A history that can be away.
struct Away {
    store: Arc<dyn HistoryStore>,
    is_away: Arc<AtomicBool>,
}

impl Away {
    fn new(folder: &Path) -> Away {
        Away { store: store_in(folder), is_away: Arc::default() }
    }

    fn set(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Relaxed);
    }

    /// As a consumer reaches it.
    fn remote(&self) -> History {
        let is_away = self.is_away.clone();
        History::new(Faults::new(self.store.clone(), move |_| {
            is_away.load(Ordering::Relaxed).then_some(Fault::Before)
        }))
    }

    fn history(&self) -> History {
        History::new(self.store.clone())
    }
}

/// A consumer with a spool, which moves entries as soon as history is away.
fn with_spool(scope: &Scope<Arena>, away: &Away, spool: &Path) -> Consumer {
    let consumer = consumer(scope, &away.remote()).through_spool(spool, SPOOL_BYTES_MAX).unwrap();
    consumer.spool_after(Duration::from_millis(200))
}

/// Moves all of the log into the spool. It tries until history has been away for long enough.
async fn move_all(consumer: &Consumer, scope: &Scope<Arena>) {
    let begun = Instant::now();
    while waiting_in_log(scope).await > 1 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the log was never moved: {:?}", consumer.stats());
        let run = consumer.run(tokio::time::sleep(Duration::from_millis(50)));
        run.await;
    }
}

async fn waiting_in_log(scope: &Scope<Arena>) -> usize {
    scope.log_after(&EVENTS.key(), 0, 10_000).await.unwrap().entries.len()
}

macro_rules! on_both_engines {
    ($($case:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::$case(super::in_memory().scope(super::Arena(1))).await;
            })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let Some(server) = emberkeep_testkit::shared_redis() else { return };
                super::$case(super::on_redis(&server.fresh_db()).await.scope(super::Arena(1))).await;
            })*
        }
    };
}

on_both_engines! {
    an_outage_is_in_the_spool_and_then_in_history, entries_in_two_spools_count_once, a_copied_folder_counts_once,
    a_claim_from_before_the_outage_is_delivered_from_the_spool, a_full_spool_leaves_the_log,
    a_consumer_without_a_spool_goes_on_behind_one, slow_history_gets_smaller_pages,
}

async fn an_outage_is_in_the_spool_and_then_in_history(scope: Scope<Arena>) {
    let folder = Folder::new();
    let away = Away::new(&folder.path().join("history"));
    // However slow this machine is.
    let direct =
        with_spool(&scope, &away, &folder.path().join("unused")).spool_after(Duration::from_secs(60));
    kills(&scope, [7; 10]).await;
    assert_eq!(
        direct.drain_once().await.unwrap().unwrap().delivered,
        10,
        "without an outage it goes directly"
    );
    assert_eq!(direct.stats().spool_bytes, 0, "and uses no spool");
    let consumer = with_spool(&scope, &away, &folder.path().join("spool"));
    for round in 1..=3 {
        away.set(true);
        kills(&scope, [7; 20]).await;
        move_all(&consumer, &scope).await;
        assert!(consumer.stats().spooled_entries >= 20 && consumer.stats().lag_entries >= 20);
        assert!(consumer.stats().last_error.unwrap().contains("a fault of the test"));
        kills(&scope, [8; 5]).await;
        move_all(&consumer, &scope).await;
        assert!(consumer.stats().spooled_entries >= 25);
        assert_eq!(kills_of(&away.history(), 7).await, 10 + 21 * (round - 1));
        away.set(false);
        assert!(consumer.lag().await.unwrap().entries >= 25);
        kills(&scope, [7]).await;
        assert!(consumer.drain_once().await.unwrap().unwrap().delivered >= 26);
        let found = (kills_of(&away.history(), 7).await, kills_of(&away.history(), 8).await);
        assert_eq!(found, (10 + 21 * round, 5 * round));
        assert_eq!((consumer.stats().spooled_entries, consumer.stats().alarms), (0, 0));
        assert_eq!(consumer.lag().await.unwrap().entries, 0);
    }
}

/// The log as it was: what a process leaves that is killed between the sync of its spool and the trim.
async fn put_back(scope: &Scope<Arena>, page: Vec<(u64, u32, KillEvent)>) {
    let entries = page.into_iter().map(|(sequence, mark, event)| {
        let event = serde_json::to_string(&event).unwrap();
        bytes::Bytes::from(format!("{sequence}:{mark:08x}:{event}"))
    });
    let entries: Vec<_> = entries.collect();
    let write = scope.transact_with(entries, |tx, entries| {
        let log = tx.raw_name(&EVENTS.key());
        tx.raw_write(log.clone(), Write::Del)?;
        tx.raw_write(log, Write::RPush(entries.clone()))
    });
    write.await.unwrap();
}

async fn page(scope: &Scope<Arena>) -> Vec<(u64, u32, KillEvent)> {
    let entries = scope.log_after(&EVENTS.key(), 0, 1_000).await.unwrap().entries.into_iter();
    entries.map(|entry| (entry.sequence, entry.mark.unwrap(), entry.event.unwrap())).collect()
}

async fn entries_in_two_spools_count_once(scope: Scope<Arena>) {
    let folder = Folder::new();
    let away = Away::new(&folder.path().join("history"));
    for (round, first_delivers_first) in [true, false].into_iter().enumerate() {
        let places =
            [folder.path().join(format!("one-{round}")), folder.path().join(format!("other-{round}"))];
        away.set(true);
        let before = kills_of(&away.history(), 7).await;
        kills(&scope, [7; 30]).await;
        let (log, lease) = (page(&scope).await, scope.get(&DRAINER.key()).await.unwrap());
        let one = with_spool(&scope, &away, &places[0]);
        move_all(&one, &scope).await;
        put_back(&scope, log).await;
        match lease {
            Some(lease) => scope.put(&DRAINER.key(), lease).await.unwrap(),
            None => drop(scope.del(&DRAINER.key()).await.unwrap()),
        }
        kills(&scope, [7; 5]).await;
        let other = with_spool(&scope, &away, &places[1]);
        move_all(&other, &scope).await;
        assert!(one.stats().spooled_entries >= 30 && other.stats().spooled_entries >= 35);
        away.set(false);
        let order = if first_delivers_first { [&one, &other] } else { [&other, &one] };
        for consumer in order {
            consumer.drain_once().await.unwrap();
        }
        assert_eq!(kills_of(&away.history(), 7).await, before + 35, "round {round}");
    }
}

async fn a_copied_folder_counts_once(scope: Scope<Arena>) {
    let folder = Folder::new();
    let away = Away::new(&folder.path().join("history"));
    let (place, copy) = (folder.path().join("spool"), folder.path().join("copy"));
    away.set(true);
    kills(&scope, [7; 50]).await;
    let consumer = with_spool(&scope, &away, &place);
    move_all(&consumer, &scope).await;
    drop(consumer);
    for log in std::fs::read_dir(&place).unwrap() {
        let log = log.unwrap();
        std::fs::create_dir_all(copy.join(log.file_name())).unwrap();
        for file in std::fs::read_dir(log.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.join(log.file_name()).join(file.file_name())).unwrap();
        }
    }
    let both = [with_spool(&scope, &away, &place), with_spool(&scope, &away, &copy)];
    for consumer in &both {
        kills(&scope, [7; 10]).await;
        move_all(consumer, &scope).await;
    }
    assert!(both.iter().all(|consumer| consumer.stats().spooled_entries >= 60), "{:?}", both[1].stats());
    away.set(false);
    let (one, other) = tokio::join!(both[0].drain_once(), both[1].drain_once());
    let unavailable = |error: &DrainError| error.is_transient();
    assert!([one, other].iter().all(|drained| drained.as_ref().err().is_none_or(unavailable)));
    for consumer in &both {
        consumer.drain_once().await.unwrap();
    }
    assert_eq!(kills_of(&away.history(), 7).await, 70);
}

/// A consumer claims entries and delivers a part of them; then history is away.
async fn a_claim_from_before_the_outage_is_delivered_from_the_spool(scope: Scope<Arena>) {
    for call in ["write_if ember_log_claims", "fold scores", "write kills", "write_if ember_log_positions"] {
        for is_after in [false, true] {
            let folder = Folder::new();
            let away = Away::new(&folder.path().join("history"));
            scope.del(&EVENTS.key()).await.unwrap();
            scope.del(&DRAINER.key()).await.unwrap();
            kills(&scope, [7; 10]).await;
            let failing = Faults::new(away.store.clone(), move |named| {
                let fault = if is_after { Fault::After } else { Fault::Before };
                (named == call).then_some(fault)
            });
            let failed = consumer(&scope, &History::new(failing)).drain_once().await;
            assert!(failed.is_err(), "{call}");
            away.set(true);
            let spooling = with_spool(&scope, &away, &folder.path().join("spool"));
            move_all(&spooling, &scope).await;
            away.set(false);
            // Another one goes on with the log, before the spool is delivered.
            kills(&scope, [7; 5]).await;
            drain(&scope, &away.history()).await;
            spooling.drain_once().await.unwrap();
            assert_eq!(kills_of(&away.history(), 7).await, 15, "{call}, {is_after}");
        }
    }
}

async fn a_full_spool_leaves_the_log(scope: Scope<Arena>) {
    let folder = Folder::new();
    let away = Away::new(&folder.path().join("history"));
    away.set(true);
    let consumer =
        consumer(&scope, &away.remote()).through_spool(folder.path().join("spool"), 1_000).unwrap();
    let consumer = consumer.spool_after(Duration::ZERO);
    kills(&scope, [7; 30]).await;
    let error = loop {
        consumer.run(tokio::time::sleep(Duration::from_millis(20))).await;
        match consumer.stats().last_error {
            Some(error) if error.contains("spool") => break error,
            _ => {}
        }
    };
    assert!(error.contains("full"), "{error}");
    assert_eq!(waiting_in_log(&scope).await, 30, "nothing is trimmed that is not in the spool");
    away.set(false);
    let consumer = consumer.spool_after(Duration::from_secs(60));
    consumer.drain_once().await.unwrap();
    assert_eq!(kills_of(&away.history(), 7).await, 30);
    let busy = Consumer::new(&scope, EVENTS.key(), DRAINER.key(), away.history(), project).unwrap();
    let busy = busy.through_spool(folder.path().join("spool"), 1_000);
    assert!(matches!(busy, Err(Error::Folder { .. })), "one process for a folder");
}

async fn a_consumer_without_a_spool_goes_on_behind_one(scope: Scope<Arena>) {
    let folder = Folder::new();
    let away = Away::new(&folder.path().join("history"));
    let spooling = with_spool(&scope, &away, &folder.path().join("spool"));
    let mut expected = 0;
    for _ in 0..3 {
        away.set(true);
        kills(&scope, [7; 10]).await;
        move_all(&spooling, &scope).await;
        away.set(false);
        kills(&scope, [7; 10]).await;
        let plain = consumer(&scope, &away.history());
        assert_eq!(plain.drain_once().await.unwrap().unwrap().delivered, 10);
        assert_eq!(plain.stats().alarms, 0, "entries in a spool are no set-back");
        expected += 10;
        assert_eq!(kills_of(&away.history(), 7).await, expected);
        spooling.drain_once().await.unwrap();
        expected += 10;
        assert_eq!(kills_of(&away.history(), 7).await, expected);
    }
}

async fn slow_history_gets_smaller_pages(scope: Scope<Arena>) {
    let folder = Folder::new();
    let (gate, pages) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (waiting, counting) = (gate.clone(), pages.clone());
    let slow = Faults::new(store_in(&folder.path().join("history")), move |call| {
        if call == "write_if ember_log_positions" {
            counting.fetch_add(1, Ordering::Relaxed);
        }
        (call == "write kills").then(|| Fault::Wait(waiting.clone()))
    });
    let history = History::new(slow);
    let consumer = consumer(&scope, &history).through_spool(folder.path().join("spool"), SPOOL_BYTES_MAX);
    let consumer = consumer.unwrap().spool_after(Duration::from_millis(20));
    kills(&scope, [7; 20]).await;
    move_all(&consumer, &scope).await;
    gate.add_permits(1_000);
    // However slow this machine is.
    let consumer = consumer.spool_after(Duration::from_secs(60));
    consumer.drain_once().await.unwrap();
    kills(&scope, [7; 600]).await;
    let before = pages.load(Ordering::Relaxed);
    assert_eq!(consumer.drain_once().await.unwrap().unwrap().delivered, 600);
    assert!(
        pages.load(Ordering::Relaxed) - before >= 2,
        "a page has fewer entries after one that took too long"
    );
    assert_eq!(kills_of(&history, 7).await, 620);
    kills(&scope, [7; 300]).await;
    let before = pages.load(Ordering::Relaxed);
    consumer.drain_once().await.unwrap();
    assert_eq!(pages.load(Ordering::Relaxed) - before, 1, "and more when it is quick again");
}
