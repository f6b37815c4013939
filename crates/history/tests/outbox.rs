//! The outbox: hot state and history, both real, on the embedded engine and on Redis.

mod arena;
mod folders;

use arena::*;
use emberkeep_history::outbox::Consumer;
use emberkeep_history::testing::NOW;
use emberkeep_history::{Batch, History, LogState, Rejection, Source};
use emberkeep_hot::command::Write;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::LogPosition;
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_primitives::log_feed::{FeedError, FeedStats, LogReader};
use emberkeep_schema::Timestamp;
use folders::Folder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Waits for something that another task does.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
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
    events_become_rows_and_totals, a_pass_that_fails_anywhere_is_repeated, two_consumers_at_once,
    a_log_that_was_removed, a_full_outbox_refuses, entries_that_history_cannot_take, more_than_a_page,
    ends_that_another_program_overwrote, a_full_log_whose_last_entry_was_overwritten, a_dead_letter_counts_nowhere,
    a_message_wakes, history_away_for_a_while, a_source_that_was_closed, a_paused_consumer_does_not_trim,
    acknowledged_entries_are_trimmed_by_the_next_consumer, a_dead_letter_survives_a_failed_delivery,
    large_elements_of_another_program_do_not_stop_a_log, a_reader_that_fails_does_not_stop_the_delivery,
}

async fn events_become_rows_and_totals(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    kills(&scope, [7, 7, 8]).await;
    assert_eq!(drain(&scope, &history).await.delivered, 3);
    assert_eq!((kills_of(&history, 7).await, kills_of(&history, 8).await), (2, 1));
    assert_eq!(drain(&scope, &history).await.delivered, 0);
    let last = kill(&scope, 7).await.unwrap();
    assert_eq!(drain(&scope, &history).await.delivered, 1);
    assert_eq!(kills_of(&history, 7).await, 3);
    assert!(history.get(LastKill::key(7)).await.unwrap().is_some());
    let page = scope.log_after(&EVENTS.key(), 0, 10).await.unwrap();
    assert_eq!(page.entries.len(), 1, "one entry stays: it carries the sequence");
    assert_eq!(page.entries[0].event.as_ref().unwrap(), &last);
}

/// Every call of the store fails in turn, before and after its effect.
async fn a_pass_that_fails_anywhere_is_repeated(scope: Scope<Arena>) {
    let folder = Folder::new();
    let store = store_in(folder.path());
    let mut expected = 0;
    for is_after in [false, true] {
        for failing in 0..12 {
            let calls = AtomicU32::new(0);
            let faulty = Faults::new(store.clone(), move |_| {
                let is_now = calls.fetch_add(1, Ordering::Relaxed) == failing;
                is_now.then_some(if is_after { Fault::After } else { Fault::Before })
            });
            kills(&scope, [7, 7, 8]).await;
            expected += 2;
            let first = consumer(&scope, &History::new(faulty)).drain_once().await;
            let history = History::new(store.clone());
            drain(&scope, &history).await;
            assert_eq!(kills_of(&history, 7).await, expected, "call {failing}, {first:?}");
        }
    }
}

async fn two_consumers_at_once(scope: Scope<Arena>) {
    const EVENTS_EACH: i64 = 400;
    let folder = Folder::new();
    let history = history_in(folder.path());
    let stop = Arc::new(Semaphore::new(0));
    let run = |_| {
        let (consumer, stop) = (Arc::new(consumer(&scope, &history)), stop.clone());
        let running = consumer.clone();
        let task = tokio::spawn(async move { running.run(async { drop(stop.acquire().await) }).await });
        (consumer, task)
    };
    let running: Vec<_> = (0..2).map(run).collect();
    // Consumers that ignore the lease: as if each had been paused while the other acquired it.
    let outsiders = (0..2).map(|_| {
        let (scope, history) = (scope.clone(), history.clone());
        tokio::spawn(async move {
            for _ in 0..60 {
                let _ = scope.del(&DRAINER.key()).await;
                let _ = consumer(&scope, &history).drain_once().await;
            }
        })
    });
    let outsiders: Vec<_> = outsiders.collect();
    let writers = (0..4).map(|_| {
        tokio::spawn({
            let scope = scope.clone();
            async move { kills(&scope, (0..EVENTS_EACH).map(|n| n % 5)).await }
        })
    });
    for task in writers.collect::<Vec<_>>().into_iter().chain(outsiders) {
        task.await.unwrap();
    }
    until("all was drained", async || {
        let last = scope.log_last(&EVENTS.key()).await.unwrap().sequence;
        let name = running[0].0.log();
        history.acknowledged(name).await.unwrap().is_some_and(|state| state.sequence == last)
    })
    .await;
    stop.add_permits(2);
    for (consumer, task) in running {
        task.await.unwrap();
        assert_eq!(consumer.stats().alarms, 0);
    }
    for killer in 0..5 {
        assert_eq!(kills_of(&history, killer).await, 4 * EVENTS_EACH / 5, "killer {killer}");
    }
}

