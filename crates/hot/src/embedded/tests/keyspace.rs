//! The keyspace as a whole: scans, memory, growth.

use super::*;
use crate::limits::SCAN_PAGE_MAX;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

fn scan_all(engine: &Embedded, pattern: &[u8], count: usize) -> Vec<RawKey> {
    let (mut keys, mut from) = (Vec::new(), None);
    loop {
        let page = scan_keys::page(&engine.inner, from, pattern, count);
        assert!(page.keys.len() <= count);
        keys.extend(page.keys);
        match page.next {
            // Through its text, as another caller would.
            Some(next) => from = Some(next.to_string().parse().unwrap()),
            None => return keys,
        }
    }
}

#[test]
fn a_scan_of_a_quiet_keyspace_returns_every_key_once() {
    let (engine, _) = by_hand();
    (0..3_000).for_each(|n| set(&engine, &format!("k:{n}"), "x"));
    (0..50).for_each(|n| set(&engine, &format!("other:{n}"), "x"));
    for count in [1, 7, 300, SCAN_PAGE_MAX] {
        let keys = scan_all(&engine, b"k:*", count);
        assert_eq!(keys.len(), 3_000);
        assert_eq!(keys.into_iter().collect::<BTreeSet<_>>().len(), 3_000);
    }
    assert!(scan_keys::page(&engine.inner, Some(Cursor { place: 99, position: 5 }), b"*", 10).next.is_none());
}

#[test]
fn a_scan_returns_every_key_that_lives_throughout_while_others_come_and_go() {
    let engine = Arc::new(Embedded::in_memory());
    (0..2_000).for_each(|n| set(&engine, &format!("stays:{n}"), "x"));
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..2)
        .map(|who| {
            let (engine, stop) = (engine.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut n = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    set(&engine, &format!("comes:{who}:{}", n % 3_000), "x");
                    let gone = key(format!("comes:{who}:{}", n * 7_919 % 3_000));
                    write(&engine, vec![(gone, Write::Del)]).unwrap();
                    n += 1;
                }
            })
        })
        .collect();
    for count in [3, 50, 400].repeat(4) {
        let stayed = scan_all(&engine, b"stays:*", count).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(stayed.len(), 2_000);
    }
    stop.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

#[test]
fn bytes_in_use_return_to_zero() {
    let (engine, _) = by_hand();
    for n in 0..500 {
        let member = Bytes::from(format!("member {n}"));
        let name = |kind: &str| key(format!("{kind}:{}", n % 20));
        write(
            &engine,
            vec![
                (name("text"), Write::Set(member.clone(), Expiry::Never)),
                (name("hash"), Write::HSet(vec![(member.clone(), member.clone())])),
                (name("set"), Write::SAdd(vec![member.clone()])),
                (name("zset"), Write::ZAdd(vec![(member.clone(), Score::from_i64(n))])),
                (name("list"), Write::RPush(vec![member])),
            ],
        )
        .unwrap();
    }
    assert!(engine.stats().unwrap().memory_bytes > 500 * 4 * 10);
    for record in dump(&engine.inner) {
        write(&engine, vec![(record.key, Write::Del)]).unwrap();
    }
    assert_eq!(engine.stats().unwrap().memory_bytes, 0);
}

#[test]
fn replies_beyond_the_limit_are_counted_not_given() {
    let (engine, _) = by_hand();
    for chunk in 0..3 {
        let members: Vec<Bytes> = (0..500).map(|n| Bytes::from(format!("{chunk}:{n}"))).collect();
        let scored = members.iter().map(|m| (m.clone(), Score::from_i64(0))).collect();
        write(
            &engine,
            vec![
                (key("s"), Write::SAdd(members.clone())),
                (key("z"), Write::ZAdd(scored)),
                (key("l"), Write::RPush(members)),
            ],
        )
        .unwrap();
    }
    assert_eq!(read(&engine, "s", Read::SMembers), Reply::TooMany(1_500));
    assert_eq!(read(&engine, "l", Read::LRange(0, -1)), Reply::TooMany(1_500));
    assert_eq!(read(&engine, "z", Read::ZRange(ZSlice::Rank(0, -1), false)), Reply::TooMany(1_500));
    let Reply::Scored(last) = read(&engine, "z", Read::ZRange(ZSlice::Rank(0, 1), true)) else { panic!() };
    assert_eq!(last[0].0, "2:99");
    let from = LexBound::Included(bytes("1:"));
    let to = LexBound::Excluded(bytes("2:"));
    assert_eq!(read(&engine, "z", Read::ZLexCount(from.clone(), to.clone())), Reply::Int(500));
    let Reply::Scored(page) = read(&engine, "z", Read::ZRange(ZSlice::Lex(from, to, 2), true)) else {
        panic!()
    };
    assert_eq!(page.iter().map(|(member, _)| member.clone()).collect::<Vec<_>>(), ["1:99", "1:98"]);
}
