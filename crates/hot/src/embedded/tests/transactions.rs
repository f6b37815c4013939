//! Transactions: what commits, what is discarded, what is refused before the first write.

use super::*;
use crate::pubsub::Event;

#[test]
fn a_body_that_fails_leaves_no_trace() {
    let (engine, _) = by_hand();
    let answer = transaction(&engine, |tx| {
        put_number(tx, &key("a"), 1)?;
        tx.publish(bytes("c"), bytes("m"))?;
        Err::<(), _>(Error::Closed)
    });
    assert_eq!(answer, Err(Error::Closed));
    assert!(engine.is_empty());
}

#[test]
fn a_panic_is_an_error_and_releases_the_locks() {
    let (engine, _) = by_hand();
    set(&engine, "a", "1");
    let answer = transaction(&engine, |tx| {
        put_number(tx, &key("a"), 2)?;
        tx.text(&key("a"))?;
        if true {
            panic!("the rule of the game")
        }
        Ok(())
    });
    assert_eq!(answer, Err(Error::Panicked { message: "the rule of the game".into() }));
    assert_eq!(text(&engine, "a").as_deref(), Some("1"));
    set(&engine, "a", "3");
}

#[test]
fn a_body_that_starts_a_transaction_is_refused_instead_of_waiting_for_itself() {
    let (engine, _) = by_hand();
    let engine = Arc::new(engine);
    let inner = engine.clone();
    let answer = transaction(&engine, move |tx| {
        tx.text(&key("a"))?;
        Ok(write(&inner, vec![(key("a"), Write::Del)]))
    });
    assert_eq!(answer, Ok(Err(Error::InsideTransaction)));
    set(&engine, "a", "afterwards transactions work");
}

#[test]
fn one_wrong_type_refuses_the_whole_list() {
    let (engine, _) = by_hand();
    set(&engine, "text", "abc");
    let answer = write(
        &engine,
        vec![
            (key("new"), Write::Set(bytes("x"), Expiry::Never)),
            (key("text"), Write::SAdd(vec![bytes("m")])),
        ],
    );
    let Err(Error::WrongType { key: named, expected: "set", found: KindFound::Kind(Kind::Text) }) = answer
    else {
        panic!("{answer:?}")
    };
    assert_eq!(named, "text");
    assert_eq!(text(&engine, "new"), None);
}

#[test]
fn increments_are_checked_through_the_whole_list() {
    let (engine, _) = by_hand();
    let refusal = |writes: Vec<Write>| {
        let (engine, _) = by_hand();
        set(&engine, "n", "9223372036854775000");
        let error = write(&engine, writes.into_iter().map(|write| (key("n"), write)).collect());
        assert_eq!(text(&engine, "n").as_deref(), Some("9223372036854775000"));
        error.expect_err("a refusal")
    };
    assert!(matches!(refusal(vec![Write::IncrBy(1_000)]), Error::Overflow { by: 1_000, .. }));
    let through = refusal(vec![Write::IncrBy(500), Write::IncrBy(500), Write::IncrBy(-1_000)]);
    assert!(matches!(through, Error::Overflow { .. }), "{through:?}");
    let text_then_count = refusal(vec![Write::Set(bytes("abc"), Expiry::Never), Write::IncrBy(1)]);
    assert!(matches!(text_then_count, Error::WrongType { found: KindFound::NotAnInteger, .. }));
    set(&engine, "n", "9223372036854775000");
    let fine = [Write::Persist, Write::IncrBy(500), Write::Del, Write::IncrBy(1_000), Write::IncrBy(-1)];
    write(&engine, fine.into_iter().map(|write| (key("n"), write)).collect()).unwrap();
    assert_eq!(text(&engine, "n").as_deref(), Some("999"));
}

#[test]
fn long_lists_are_checked_like_short_ones() {
    let (engine, _) = by_hand();
    let mut writes: Vec<_> = (0..100).map(|n| (key(format!("k{n}")), Write::IncrBy(n))).collect();
    writes.extend((0..100).map(|n| (key(format!("k{n}")), Write::IncrBy(1))));
    write(&engine, writes.clone()).unwrap();
    assert_eq!(text(&engine, "k99").as_deref(), Some("100"));
    writes.push((key("k50"), Write::SAdd(vec![bytes("m")])));
    assert!(matches!(write(&engine, writes), Err(Error::WrongType { .. })));
    assert_eq!(text(&engine, "k99").as_deref(), Some("100"));
}

fn line(entry: &str, entries_max: usize, overflow: Overflow) -> LogAppend {
    let entry = crate::tx::log::marked(0, entry.as_bytes());
    LogAppend { log: key("log:test"), entry, entries_max, overflow, expiry: LogExpiry::Keep }
}

fn append(engine: &Embedded, entries: &[&str], entries_max: usize, overflow: Overflow) -> Result<()> {
    let lines: Vec<LogAppend> = entries.iter().map(|entry| line(entry, entries_max, overflow)).collect();
    transaction(engine, move |tx| lines.iter().try_for_each(|line| tx.append(line.clone())))
}