async fn a_log_that_was_removed(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let consumer = consumer(&scope, &history);
    for round in 1..=3 {
        kills(&scope, [7; 5]).await;
        consumer.drain_once().await.unwrap();
        kills(&scope, [7]).await;
        // The last event is lost; the sequences begin anew.
        scope.del(&EVENTS.key()).await.unwrap();
        consumer.drain_once().await.unwrap();
        consumer.drain_once().await.unwrap();
        assert_eq!(consumer.stats().alarms, round, "one alarm for each removal");
        assert_eq!(kills_of(&history, 7).await, 5 * round as i64);
    }
    kills(&scope, [7; 9]).await;
    consumer.drain_once().await.unwrap();
    assert_eq!((kills_of(&history, 7).await, consumer.stats().alarms), (24, 3));
}

async fn a_full_outbox_refuses(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let append = || {
        let event = KillEvent::new(Uuid::new_v4(), 7, NOW);
        scope.transact_with(event, |tx, event| {
            tx.incr_by(&KILLS.key(), 1)?;
            tx.append(&FEW.key(), event)
        })
    };
    let consumer =
        emberkeep_history::outbox::Consumer::new(&scope, FEW.key(), DRAINER.key(), history.clone(), project);
    let consumer = consumer.unwrap();
    let mut taken = 0;
    for _ in 0..3 {
        loop {
            match append().await {
                Ok(()) => taken += 1,
                Err(Error::LogFull { max, .. }) => break assert_eq!(max, 8),
                Err(other) => panic!("{other}"),
            }
        }
        consumer.drain_once().await.unwrap();
        assert_eq!(kills_of(&history, 7).await, taken, "what was taken is in history");
    }
    assert_eq!(taken, 8 + 7 + 7, "the entry that the consumer stands at takes a place");
    assert_eq!(scope.get(&KILLS.key()).await.unwrap(), Some(taken), "a refused event changed nothing");
}

async fn entries_that_history_cannot_take(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let consumer = consumer(&scope, &history);
    let day = 24 * 60 * 60 * 1000;
    kills(&scope, [7, REJECTED, PANICS]).await;
    kill_by(&scope, KillEvent::new(Uuid::new_v4(), 7, NOW + 3 * day)).await.unwrap();
    kill_by(&scope, KillEvent::new(Uuid::new_v4(), 7, -1)).await.unwrap();
    // Sums that leave 64 bits: the second one.
    kills(&scope, [7, HEAVY, 7, HEAVY, 7]).await;
    scope
        .transact(|tx| {
            let log = tx.raw_name(&EVENTS.key());
            let strange = [&b"11:0000000b:{\"killer\":\"seven\"}"[..], b"not an entry"];
            for entry in strange {
                tx.raw_write(
                    log.clone(),
                    emberkeep_hot::command::Write::RPush(vec![bytes::Bytes::from_static(entry)]),
                )?;
            }
            let last = bytes::Bytes::from(format!(
                "13:0000000d:{{\"id\":\"{}\",\"killer\":7,\"at\":{NOW}}}",
                Uuid::new_v4()
            ));
            tx.raw_write(log, emberkeep_hot::command::Write::RPush(vec![last]))
        })
        .await
        .unwrap();
    for _ in 0..2 {
        let drained = consumer.drain_once().await.unwrap().unwrap();
        assert!([(13, 7), (0, 0)].contains(&(drained.delivered, drained.dead_letters)), "{drained:?}");
        let letters = dead_letters(&history, consumer.log()).await;
        let reasons: Vec<_> =
            letters.iter().map(|letter| (letter.sequence, letter.reason.as_str())).collect();
        let expected = [
            (2, "no such player"),
            (3, "panicked"),
            (4, "more than a day after now"),
            (5, "the time -1"),
            (9, "overflow"),
            (11, "decoded"),
            (12, "external client"),
        ];
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        for ((sequence, reason), (expected_sequence, part)) in reasons.iter().zip(expected) {
            assert!(*sequence == expected_sequence && reason.contains(part), "{sequence}: {reason}");
        }
        assert_eq!(letters[6].entry, b"not an entry");
        assert_eq!((kills_of(&history, 7).await, kills_of(&history, HEAVY).await), (5, 1));
    }
    assert_eq!(consumer.stats().dead_letters, 7);
}

