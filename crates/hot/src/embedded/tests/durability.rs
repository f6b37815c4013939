//! With a journal: what comes back, what must not, and who has to wait.

use super::*;
use crate::journal::Durability;
use crate::journal::fault_disk::FaultDisk;
use crate::pubsub::Event;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64};

fn on(disk: &FaultDisk, clock: &ManualClock) -> Options {
    options(clock).data("/data").files(Arc::new(disk.clone()))
}

/// The keyspace that the next start finds.
fn reloaded(disk: &FaultDisk, clock: &ManualClock) -> Vec<KeyDump> {
    dump(&on(disk, clock).open().unwrap().inner)
}

fn one_of_each(n: i64) -> Vec<(RawKey, Write)> {
    let member = Bytes::from(format!("member {n}"));
    vec![
        (key(format!("text:{n}")), Write::Set(member.clone(), Expiry::At(T0 + 1_000_000 + n))),
        (key("counter"), Write::IncrBy(n)),
        (key("hash"), Write::HSet(vec![(member.clone(), Bytes::from_static(b"\x00\r\n\xff"))])),
        (key("set"), Write::SAdd(vec![member.clone()])),
        (key("zset"), Write::ZAdd(vec![(member.clone(), Score::new(n as f64 / 3.0).unwrap())])),
        (key("list"), Write::LPush(vec![member])),
        (key("hash"), Write::ExpireAt(T0 + 2_000_000)),
    ]
}

#[tokio::test]
async fn every_type_comes_back_with_its_deadline_also_from_a_rewritten_journal() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).open().unwrap();
    for n in 0..1_500 {
        write(&engine, one_of_each(n)).unwrap();
    }
    let before = dump(&engine.inner);
    engine.close().await.unwrap();
    let engine = on(&disk, &clock).open().unwrap();
    assert_eq!(engine.recovery().unwrap().transactions, 1_500);
    assert_eq!(dump(&engine.inner), before);
    engine.rewrite_journal().unwrap();
    write(&engine, one_of_each(1_500)).unwrap();
    let before = dump(&engine.inner);
    drop(engine);
    let engine = on(&disk, &clock).open().unwrap();
    assert_eq!(dump(&engine.inner), before);
    assert!(engine.recovery().unwrap().transactions < 1_000, "{:?}", engine.recovery());
}

#[test]
fn what_had_ended_does_not_come_back_through_a_later_write() {
    let later = [
        vec![Write::SAdd(vec![bytes("new")])],
        vec![Write::ExpireAt(T0 + 99_999)],
        vec![Write::Persist],
        vec![Write::ExpireAtIfNone(T0 + 99_999)],
        vec![Write::SAdd(vec![bytes("new")]), Write::ExpireAtIfNone(T0 + 99_999)],
        vec![Write::IncrBy(1)],
        vec![Write::Set(bytes("new"), Expiry::Keep)],
        vec![Write::Set(bytes("new"), Expiry::Never)],
        vec![Write::Persist, Write::HSet(vec![(bytes("f"), bytes("v"))]), Write::ExpireAt(T0 + 99_999)],
    ];
    for swept in [false, true] {
        for writes in &later {
            let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
            let engine = on(&disk, &clock).open().unwrap();
            let old = vec![(key("k"), Write::SAdd(vec![bytes("old")])), (key("k"), Write::ExpireAt(T0 + 10))];
            write(&engine, old).unwrap();
            clock.advance(11);
            if swept {
                assert_eq!(engine.sweep_once(Duration::from_secs(1)), 1);
            }
            write(&engine, writes.iter().map(|write| (key("k"), write.clone())).collect()).unwrap();
            let before = dump(&engine.inner);
            drop(engine);
            assert_eq!(reloaded(&disk, &clock), before, "swept {swept}, {writes:?}");
        }
    }
}

