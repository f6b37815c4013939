//! Many threads, shared keys, locks found in every order: everything adds up and everything ends.

use super::*;
use crate::tx::log::LAST;
use std::sync::atomic::AtomicI64;
use std::thread;

fn in_parallel(threads: usize, work: impl Fn(usize) + Send + Sync) {
    thread::scope(|scope| {
        for number in 0..threads {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
}

/// Small numbers from a seed: which keys a transaction takes.
fn mixed(mut state: u64) -> impl FnMut(usize) -> usize {
    state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    }
}

#[test]
fn of_all_who_reach_for_a_thing_exactly_one_gets_it() {
    let engine = Embedded::in_memory();
    let wins: Vec<AtomicI64> = (0..200).map(|_| AtomicI64::new(0)).collect();
    in_parallel(64, |who| {
        for (contest, won) in wins.iter().enumerate() {
            let got = transaction(&engine, move |tx| {
                let thing = key(format!("thing:{contest}"));
                if tx.text(&thing)?.is_some() {
                    return Ok(false);
                }
                tx.write(thing, Write::Set(Bytes::from(who.to_string()), Expiry::Never))?;
                tx.write(key(format!("bag:{who}")), Write::SAdd(vec![Bytes::from(contest.to_string())]))?;
                Ok(true)
            });
            won.fetch_add(got.unwrap() as i64, Ordering::SeqCst);
        }
    });
    assert!(wins.iter().all(|won| won.load(Ordering::SeqCst) == 1));
    let in_bags: i64 = (0..64)
        .map(|who| match read(&engine, &format!("bag:{who}"), Read::SCard) {
            Reply::Int(count) => count,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(in_bags, 200);
}

#[test]
fn money_moves_between_accounts_in_every_direction_and_none_is_lost() {
    const ACCOUNTS: usize = 24;
    let engine = Embedded::in_memory();
    (0..ACCOUNTS).for_each(|n| set(&engine, &format!("account:{n}"), "1000"));
    in_parallel(8, |who| {
        let mut choose = mixed(who as u64 + 1);
        for _ in 0..1_500 {
            let (from, to) = (choose(ACCOUNTS), choose(ACCOUNTS));
            let amount = choose(50) as i64;
            transaction(&engine, move |tx| {
                let (from, to) = (key(format!("account:{from}")), key(format!("account:{to}")));
                let balance = number(tx, &from)?;
                if from == to || balance < amount {
                    return Ok(());
                }
                let other = number(tx, &to)?;
                put_number(tx, &from, balance - amount)?;
                put_number(tx, &to, other + amount)
            })
            .unwrap();
        }
    });
    let sum: i64 =
        (0..ACCOUNTS).map(|n| text(&engine, &format!("account:{n}")).unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(sum, 1_000 * ACCOUNTS as i64);
}

#[test]
fn reversed_orders_of_locks_end_and_a_reader_never_sees_a_transaction_in_the_middle() {
    const KEYS: i64 = 16;
    let engine = Embedded::in_memory();
    let name = |n: i64| key(format!("k{n}"));
    in_parallel(6, |who| {
        for _ in 0..600 {
            let found = transaction(&engine, move |tx| {
                let mut order: Vec<i64> = (0..KEYS).collect();
                if who % 2 == 1 {
                    order.reverse();
                }
                let mut found = Vec::new();
                for n in &order {
                    found.push(number(tx, &name(*n))?);
                }
                if who < 4 {
                    for n in order {
                        put_number(tx, &name(n), found[0] + 1)?;
                    }
                }
                Ok(found)
            })
            .unwrap();
            assert!(found.iter().all(|value| *value == found[0]), "{found:?}");
        }
    });
    assert_eq!(text(&engine, "k0").unwrap(), "2400");
    assert_eq!(engine.stats().unwrap().committed, 2_400);
}

#[test]
fn a_lock_that_is_not_to_be_had_suspends_the_body_and_the_next_run_has_it() {
    let engine = Embedded::in_memory();
    let shard_of = |name: &str| engine.inner.hash(name.as_bytes()).shard();
    let names: Vec<String> = (0..200).map(|n| format!("k{n}")).collect();
    let low = names.iter().find(|name| shard_of(name) < 20).unwrap().clone();
    let high = names.iter().find(|name| shard_of(name) > 40).unwrap().clone();
    let guard = engine.inner.shards[shard_of(&low)].lock();
    let runs = Arc::new(AtomicI64::new(0));
    let counted = runs.clone();
    thread::scope(|scope| {
        let (low, high, engine) = (low.clone(), high.clone(), &engine);
        let other = scope.spawn(move || {
            transaction(engine, move |tx| {
                counted.fetch_add(1, Ordering::SeqCst);
                put_number(tx, &key(high.clone()), 1)?;
                number(tx, &key(high.clone()))?;
                // Swallowing the error must not help a body that has seen only half of the world.
                let _ = tx.text(&key("other"));
                let _ = tx.text(&key(high.clone()));
                let value = number(tx, &key(low.clone())).unwrap_or(-1);
                put_number(tx, &key(low.clone()), value + 1)
            })
        });
        while runs.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        drop(guard);
        other.join().unwrap().unwrap();
    });
    assert_eq!(text(&engine, &low).as_deref(), Some("1"));
    assert_eq!(text(&engine, &high).as_deref(), Some("1"));
}

#[test]
fn the_time_of_a_transaction_is_the_time_of_all_its_reads() {
    // The clock moves on while the body runs; a key read later must not be judged by the earlier time.
    let (engine, clock) = by_hand();
    let engine = Arc::new(engine);
    write(&engine, vec![(key("short"), Write::Set(bytes("x"), Expiry::At(T0 + 10)))]).unwrap();
    let runs = Arc::new(AtomicI64::new(0));
    let counted = runs.clone();
    let (now, alive) = transaction(&engine, move |tx| {
        let now = tx.now();
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            clock.advance(11);
        }
        Ok((now, tx.text(&key("short"))?.is_some()))
    })
    .unwrap();
    assert_eq!((now, alive), (T0 + 11, false));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// Transactions that share nothing but two logs: their locks come last, so no run is ever dropped for them,
/// in whichever order a body names them and whether or not it asked for the time.
#[test]
fn appending_to_shared_logs_makes_no_transaction_run_again() {
    const EACH: usize = 5_000;
    // The clock stands still: a lock that is taken after it has moved counts as missed.
    let (engine, _) = by_hand();
    let line = |log: usize, expiry: LogExpiry| LogAppend {
        log: key(format!("log:{log}")),
        entry: bytes("00000000:e"),
        entries_max: 100,
        overflow: Overflow::DropOldest,
        expiry,
    };
    // Two threads, each with keys in its own half of the shards.
    let own_keys = |who: usize| -> Vec<RawKey> {
        let names = (0..).map(|n| key(format!("key:{n}")));
        names.filter(|key| engine.inner.hash(key).shard() / 32 == who).take(20).collect()
    };
    in_parallel(2, |who| {
        let keys = own_keys(who);
        for n in 0..EACH {
            let (read, blind) = (keys[n % 10].clone(), keys[10 + n % 10].clone());
            let transfer = move |tx: &mut RawTx<'_>| {
                let next = number(tx, &read)? + 1;
                put_number(tx, &read, next)?;
                tx.write(blind.clone(), Write::IncrBy(1))?;
                let expiry = if n % 2 == 0 { LogExpiry::Keep } else { LogExpiry::At(tx.now() + 60_000) };
                tx.append(line((n + who) % 2, expiry))?;
                tx.append(line((n + who + 1) % 2, expiry))
            };
            transaction(&engine, transfer).unwrap();
        }
    });
    assert_eq!(engine.stats().unwrap().conflicts, 0);
    for log in ["log:0", "log:1"] {
        assert_eq!(read(&engine, log, Read::LLen), Reply::Int(100));
        assert_eq!(
            read(&engine, log, LAST),
            Reply::List(vec![Bytes::from(format!("{}:00000000:e", 2 * EACH))])
        );
    }
}

/// The lock of a log is given back before the other writes are applied, yet no reader sees the entry without them.
#[test]
fn an_entry_is_never_seen_before_the_state_that_it_describes() {
    const WRITES: i64 = 4_000;
    let (engine, _) = by_hand();
    let append = |n: i64| LogAppend {
        log: key("log:numbers"),
        entry: Bytes::from(n.to_string()),
        entries_max: 10,
        overflow: Overflow::DropOldest,
        expiry: LogExpiry::Keep,
    };
    in_parallel(3, |who| {
        for n in 1..=WRITES {
            if who == 0 {
                let write = move |tx: &mut RawTx<'_>| {
                    (0..8).try_for_each(|place| put_number(tx, &key(format!("state:{place}")), n))?;
                    tx.append(append(n))
                };
                transaction(&engine, write).unwrap();
                continue;
            }
            // One reads in a transaction, the other one call after the other.
            let (entry, state) = if who == 1 {
                let read = |tx: &mut RawTx<'_>| {
                    let entry = tx.read(&key("log:numbers"), LAST)?;
                    Ok((entry, number(tx, &key("state:7"))?))
                };
                transaction(&engine, read).unwrap()
            } else {
                let entry = read(&engine, "log:numbers", LAST);
                (entry, text(&engine, "state:7").map_or(0, |text| text.parse().unwrap()))
            };
            let Reply::List(tail) = entry else { panic!("{entry:?}") };
            let described = tail.first().map_or(0, |line| {
                let line = std::str::from_utf8(line).unwrap();
                line.split(':').next_back().unwrap().parse().unwrap()
            });
            assert!(state >= described, "entry {described} was seen before its state, which was {state}");
        }
    });
}