async fn ends_that_another_program_overwrote(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let consumer = consumer(&scope, &history);
    let drained = async || {
        let drained = consumer.drain_once().await.unwrap().unwrap();
        (drained.delivered, drained.dead_letters)
    };
    let overwrite = |place| change_log(&scope, Write::LSet(place, "odd".into()));
    kills(&scope, [7; 5]).await;
    overwrite(0).await;
    overwrite(-1).await;
    assert_eq!(drained().await, (5, 2));
    let letters = dead_letters(&history, consumer.log()).await;
    let found: Vec<_> = letters.iter().map(|letter| (letter.sequence, &letter.entry[..])).collect();
    assert_eq!(found, [(1, &b"odd"[..]), (5, &b"odd"[..])]);
    assert!(letters[0].reason.contains("external client"), "{}", letters[0].reason);
    assert_eq!(consumer.stats().alarms, 2);
    // Appending goes on behind it, and nothing comes again.
    kills(&scope, [7; 2]).await;
    assert_eq!((drained().await, drained().await), ((2, 0), (0, 0)));
    // The only entry that is left: the log does not know its numbers any more, and they grow all the same.
    overwrite(-1).await;
    assert_eq!((drained().await, consumer.stats().alarms), ((0, 0), 3));
    let before = scope.log_last(&EVENTS.key()).await.unwrap().sequence;
    kills(&scope, [7; 3]).await;
    let after = scope.log_last(&EVENTS.key()).await.unwrap().sequence;
    assert!(before == 0 && after > 1_000_000, "{before}, {after}");
    assert_eq!((drained().await, drained().await), ((4, 1), (0, 0)));
    // What was added at the ends.
    change_log(&scope, Write::LPush(vec!["odd".into()])).await;
    change_log(&scope, Write::RPush(vec!["odd".into(), "odder".into()])).await;
    kills(&scope, [7; 2]).await;
    assert_eq!((drained().await, drained().await), ((4, 2), (0, 0)));
    assert_eq!(scope.log_last(&EVENTS.key()).await.unwrap().sequence, after + 4);
    assert_eq!((kills_of(&history, 7).await, consumer.stats().alarms), (3 + 2 + 3 + 2, 6));
}

async fn a_full_log_whose_last_entry_was_overwritten(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let consumer =
        emberkeep_history::outbox::Consumer::new(&scope, FEW.key(), DRAINER.key(), history.clone(), project);
    let consumer = consumer.unwrap();
    let append = || {
        let event = KillEvent::new(Uuid::new_v4(), 7, NOW);
        scope.transact_with(event, |tx, event| tx.append(&FEW.key(), event))
    };
    for _ in 0..8 {
        append().await.unwrap();
    }
    let overwrite = |tx: &mut emberkeep_hot::Tx<'_, Arena>| {
        tx.raw_write(tx.raw_name(&FEW.key()), Write::LSet(-1, "odd".into()))
    };
    scope.transact(overwrite).await.unwrap();
    assert!(matches!(append().await, Err(Error::LogFull { .. })));
    assert_eq!(consumer.drain_once().await.unwrap().unwrap().dead_letters, 1);
    append().await.expect("there is room again");
    consumer.drain_once().await.unwrap();
    assert_eq!(kills_of(&history, 7).await, 8);
    assert_eq!(scope.log_after(&FEW.key(), 0, 100).await.unwrap().entries.len(), 1);
}