#[test]
fn the_journal_has_what_a_conditional_deadline_did() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).open().unwrap();
    let put = |text, at| {
        vec![(key("k"), Write::Set(bytes(text), Expiry::Keep)), (key("k"), Write::ExpireAtIfNone(at))]
    };
    let length = |engine: &Embedded| engine.stats().unwrap().journal_pending_bytes;
    write(&engine, put("first", T0 + 10)).unwrap();
    let first = length(&engine);
    write(&engine, put("later", T0 + 20)).unwrap();
    assert!(length(&engine) - first < first, "one SET that keeps the deadline");
    clock.advance(11);
    write(&engine, put("again", T0 + 30)).unwrap();
    let add = (key("set"), Write::SAdd(vec![bytes("a")]));
    let (removed, once) =
        ((key("set"), Write::SRem(vec![bytes("a")])), |at| (key("set"), Write::ExpireAtIfNone(at)));
    write(&engine, vec![add.clone(), once(T0 + 40), removed, once(T0 + 50), add, once(T0 + 60)]).unwrap();
    let before = dump(&engine.inner);
    assert_eq!(before.iter().map(|key| key.deadline).collect::<Vec<_>>(), [Some(T0 + 30), Some(T0 + 60)]);
    drop(engine);
    assert_eq!(reloaded(&disk, &clock), before);
}

/// Writes until the disk refuses.
fn fill(engine: &Embedded) {
    let full = (0..10_000).find_map(|_| write(engine, vec![(key("ballast"), Write::IncrBy(1))]).err());
    assert!(matches!(full, Some(Error::JournalStopped { .. })), "{full:?}");
}

/// Writes until the disk takes it again.
fn resume(engine: &Embedded, writes: Vec<(RawKey, Write)>) {
    let started = std::time::Instant::now();
    while let Err(error) = write(engine, writes.clone()) {
        assert!(started.elapsed() < Duration::from_secs(20), "{error}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_ended_on_a_full_disk_does_not_come_back_through_a_write_after_it() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).memory_bytes_max(10_000_000).open().unwrap();
    write(&engine, vec![(key("k"), Write::Set(bytes("5"), Expiry::At(T0 + 10)))]).unwrap();
    disk.fill_at_write(1);
    fill(&engine);
    clock.advance(11);
    let memory = engine.stats().unwrap().memory_bytes;
    assert_eq!(engine.sweep_once(Duration::from_secs(1)), 0, "the journal does not take the DEL");
    assert_eq!((text(&engine, "k"), engine.stats().unwrap().memory_bytes), (None, memory));
    disk.fill_at_write(u64::MAX / 2);
    resume(&engine, vec![(key("k"), Write::IncrBy(1))]);
    assert_eq!(text(&engine, "k").as_deref(), Some("1"));
    let before = dump(&engine.inner);
    drop(engine);
    assert_eq!(reloaded(&disk, &clock), before);
}

#[test]
fn long_keys_are_swept_in_records_that_fit_into_the_space_that_is_left() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).open().unwrap();
    // Enough in one shard that one record of all DELs is longer than the journal reserves at a time.
    let long = (0..).map(|n| key(format!("{n}{}", "x".repeat(1_000))));
    let keys: Vec<_> = long.filter(|key| engine.inner.hash(key).shard() == 3).take(200).collect();
    for key in &keys {
        write(&engine, vec![(key.clone(), Write::Set(bytes("v"), Expiry::At(T0 + 10)))]).unwrap();
    }
    clock.advance(11);
    disk.fill_at_write(1);
    let mut removed = engine.sweep_once(Duration::from_secs(1));
    assert!(removed > 0, "some fit");
    fill(&engine);
    removed += engine.sweep_once(Duration::from_secs(1));
    disk.fill_at_write(u64::MAX / 2);
    resume(&engine, vec![(key("ballast"), Write::IncrBy(1))]);
    removed += engine.sweep_once(Duration::from_secs(1));
    assert_eq!((removed, engine.len()), (keys.len(), 1));
    let before = dump(&engine.inner);
    drop(engine);
    let engine = on(&disk, &clock).open().unwrap();
    assert_eq!((engine.len(), dump(&engine.inner)), (1, before));
}