/// Elements of a log without their marks.
fn log_lines(engine: &Embedded, name: &str) -> Vec<String> {
    let unmarked = |line: &Bytes| String::from_utf8_lossy(line).replace(":00000000:", ":");
    match read(engine, name, Read::LRange(0, 999)) {
        Reply::List(lines) => lines.iter().map(unmarked).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_numbers_its_entries_without_gaps_and_drops_the_oldest() {
    let (engine, _) = by_hand();
    append(&engine, &["a", "b"], 1_000, Overflow::Refuse).unwrap();
    append(&engine, &["c"], 3, Overflow::Refuse).unwrap();
    assert_eq!(log_lines(&engine, "log:test"), ["1:a", "2:b", "3:c"]);
    let full = append(&engine, &["d"], 3, Overflow::Refuse);
    assert_eq!(full, Err(Error::LogFull { key: "log:test".into(), max: 3 }));
    append(&engine, &["d", "e"], 3, Overflow::DropOldest).unwrap();
    assert_eq!(log_lines(&engine, "log:test"), ["3:c", "4:d", "5:e"]);
    assert_eq!(engine.len(), 1, "one key");
}

#[test]
fn a_transaction_may_trim_its_log_and_append_to_it() {
    let (engine, _) = by_hand();
    append(&engine, &["a", "b", "c"], 3, Overflow::Refuse).unwrap();
    transaction(&engine, |tx| {
        tx.write(key("log:test"), Write::LPop(2))?;
        tx.append(line("d", 3, Overflow::Refuse))
    })
    .unwrap();
    assert_eq!(log_lines(&engine, "log:test"), ["3:c", "4:d"]);
}

#[test]
fn an_expired_log_begins_anew() {
    let (engine, clock) = by_hand();
    let lasting = |at: i64| LogAppend { expiry: LogExpiry::IfNone(at), ..line("a", 9, Overflow::Refuse) };
    transaction(&engine, move |tx| tx.append(lasting(T0 + 5))).unwrap();
    transaction(&engine, move |tx| tx.append(lasting(T0 + 9))).unwrap();
    assert_eq!(read(&engine, "log:test", Read::ExpireTime), Reply::Int(T0 + 5), "the first one set it");
    clock.advance(6);
    transaction(&engine, move |tx| {
        let at = tx.now() + 5;
        tx.append(lasting(at))
    })
    .unwrap();
    assert_eq!(log_lines(&engine, "log:test"), ["1:a"]);
    assert_eq!(read(&engine, "log:test", Read::ExpireTime), Reply::Int(T0 + 11));
}

#[test]
fn growth_beyond_the_limit_is_refused_and_shrinking_is_not() {
    let clock = ManualClock::at(T0);
    let engine = options(&clock).memory_bytes_max(64 * 1024).open().unwrap();
    let mut stored = 0;
    let refused = loop {
        let name = key(format!("k{stored}"));
        match write(&engine, vec![(name, Write::Set(Bytes::from(vec![b'x'; 1_000]), Expiry::Never))]) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&refused, Error::OutOfMemory { detail } if detail.contains("the limit is 65536")),
        "{refused}"
    );
    assert!((50..=64).contains(&stored), "{stored}");
    assert_eq!(engine.len(), stored);
    write(&engine, vec![(key("k0"), Write::Set(Bytes::from(vec![b'y'; 1_000]), Expiry::Never))]).unwrap();
    write(&engine, vec![(key("k1"), Write::Del), (key("k2"), Write::Del)]).unwrap();
    write(&engine, vec![(key("new"), Write::Set(Bytes::from(vec![b'x'; 1_000]), Expiry::Never))]).unwrap();
    assert!(engine.stats().unwrap().memory_bytes <= 64 * 1024);
    // What was ended by its deadline is given back too.
    let at = Expiry::At(T0 + 5);
    write(
        &engine,
        vec![(key("k3"), Write::Set(Bytes::new(), at)), (key("k4"), Write::Set(Bytes::new(), at))],
    )
    .unwrap();
    clock.advance(6);
    assert_eq!(engine.sweep_once(Duration::from_secs(1)), 2);
    write(&engine, vec![(key("k3"), Write::Set(Bytes::from(vec![b'x'; 1_000]), Expiry::Never))]).unwrap();
}

#[test]
fn messages_of_a_channel_come_in_the_order_of_the_commits() {
    let engine = Arc::new(Embedded::in_memory());
    let mut subscription = engine.inner.pubsub.subscribe(vec![bytes("c")], vec![]);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                for _ in 0..200 {
                    transaction(&engine, |tx| {
                        let next = number(tx, &key("counter"))? + 1;
                        put_number(tx, &key("counter"), next)?;
                        tx.publish(bytes("c"), Bytes::from(next.to_string()))
                    })
                    .unwrap();
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    for expected in 1..=800 {
        let Some(Event::Message { payload, .. }) = subscription.try_next() else {
            panic!("message {expected}")
        };
        assert_eq!(payload, expected.to_string());
    }
}

#[tokio::test]
async fn a_closed_engine_answers_that_it_is_closed() {
    let (engine, _) = by_hand();
    set(&engine, "a", "1");
    engine.close().await.unwrap();
    assert_eq!(write(&engine, vec![(key("a"), Write::Del)]), Err(Error::Closed));
    assert_eq!(engine.get_local(b"a", &mut Vec::new()), Some(Err(Error::Closed)));
    assert_eq!(engine.read_many(vec![]).await, Err(Error::Closed));
    engine.close().await.unwrap();
}

#[tokio::test]
async fn the_random_streams_of_consecutive_transactions_share_no_word() {
    let (engine, _clock) = by_hand();
    let mut words = std::collections::HashSet::new();
    for _ in 0..10_000 {
        let seed = engine.seed();
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let out = drawn.clone();
        let mut body = Body(move |tx: &mut RawTx<'_>| {
            *out.lock() = (0..8).map(|_| tx.random()).collect();
            true
        });
        engine.run_local(b"p", &mut body, seed).unwrap().result.unwrap();
        assert!(drawn.lock().iter().all(|word| words.insert(*word)), "a word was drawn twice");
    }
    assert_eq!(words.len(), 80_000);
}