async fn a_dead_letter_counts_nowhere(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let project = project_with_strength;
    let consumer = emberkeep_history::outbox::Consumer::new(
        &scope,
        EVENTS.key(),
        DRAINER.key(),
        history.clone(),
        project,
    );
    let consumer = consumer.unwrap();
    // The strength of the second strong one does not fit.
    kills(&scope, [7, STRONG, 7, STRONG, 7]).await;
    let drained = consumer.drain_once().await.unwrap().unwrap();
    assert_eq!((drained.delivered, drained.dead_letters), (5, 1));
    assert_eq!((kills_of(&history, 7).await, kills_of(&history, STRONG).await), (3, 1));
    let strength = history.totals::<Strength>(STRONG).await.unwrap().unwrap().sums.strength;
    assert_eq!(strength, i64::MAX / 2 + 1);
}

/// The weight of a kill at an odd time fits once.
fn project_by_time(event: &KillEvent, batch: &mut Batch) -> Result<(), Rejection> {
    let timestamp = Timestamp(event.at);
    batch.insert(Kill { timestamp, event_id: event.id, killer_id: event.killer })?;
    let weight = if event.at % 2 == 1 { i64::MAX / 2 + 1 } else { 1 };
    batch.add(event.killer, timestamp, Score { kills: 1, weight })
}

/// What cannot be added is lettered, what follows is added, then the delivery fails.
async fn a_dead_letter_survives_a_failed_delivery(scope: Scope<Arena>) {
    for failing in ["write kills", "write ember_dead_letters"] {
        let folder = Folder::new();
        let history = history_in(folder.path());
        scope.del(&EVENTS.key()).await.unwrap();
        scope.del(&DRAINER.key()).await.unwrap();
        for at in [NOW + 1, NOW + 1, NOW] {
            kill_by(&scope, KillEvent::new(Uuid::new_v4(), 7, at)).await.unwrap();
        }
        let calls = AtomicU32::new(0);
        // The first one is of the kill that counts.
        let nth = if failing == "write kills" { 1 } else { 0 };
        let faults = Faults::new(history.store().clone(), move |call| {
            let is_it = call == failing && calls.fetch_add(1, Ordering::Relaxed) == nth;
            is_it.then_some(Fault::Before)
        });
        let consumer = |history: History| {
            Consumer::new(&scope, EVENTS.key(), DRAINER.key(), history, project_by_time).unwrap()
        };
        let failed = consumer(History::new(faults)).drain_once().await;
        assert!(failed.is_err(), "{failing}");
        let drained = consumer(history.clone()).drain_once().await.unwrap().unwrap();
        assert_eq!((drained.delivered, drained.dead_letters), (3, 1), "{failing}");
        let letters = dead_letters(&history, consumer(history.clone()).log()).await;
        assert_eq!(letters.len(), 1, "{failing}");
        assert_eq!(kills_of(&history, 7).await, 2, "{failing}: an event counts or has a letter");
    }
}

async fn large_elements_of_another_program_do_not_stop_a_log(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    kills(&scope, [7]).await;
    // The largest that are read at all, and one that is not.
    for bytes in [1_000_000, 1_048_500, 400_000, 1_500_000] {
        change_log(&scope, Write::RPush(vec![bytes::Bytes::from(vec![b'x'; bytes])])).await;
    }
    kills(&scope, [7]).await;
    let consumer = consumer(&scope, &history);
    let mut found = 0;
    for _ in 0..6 {
        found += consumer.drain_once().await.unwrap().unwrap().dead_letters;
    }
    assert_eq!((found, kills_of(&history, 7).await), (4, 2));
    let letter = &dead_letters(&history, consumer.log()).await[0];
    assert_eq!(letter.entry.len(), emberkeep_history::limits::SPOOL_EVENT_BYTES_MAX);
}

/// A reader that has read everything, if it says how far it is.
struct Beside {
    scope: Scope<Arena>,
    fails: bool,
}