#[derive(Debug, Clone)]
enum Act {
    Write(u8, Write),
    Pass(u64),
    Sweep,
    Rewrite,
    Restart,
}

fn any_act() -> impl Strategy<Value = Act> {
    let member = || (0u8..5).prop_map(|n| Bytes::from(vec![b'a' + n]));
    let any_write = prop_oneof![
        (member(), 0i64..40).prop_map(|(m, at)| Write::Set(m, Expiry::At(T0 + 1 + at))),
        member().prop_map(|m| Write::Set(m, Expiry::Keep)),
        Just(Write::Del),
        Just(Write::IncrBy(1)),
        member().prop_map(|m| Write::SAdd(vec![m])),
        member().prop_map(|m| Write::SRem(vec![m])),
        member().prop_map(|m| Write::RPush(vec![m])),
        Just(Write::LPop(1)),
        (0i64..40).prop_map(|at| Write::ExpireAt(T0 + 1 + at)),
        Just(Write::Persist),
    ];
    prop_oneof![
        20 => (0u8..6, any_write).prop_map(|(key, write)| Act::Write(key, write)),
        6 => (1u64..6).prop_map(Act::Pass),
        2 => Just(Act::Sweep),
        1 => Just(Act::Rewrite),
        2 => Just(Act::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_start_finds_what_the_last_run_left(acts in prop::collection::vec(any_act(), 1..80)) {
        let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
        let mut engine = on(&disk, &clock).open().unwrap();
        for act in acts {
            match act {
                Act::Write(n, one) => drop(write(&engine, vec![(key(format!("k{n}")), one)])),
                Act::Pass(ms) => clock.advance(ms),
                Act::Sweep => _ = engine.sweep_once(Duration::from_secs(1)),
                Act::Rewrite => engine.rewrite_journal().unwrap(),
                Act::Restart => {
                    let before = dump(&engine.inner);
                    drop(engine);
                    engine = on(&disk, &clock).open().unwrap();
                    prop_assert_eq!(dump(&engine.inner), before);
                }
            }
        }
        let before = dump(&engine.inner);
        drop(engine);
        prop_assert_eq!(reloaded(&disk, &clock), before);
    }
}

/// One of many writes that make, change and remove keys of every kind.
fn busy_write(who: u64, n: u64) -> Vec<(RawKey, Write)> {
    let at = |kind: &str| key(format!("{kind}:{}", n.wrapping_mul(who * 2 + 7_919) % 300));
    let member = Bytes::from(format!("{}", n % 40));
    match n % 8 {
        0 => vec![(at("text"), Write::Set(Bytes::from(format!("{who} {n}")), Expiry::Never))],
        1 => vec![(at("text"), Write::Del), (at("set"), Write::SAdd(vec![member]))],
        2 => vec![(at("set"), Write::SRem(vec![member])), (at("count"), Write::IncrBy(1))],
        3 => vec![(at("zset"), Write::ZAdd(vec![(member, Score::from_i64(n as i64 % 17))]))],
        4 => vec![(at("list"), Write::RPush(vec![member])), (at("list"), Write::LTrim(-5, -1))],
        5 => vec![(at("list"), Write::LPop(2)), (at("text"), Write::ExpireAt(1 << 45))],
        6 => vec![(at("hash"), Write::HSet(vec![(member.clone(), member)]))],
        _ => vec![(at("hash"), Write::Del), (at("zset"), Write::ZRem(vec![member]))],
    }
}

#[test]
fn a_rewrite_beside_busy_writers_keeps_everything() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = Arc::new(on(&disk, &clock).open().unwrap());
    (0..4_000).for_each(|n| write(&engine, busy_write(9, n)).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..3)
        .map(|who| {
            let (engine, stop, written) = (engine.clone(), stop.clone(), written.clone());
            std::thread::spawn(move || {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    write(&engine, busy_write(who, n)).unwrap();
                    n += 1;
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    // On a busy machine the writers may begin late; each rewrite has some of their writes beside it.
    for rewrite in 1..=8 {
        engine.rewrite_journal().unwrap();
        while written.load(Ordering::Relaxed) < rewrite * 50 {
            std::thread::yield_now();
        }
    }
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let before = dump(&engine.inner);
    assert!(engine.inner.shards.iter().all(|shard| shard.lock().pending_copies.is_none()));
    drop(Arc::into_inner(engine));
    assert_eq!(reloaded(&disk, &clock), before);
}

#[test]
fn the_engines_own_thread_rewrites_a_journal_that_has_grown() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).rewrite_bytes_min(20_000).background(true).open().unwrap();
    let bases = || disk.paths().iter().filter(|path| path.to_string_lossy().ends_with(".base.aof")).count();
    let started = std::time::Instant::now();
    while bases() == 0 {
        assert!(started.elapsed() < Duration::from_secs(20));
        (0..50).for_each(|n| set(&engine, "k", &n.to_string().repeat(50)));
    }
    let before = dump(&engine.inner);
    drop(engine);
    assert_eq!(reloaded(&disk, &clock), before);
}

#[tokio::test]
async fn with_always_what_was_answered_survives_a_loss_of_power() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).durability(Durability::Always).open().unwrap();
    let mut subscription = engine.subscribe(vec![bytes("c")], vec![]).await.unwrap();
    for n in 1..=20 {
        let mut body = Body(|tx: &mut RawTx<'_>| {
            tx.write(key("n"), Write::IncrBy(1)).unwrap();
            tx.publish(bytes("c"), bytes("m")).is_ok()
        });
        let lsn = engine.run_local(b"p", &mut body, 1).unwrap().lsn;
        engine.wait_durable(lsn).await.unwrap();
        assert!(matches!(subscription.next().await, Some(Event::Message { .. })));
        let after = reloaded(&disk.crash(0), &clock);
        assert_eq!(after[0].content, Content::Text(Bytes::from(n.to_string())));
    }
}

