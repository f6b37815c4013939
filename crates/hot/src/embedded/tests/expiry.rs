//! Expiry: exact on access, removed in the background, one moment for a whole transaction.

use super::*;

fn set_until(engine: &Embedded, name: &str, at: i64) {
    write(engine, vec![(key(name), Write::Set(bytes("x"), Expiry::At(at)))]).unwrap();
}

#[test]
fn a_key_ends_after_its_millisecond_for_reads_scans_and_writes() {
    let (engine, clock) = by_hand();
    set_until(&engine, "k", T0 + 100);
    clock.advance(100);
    assert_eq!(text(&engine, "k").as_deref(), Some("x"), "as in Redis, it lives in its last millisecond");
    assert_eq!(read(&engine, "k", Read::ExpireTime), Reply::Int(T0 + 100));
    assert_eq!(engine.sweep_once(Duration::from_secs(9)), 0);
    assert_eq!(transaction(&engine, |tx| tx.read(&key("k"), Read::Exists)), Ok(Reply::Int(1)));
    assert_eq!(scan_keys::page(&engine.inner, None, b"*", 1_000).keys, [key("k")]);
    assert_eq!(dump(&engine.inner).len(), 1);
    clock.advance(1);
    assert_eq!(transaction(&engine, |tx| tx.read(&key("k"), Read::Exists)), Ok(Reply::Int(0)));
    assert_eq!(text(&engine, "k"), None);
    assert_eq!(read(&engine, "k", Read::Exists), Reply::Int(0));
    assert_eq!(read(&engine, "k", Read::ExpireTime), Reply::Int(-2));
    assert!(scan_keys::page(&engine.inner, None, b"*", 1_000).keys.is_empty());
    assert!(dump(&engine.inner).is_empty());
    assert_eq!(engine.len(), 1, "it was not removed yet");
}

#[test]
fn a_write_to_an_ended_key_begins_anew() {
    let cases: [(Write, Option<(&str, i64)>); 6] = [
        (Write::Set(bytes("new"), Expiry::Keep), Some(("new", -1))),
        (Write::Set(bytes("new"), Expiry::At(T0 + 500)), Some(("new", T0 + 500))),
        (Write::IncrBy(3), Some(("3", -1))),
        (Write::ExpireAt(T0 + 500), None),
        (Write::Persist, None),
        (Write::Del, None),
    ];
    for (operation, expected) in cases {
        let (engine, clock) = by_hand();
        write(&engine, vec![(key("k"), Write::Set(bytes("40"), Expiry::At(T0 + 10)))]).unwrap();
        clock.advance(11);
        write(&engine, vec![(key("k"), operation.clone())]).unwrap();
        let found = text(&engine, "k");
        assert_eq!(found.as_deref(), expected.map(|(text, _)| text), "{operation:?}");
        let at = read(&engine, "k", Read::ExpireTime);
        assert_eq!(at, Reply::Int(expected.map_or(-2, |(_, at)| at)), "{operation:?}");
    }
}

#[test]
fn an_ended_collection_of_another_type_does_not_stand_in_the_way() {
    let (engine, clock) = by_hand();
    let list = vec![(key("k"), Write::RPush(vec![bytes("old")])), (key("k"), Write::ExpireAt(T0 + 10))];
    write(&engine, list).unwrap();
    clock.advance(11);
    write(&engine, vec![(key("k"), Write::SAdd(vec![bytes("new")]))]).unwrap();
    assert_eq!(read(&engine, "k", Read::SMembers), Reply::List(vec![bytes("new")]));
    assert_eq!(read(&engine, "k", Read::ExpireTime), Reply::Int(-1));
}

#[test]
fn a_collection_that_is_emptied_takes_its_deadline_with_it() {
    let (engine, _) = by_hand();
    let add = || Write::ZAdd(vec![(bytes("m"), Score::from_i64(1))]);
    write(&engine, vec![(key("z"), add()), (key("z"), Write::ExpireAt(T0 + 10))]).unwrap();
    write(&engine, vec![(key("z"), Write::ZRem(vec![bytes("m")])), (key("z"), add())]).unwrap();
    assert_eq!(read(&engine, "z", Read::ExpireTime), Reply::Int(-1));
}

#[test]
fn the_sweep_removes_what_has_ended_and_nothing_else() {
    let (engine, clock) = by_hand();
    for n in 0..10_000 {
        set_until(&engine, &format!("k{n}"), T0 + 1 + n % 100);
    }
    set(&engine, "stays", "x");
    assert_eq!(engine.sweep_once(Duration::from_secs(9)), 0);
    clock.advance(51);
    let mut removed = 0;
    // A look that finds few ended keys is not followed by another one in the same cycle.
    for _ in 0..20 {
        removed += engine.sweep_once(Duration::from_secs(9));
    }
    assert_eq!(removed, 5_000);
    assert_eq!(engine.len(), 5_001);
    assert_eq!(engine.stats().unwrap().expired, 5_000);
    clock.advance(50);
    assert_eq!(engine.sweep_once(Duration::from_secs(9)), 5_000, "all ended: one cycle takes all");
    assert_eq!(dump(&engine.inner).len(), 1);
}

#[test]
fn the_sweep_keeps_to_its_budget_and_goes_on_where_it_stopped() {
    let (engine, clock) = by_hand();
    for n in 0..20_000 {
        set_until(&engine, &format!("k{n}"), T0 + 1);
    }
    clock.advance(2);
    let first = engine.sweep_once(Duration::ZERO);
    assert!(first <= crate::limits::SWEEP_SLOTS_PER_LOCK, "{first}");
    let mut removed = first;
    while removed < 20_000 {
        removed += engine.sweep_once(Duration::ZERO);
    }
    assert!(engine.is_empty());
}

#[test]
fn a_deadline_that_is_set_behind_the_sweep_is_found_by_the_next_pass() {
    let (engine, clock) = by_hand();
    for n in 0..1_000 {
        set(&engine, &format!("k{n}"), "x");
    }
    engine.sweep_once(Duration::from_secs(9));
    write(&engine, vec![(key("k7"), Write::ExpireAt(T0 + 5))]).unwrap();
    clock.advance(6);
    assert_eq!(engine.sweep_once(Duration::from_secs(9)), 1);
}

#[test]
fn the_engines_own_thread_sweeps() {
    let clock = ManualClock::at(T0);
    let engine = options(&clock).background(true).open().unwrap();
    set_until(&engine, "k", T0 + 1);
    clock.advance(2);
    let started = std::time::Instant::now();
    while !engine.is_empty() {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
}