impl LogReader for Beside {
    fn feed_once(&self) -> Pending<'_, Result<u64, FeedError>> {
        Box::pin(async { Ok(0) })
    }

    fn follow(&self) -> Pending<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn position(&self) -> Pending<'_, Result<LogPosition, Error>> {
        Box::pin(async move {
            match self.fails {
                true => Err(Error::Closed),
                false => self.scope.log_last(&EVENTS.key()).await,
            }
        })
    }

    fn stats(&self) -> FeedStats {
        FeedStats::default()
    }
}

async fn a_reader_that_fails_does_not_stop_the_delivery(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let beside = |fails| Arc::new(Beside { scope: scope.clone(), fails });
    let failing = consumer(&scope, &history).with_reader(beside(true));
    for round in 1..=3 {
        kills(&scope, [7; 10]).await;
        assert_eq!(failing.drain_once().await.unwrap().unwrap().delivered, 10, "round {round}");
        assert_eq!(kills_of(&history, 7).await, 10 * round);
    }
    assert!(failing.stats().errors > 0, "it is counted");
    let left = async || scope.log_after(&EVENTS.key(), 0, 100).await.unwrap().entries.len();
    assert_eq!(left().await, 30, "nothing is trimmed that the reader may not have");
    let drained = consumer(&scope, &history).with_reader(beside(false)).drain_once().await.unwrap().unwrap();
    assert_eq!((drained.delivered, left().await), (0, 1));
}

async fn more_than_a_page(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    for _ in 0..5 {
        let append = scope.transact(|tx| {
            (0..500u128).try_for_each(|_| {
                let id = (tx.random() as u128) << 64 | tx.random() as u128;
                tx.append(&EVENTS.key(), &KillEvent::new(Uuid::from_u128(id), (id % 10) as i64, NOW))
            })
        });
        append.await.unwrap();
    }
    assert_eq!(drain(&scope, &history).await.delivered, 2_500);
    let mut sum = 0;
    for killer in 0..10 {
        sum += kills_of(&history, killer).await;
    }
    assert_eq!(sum, 2_500);
    assert_eq!(scope.log_after(&EVENTS.key(), 0, 10).await.unwrap().entries.len(), 1);
}

async fn a_message_wakes(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    // It does not poll while the test runs.
    let consumer = Arc::new(consumer(&scope, &history).poll_every(Duration::from_secs(3_600)));
    let running = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.run(std::future::pending()).await }
    });
    kill(&scope, 7).await.unwrap();
    until("the first pass", async || rows_of(&history, 7).await == 1).await;
    for expected in 2..=5 {
        kill(&scope, 7).await.unwrap();
        let committed = Instant::now();
        until("a delivery", async || rows_of(&history, 7).await == expected).await;
        assert!(committed.elapsed() < Duration::from_secs(1), "{:?}", committed.elapsed());
    }
    until("the acknowledgement", async || consumer.stats().delivered == 5).await;
    assert_eq!((consumer.stats().lag_entries, kills_of(&history, 7).await), (0, 5));
    assert!(consumer.stats().is_holder);
    running.abort();
}

async fn history_away_for_a_while(scope: Scope<Arena>) {
    let folder = Folder::new();
    let store = store_in(folder.path());
    let away = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_away = away.clone();
    let faulty = Faults::new(store.clone(), move |call| {
        let is_write = call.starts_with("write") || call.starts_with("fold");
        (is_write && is_away.load(Ordering::Relaxed)).then_some(Fault::Before)
    });
    let consumer = Arc::new(consumer(&scope, &History::new(faulty)).poll_every(Duration::from_millis(50)));
    let running = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.run(std::future::pending()).await }
    });
    kills(&scope, [7; 20]).await;
    until("the lag is seen", async || {
        let stats = consumer.stats();
        stats.lag_entries == 20 && stats.errors > 1 && stats.oldest_age > Duration::ZERO
    })
    .await;
    assert!(consumer.stats().last_error.unwrap().contains("a fault of the test"));
    assert_eq!(kills_of(&History::new(store.clone()), 7).await, 0);
    let stored = scope.log_after(&EVENTS.key(), 0, 100).await.unwrap().entries.len();
    assert_eq!(stored, 20, "nothing is trimmed before it is acknowledged");
    away.store(false, Ordering::Relaxed);
    until("it goes on by itself", async || rows_of(&History::new(store.clone()), 7).await == 20).await;
    until("the error is gone", async || consumer.stats().last_error.is_none()).await;
    running.abort();
}