#[tokio::test]
async fn with_always_nothing_is_acknowledged_that_the_disk_refused() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).durability(Durability::Always).open().unwrap();
    let mut subscription = engine.subscribe(vec![bytes("c")], vec![]).await.unwrap();
    disk.break_at_sync(1);
    let mut body = Body(|tx: &mut RawTx<'_>| {
        tx.write(key("n"), Write::IncrBy(1)).unwrap();
        tx.publish(bytes("c"), bytes("m")).is_ok()
    });
    let lsn = engine.run_local(b"p", &mut body, 1).unwrap().lsn;
    assert!(matches!(engine.wait_durable(lsn).await, Err(Error::JournalStopped { .. })));
    assert_eq!(subscription.try_next(), None);
    assert_eq!(
        engine.get_local(b"n", &mut Vec::new()),
        None,
        "the value is not on disk, so no reader may see it"
    );
    let asked = engine.read_many(vec![(key("n"), Read::Get)]).await;
    assert!(matches!(asked, Err(Error::JournalStopped { .. })), "{asked:?}");
    assert!(matches!(engine.ready().await, Err(Error::JournalStopped { .. })));
    assert!(matches!(write(&engine, vec![(key("m"), Write::Del)]), Err(Error::JournalStopped { .. })));
    assert!(matches!(engine.close().await, Err(Error::JournalStopped { .. })));
}