async fn a_source_that_was_closed(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    let consumer = consumer(&scope, &history);
    for round in 1..=3 {
        kills(&scope, [7; 4]).await;
        consumer.drain_once().await.unwrap();
        let state = history.acknowledged(consumer.log()).await.unwrap().unwrap();
        assert_eq!(kills_of(&history, 7).await, 4 * round as i64);
        assert_eq!(consumer.stats().alarms, round - 1);
        let source = Source::of_log("1", "log:kills:1", &state.incarnation);
        history.close_source::<Score>(&source).await.unwrap();
    }
}

/// A consumer reads a page and is paused; meanwhile the log is drained, removed and written anew.
async fn a_paused_consumer_does_not_trim(scope: Scope<Arena>) {
    let folder = Folder::new();
    let store = store_in(folder.path());
    let history = History::new(store.clone());
    kills(&scope, [7; 10]).await;
    let gate = Arc::new(Semaphore::new(0));
    let (entered, waiting) = (Arc::new(Semaphore::new(0)), gate.clone());
    let signal = entered.clone();
    let faulty = Faults::new(store, move |call| {
        (call == "write_if ember_log_positions").then(|| {
            signal.add_permits(1);
            Fault::Wait(waiting.clone())
        })
    });
    let paused = consumer(&scope, &History::new(faulty));
    let pausing = tokio::spawn(async move { paused.drain_once().await });
    entered.acquire().await.unwrap().forget();
    // The lease passes to another one.
    scope.del(&DRAINER.key()).await.unwrap();
    drain(&scope, &history).await;
    scope.del(&EVENTS.key()).await.unwrap();
    kills(&scope, [8; 15]).await;
    gate.add_permits(100);
    pausing.await.unwrap().unwrap();
    drain(&scope, &history).await;
    assert_eq!((kills_of(&history, 7).await, kills_of(&history, 8).await), (10, 15));
}

async fn acknowledged_entries_are_trimmed_by_the_next_consumer(scope: Scope<Arena>) {
    let folder = Folder::new();
    let history = history_in(folder.path());
    kills(&scope, [7; 3]).await;
    let page = scope.log_after(&EVENTS.key(), 0, 10).await.unwrap();
    drain(&scope, &history).await;
    // As if it had been killed between the acknowledgement and the trim.
    let entries = page.entries.iter().map(|entry| {
        let event = serde_json::to_string(entry.event.as_ref().unwrap()).unwrap();
        bytes::Bytes::from(format!("{}:{:08x}:{event}", entry.sequence, entry.mark.unwrap()))
    });
    let entries: Vec<_> = entries.collect();
    scope
        .transact_with(entries, |tx, entries| {
            let log = tx.raw_name(&EVENTS.key());
            tx.raw_write(log.clone(), emberkeep_hot::command::Write::Del)?;
            tx.raw_write(log, emberkeep_hot::command::Write::RPush(entries.clone()))
        })
        .await
        .unwrap();
    let consumer = consumer(&scope, &history);
    assert_eq!(consumer.drain_once().await.unwrap().unwrap().delivered, 0);
    assert_eq!(scope.log_after(&EVENTS.key(), 0, 10).await.unwrap().entries.len(), 1);
    assert_eq!((kills_of(&history, 7).await, consumer.stats().alarms), (3, 0));
}

/// On a clock of its own: the paused consumer still believes that it has the lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_was_paused_for_longer_than_its_lease() {
    let clock = ManualClock::at(NOW);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let scope = Store::new(Arc::new(engine)).scope(Arena(1));
    let folder = Folder::new();
    let store = store_in(folder.path());
    let history = History::new(store.clone());
    for call in ["fold scores", "write kills", "write_if ember_log_claims", "write_if ember_log_positions"] {
        let before = kills_of(&history, 7).await;
        kills(&scope, [7; 10]).await;
        let (gate, entered) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (waiting, signal) = (gate.clone(), entered.clone());
        let faulty = Faults::new(store.clone(), move |named| {
            (named == call).then(|| {
                signal.add_permits(1);
                Fault::Wait(waiting.clone())
            })
        });
        let paused = Arc::new(consumer(&scope, &History::new(faulty)));
        let running = paused.clone();
        let pausing = tokio::spawn(async move { running.drain_once().await });
        entered.acquire().await.unwrap().forget();
        assert_eq!(consumer(&scope, &history).drain_once().await, Ok(None), "the lease is held");
        clock.advance(60_000);
        kills(&scope, [7; 5]).await;
        drain(&scope, &history).await;
        assert_eq!(kills_of(&history, 7).await, before + 15);
        gate.add_permits(100);
        pausing.await.unwrap().unwrap();
        drain(&scope, &history).await;
        assert_eq!(kills_of(&history, 7).await, before + 15, "paused at {call}");
    }
}

/// The log of a Redis as it was some time ago, and other events since: what a failover or a restore leaves.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_set_back() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let (scope, mut external) = (on_redis(&server.url()).await.scope(Arena(1)), server.client());
    let folder = Folder::new();
    let history = history_in(folder.path());
    let consumer = consumer(&scope, &history);
    kills(&scope, [7; 10]).await;
    consumer.drain_once().await.unwrap();
    // Drained before the set-back and lost by it: 20, of which 5 were in the saved state, too.
    kills(&scope, [7; 5]).await;
    let saved = external.call(&["DUMP", "log:kills:1"]).bytes().to_vec();
    kills(&scope, [7; 15]).await;
    consumer.drain_once().await.unwrap();
    // Lost and never drained.
    kills(&scope, [8; 3]).await;
    external.call(&[&b"RESTORE"[..], b"log:kills:1", b"0", &saved, b"REPLACE"]);
    // The same sequences again, for other events.
    kills(&scope, [9; 30]).await;
    consumer.drain_once().await.unwrap();
    let found = (kills_of(&history, 7).await, kills_of(&history, 8).await, kills_of(&history, 9).await);
    assert_eq!(found, (30, 0, 30), "surviving events and those already drained, each once");
    assert_eq!(consumer.stats().alarms, 1);
    assert_eq!(external.call(&["LLEN", "log:kills:1"]).int(), 1);
    kills(&scope, [9]).await;
    consumer.drain_once().await.unwrap();
    assert_eq!((kills_of(&history, 9).await, consumer.stats().alarms), (31, 1));

    // Set back to a state that the log had long before, then everything removed, twice between two drains.
    external.call(&[&b"RESTORE"[..], b"log:kills:1", b"0", &saved, b"REPLACE"]);
    kills(&scope, [9; 2]).await;
    consumer.drain_once().await.unwrap();
    assert_eq!((kills_of(&history, 7).await, kills_of(&history, 9).await), (30, 33));
    external.call(&["FLUSHALL"]);
    kills(&scope, [7; 4]).await;
    external.call(&["FLUSHALL"]);
    kills(&scope, [8; 50]).await;
    let drained = drain(&scope, &history).await;
    assert_eq!((drained.delivered, kills_of(&history, 7).await, kills_of(&history, 8).await), (50, 30, 50));
    let state = history.acknowledged(consumer.log()).await.unwrap().unwrap();
    assert!(matches!(state, LogState { sequence: 50, .. }), "{state:?}");
}

/// A server that lost its last second: stopped without saving and started from an older append-only file.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_restored_from_an_older_file() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let (scope, mut external) = (on_redis(&server.url()).await.scope(Arena(1)), server.client());
    let folder = Folder::new();
    let history = history_in(folder.path());
    kills(&scope, [7; 6]).await;
    drain(&scope, &history).await;
    external.call(&["SAVE"]);
    kills(&scope, [7; 6]).await;
    drain(&scope, &history).await;
    server.kill9();
    server.restart().unwrap();
    until("the store is back", async || kill(&scope, 8).await.is_ok()).await;
    kills(&scope, [8; 9]).await;
    let consumer = consumer(&scope, &history);
    until("the lease of before has ended, or is gone", async || {
        matches!(consumer.drain_once().await, Ok(Some(_)))
    })
    .await;
    assert_eq!((kills_of(&history, 7).await, kills_of(&history, 8).await), (12, 10));
    assert_eq!(consumer.stats().alarms, 1);
}