/// Bodies that end with an error because of what a transaction before them left behind.
fn refused_bodies() -> [fn(&mut RawTx<'_>) -> bool; 4] {
    let large = |tx: &mut RawTx<'_>| {
        let text = Bytes::from(vec![b'x'; 100_000]);
        tx.write(key("large"), Write::Set(text, Expiry::Never)).is_ok()
    };
    [
        |tx| tx.write(key("k"), Write::SAdd(vec![bytes("m")])).is_ok(),
        |tx| tx.append(last_entry()).is_ok(),
        |tx| std::panic::resume_unwind(Box::new(format!("{:?}", tx.text(&key("k"))))),
        large,
    ]
}

fn last_entry() -> LogAppend {
    let (log, entry) = (key("log:last"), bytes("e"));
    LogAppend { log, entry, entries_max: 1, overflow: Overflow::Refuse, expiry: LogExpiry::Keep }
}

#[tokio::test]
async fn with_always_an_error_is_not_returned_before_what_it_rests_on_is_on_disk() {
    for (number, refused) in refused_bodies().into_iter().enumerate() {
        for broken in [false, true] {
            let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
            let options = on(&disk, &clock).durability(Durability::Always).memory_bytes_max(50_000);
            let engine = options.open().unwrap();
            if broken {
                disk.break_at_sync(1);
            }
            let mut first = Body(|tx: &mut RawTx<'_>| {
                tx.write(key("k"), Write::Set(bytes("x"), Expiry::Never)).unwrap();
                tx.append(last_entry()).is_ok()
            });
            let _not_awaited = engine.run_local(b"p", &mut first, 1).unwrap();
            let (partition, transaction) = (bytes("p"), Box::new(Body(refused)));
            let order = TransactionRequest {
                partition,
                prefetched: vec![],
                transaction,
                deadline: Duration::from_secs(9),
                seed: 1,
            };
            let answer = engine.run(order).await.map(drop).unwrap_err();
            let stopped = matches!(answer, Error::JournalStopped { .. });
            assert_eq!(stopped, broken, "body {number}: {answer}");
            let on_disk = reloaded(&disk.crash(0), &clock);
            assert_eq!(on_disk.iter().any(|record| record.key == "k"), !broken, "body {number}");
        }
    }
}

#[test]
fn a_transaction_that_the_journal_refuses_changes_nothing_in_memory() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).memory_bytes_max(1_000_000).open().unwrap();
    set(&engine, "k", "before");
    disk.power_off_after(0);
    let started = std::time::Instant::now();
    // The failure is noticed when the writer comes to the bytes; from then on every transaction is refused.
    let stopped = loop {
        assert!(started.elapsed() < Duration::from_secs(10));
        if let Err(error) =
            write(&engine, vec![(key("k"), Write::Set(bytes("while it fails"), Expiry::Never))])
        {
            break error;
        }
    };
    assert!(matches!(stopped, Error::JournalStopped { .. }), "{stopped}");
    let before = dump(&engine.inner);
    for n in 0..10 {
        assert!(write(&engine, vec![(key(format!("new{n}")), Write::Del), (key("k"), Write::Del)]).is_err());
    }
    assert_eq!(dump(&engine.inner), before);
}

#[test]
fn a_rewrite_that_panics_does_not_end_the_sweep() {
    let (disk, clock) = (FaultDisk::new(), ManualClock::at(T0));
    let engine = on(&disk, &clock).background(true).rewrite_bytes_min(500).open().unwrap();
    disk.panic_at_base();
    let started = std::time::Instant::now();
    let until = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(started.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for n in 0..20 {
        let text = Bytes::from(vec![b'x'; 100]);
        write(&engine, vec![(key(format!("k{n}")), Write::Set(text, Expiry::At(T0 + 10)))]).unwrap();
    }
    // The rewrite has named its increment, and then panicked.
    until(&|| disk.paths().len() == 3 && !engine.inner.wants_rewrite());
    clock.advance(11);
    until(&|| engine.is_empty());
    assert!(
        engine.inner.shards.iter().all(|shard| shard.lock().pending_copies.is_none()),
        "no task copies any more"
    );
    set(&engine, "k", "after");
}
