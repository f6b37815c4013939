//! What a closure can do besides reads and writes: borrow arguments, undo a part, read many things at once,
//! only read, have a name. And what it cannot: use the store.

use crate::builders::*;
use crate::context::Context;
use crate::families::*;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::limits::{TRANSACTION_BYTES_MAX, VALUE_BYTES_MAX};
use emberkeep_hot::{Error, ReadTx, Result, Tx};
use futures_util::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Arguments are owned once and lent to every run.
pub async fn arguments_are_lent_to_each_run(context: &Context) {
    /// A value that cannot be cloned.
    struct Order(String);
    let key = NOTE.key(1);
    context.plant(&key, set("old")).await;
    let scope = context.scope();
    let answer = scope.transact_with(Order("new".into()), |tx, order: &Order| {
        let before = tx.get(&NOTE.key(1))?;
        tx.put(&NOTE.key(1), &order.0)?;
        Ok::<_, Error>(before)
    });
    assert_eq!(answer.await, Ok(Some("old".to_owned())));
    assert_eq!(scope.get(&key).await, Ok(Some("new".to_owned())));
}

/// A refused attempt takes back its writes, log entries and messages, and no others; what it would have
/// written is not read any more.
pub async fn a_refused_attempt_undoes_its_part(context: &Context) {
    let mut listener = context.scope().subscribe(&NEWS.key(1)).await.expect("a subscription");
    let body = |tx: &mut Tx<'_, World>| {
        tx.put(&NOTE.key(1), &"before".to_owned())?;
        tx.append(&EVENTS.key(1), &"before".to_owned())?;
        let refused: Result<(), &str> = tx.attempt(|tx| {
            tx.put(&NOTE.key(1), &"inside".to_owned())?;
            tx.sadd(&CREW.key(1), &7)?;
            tx.append(&EVENTS.key(1), &"inside".to_owned())?;
            tx.publish(&NEWS.key(1), &"inside".to_owned())?;
            // An attempt that succeeds goes with the one around it.
            let nested: Result<usize, ()> = tx.attempt(|tx| {
                tx.sadd(&CREW.key(1), &8)?;
                Ok(Ok(tx.scard(&CREW.key(1))?))
            })?;
            assert_eq!(nested, Ok(2), "it sees what was written around it");
            Ok(Err("refused"))
        })?;
        assert_eq!(tx.get(&NOTE.key(1))?.as_deref(), Some("before"));
        assert_eq!(tx.scard(&CREW.key(1))?, 0);
        let kept: Result<(), &str> = tx.attempt(|tx| {
            let refused: Result<(), ()> = tx.attempt(|tx| {
                tx.incr_by(&COUNT.key(1), 100)?;
                Ok(Err(()))
            })?;
            assert_eq!(refused, Err(()));
            tx.incr_by(&COUNT.key(1), 1)?;
            Ok(Ok(()))
        })?;
        tx.publish(&NEWS.key(1), &"after".to_owned())?;
        Ok::<_, Error>((refused, kept))
    };
    assert_eq!(context.transaction(body).await, Ok((Err("refused"), Ok(()))));
    let scope = context.scope();
    assert_eq!(scope.get(&NOTE.key(1)).await, Ok(Some("before".to_owned())));
    assert_eq!(scope.get(&COUNT.key(1)).await, Ok(Some(1)));
    assert_eq!(scope.exists(&CREW.key(1)).await, Ok(false));
    assert_eq!(scope.log_last(&EVENTS.key(1)).await.expect("a log").sequence, 1);
    let first = tokio::time::timeout(Duration::from_secs(5), listener.next()).await.expect("a message comes");
    assert!(format!("{first:?}").contains("after"), "{first:?}");
}

/// An error of the store passes through an attempt, with nothing of the part left.
pub async fn an_error_in_an_attempt(context: &Context) {
    context.plant(&CREW.key(1), set("no set")).await;
    let body = |tx: &mut Tx<'_, World>| {
        let failed: Result<Result<(), ()>> = tx.attempt(|tx| {
            tx.incr_by(&COUNT.key(1), 100)?;
            tx.sadd(&CREW.key(2), &7)?;
            tx.smembers(&CREW.key(1))?;
            Ok(Ok(()))
        });
        match failed {
            Err(Error::WrongType { .. }) => tx.incr_by(&COUNT.key(1), 1),
            other => other.map(|_| ()),
        }
    };
    assert_eq!(context.transaction(body).await, Ok(()));
    assert_eq!(context.scope().get(&COUNT.key(1)).await, Ok(Some(1)));
    assert_eq!(context.scope().exists(&CREW.key(2)).await, Ok(false));
}

/// What was undone does not count against the limits of a transaction.
pub async fn undone_bytes_do_not_count(context: &Context) {
    let key = context.fresh();
    let body = move |tx: &mut Tx<'_, World>| {
        let value = bytes::Bytes::from(vec![b'x'; VALUE_BYTES_MAX - 4_096]);
        for _ in 0..2 * TRANSACTION_BYTES_MAX / VALUE_BYTES_MAX {
            let (key, value) = (key.clone(), value.clone());
            let refused: Result<(), ()> = tx.attempt(|tx| {
                tx.raw_write(key, Write::RPush(vec![value]))?;
                Ok(Err(()))
            })?;
            assert_eq!(refused, Err(()));
        }
        tx.put(&NOTE.key(1), &"fits".to_owned())
    };
    assert_eq!(context.transaction(body).await, Ok(()));
}

/// A refusal stands for what its attempt read: if that changes before the commit, the attempt runs again.
pub async fn reads_of_a_refused_attempt_are_validated(context: &Context) {
    let raw = context.plant(&COUNT.key(1), set("0")).await;
    let mut external = context.external();
    let mut runs = 0;
    let body = move |tx: &mut Tx<'_, World>| {
        let refused: Result<(), i64> = tx.attempt(|tx| {
            let gold = tx.get_or(&COUNT.key(1), || 0)?;
            tx.incr_by(&COUNT.key(1), -10)?;
            Ok(if gold < 10 { Err(gold) } else { Ok(()) })
        })?;
        runs += 1;
        let changed = runs == 1 && external.disturb(&raw, set("5"));
        tx.put(&NOTE.key(1), &format!("{refused:?}"))?;
        Ok::<_, Error>((refused, changed || runs > 1))
    };
    let (refused, was_changed) = context.transaction(body).await.expect("it settles");
    assert_eq!(refused, Err(if was_changed { 5 } else { 0 }));
    let note = context.scope().get(&NOTE.key(1)).await.expect("a plain read");
    assert_eq!(note, Some(format!("{refused:?}")));
}

/// Reads of several families are made in one round trip, in transactions that write and in those that do not.
pub async fn families_are_read_together(context: &Context) {
    context.plant(&NOTE.key(1), set("a note")).await;
    context.plant(&COUNT.key(1), set("7")).await;
    context.plant(&CREW.key(1), sadd(&["3"])).await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let all = |tx: &mut ReadTx<'_, World>| {
        tx.together(|tx| {
            (tx.get(&NOTE.key(1)), tx.get(&COUNT.key(1)), tx.smembers(&CREW.key(1)), tx.exists(&SHEET.key(1)))
        })
    };
    let expected = (Some("a note".to_owned()), Some(7), vec![3], false);
    let scope = context.scope();
    let read = scope.read(move |tx| {
        counted.fetch_add(1, Ordering::Relaxed);
        all(tx)
    });
    assert_eq!(read.await, Ok(expected.clone()));
    assert!(
        runs.load(Ordering::Relaxed) <= 2,
        "{runs:?} runs: the first misses all four, the second has them"
    );
    let written = context.transaction(move |tx| {
        tx.put(&NOTE.key(2), &"beside".to_owned())?;
        let own = tx.together(|tx| (tx.get(&NOTE.key(2)), tx.get_many(&[NOTE.key(1), NOTE.key(3)])))?;
        assert_eq!(own, (Some("beside".to_owned()), vec![Some("a note".to_owned()), None]));
        all(tx)
    });
    assert_eq!(written.await, Ok(expected));
}

/// The first error of reads made together is that of all, and the transaction goes on.
pub async fn an_error_among_reads_together(context: &Context) {
    context.plant(&COUNT.key(1), sadd(&["no number"])).await;
    let body = |tx: &mut Tx<'_, World>| {
        let answer = tx.together(|tx| (tx.get(&NOTE.key(1)), tx.get(&COUNT.key(1))));
        match answer {
            Err(Error::WrongType { key, .. }) => Ok(key),
            other => other.map(|values| panic!("{values:?}")),
        }
    };
    let key = context.transaction(body).await.expect("it goes on");
    assert!(key.contains("COUNT"), "{key}");
}

/// A read-only transaction sees one moment.
pub async fn a_read_only_transaction_sees_one_moment(context: &Context) {
    let keys = [context.fresh(), context.fresh()];
    let (scope, other) = (context.scope(), context.other_scope());
    for n in 1..=40i64 {
        let (pair, number) = (keys.clone(), n.to_string());
        let write = other.transact(move |tx| {
            tx.raw_write(pair[0].clone(), set(&number))?;
            tx.raw_write(pair[1].clone(), set(&number))
        });
        let pair = keys.clone();
        let read = scope.read(move |tx| {
            let first = tx.raw_read(&pair[0], Read::Get)?;
            let now = tx.now();
            assert!(now > 0 && tx.random() != tx.random());
            Ok::<_, Error>((first, tx.raw_read(&pair[1], Read::Get)?))
        });
        let (written, read) = tokio::join!(write, read);
        written.expect("a transaction");
        let (first, second) = read.expect("a read");
        assert_eq!(first, second, "both of one moment");
    }
    let pair = keys.clone();
    let last = context.scope().read(move |tx| tx.raw_read(&pair[0], Read::Get)).await;
    assert_eq!(last, Ok(blob("40")));
}

/// `update` changes what exists, `get_or` makes up what does not, and neither writes an absent key.
pub async fn update_and_get_or(context: &Context) {
    let body = |tx: &mut Tx<'_, World>| {
        assert_eq!(tx.update(&COUNT.key(1), |count| *count += 1)?, None);
        assert_eq!(tx.get_or(&COUNT.key(1), || 41)?, 41);
        tx.put(&SEEN.key(1), &41)?;
        let before = tx.update(&SEEN.key(1), |count| std::mem::replace(count, 42))?;
        Ok::<_, Error>((before, tx.get_or(&SEEN.key(1), || 0)?))
    };
    assert_eq!(context.transaction(body).await, Ok((Some(41), 42)));
    assert_eq!(context.scope().exists(&COUNT.key(1)).await, Ok(false));
    assert_eq!(context.scope().get(&SEEN.key(1)).await, Ok(Some(42)));
    assert!(context.scope().deadline_of(&SEEN.key(1)).await.expect("a read").is_some(), "as `put` does it");
}

/// Every call of the store inside a closure is the same error, and the transaction around it goes on.
pub async fn the_store_is_refused_inside_a_closure(context: &Context) {
    let (scope, beside) = (context.scope(), context.scope_beside("inside"));
    let raw = context.fresh();
    let body = move |tx: &mut Tx<'_, World>| {
        let store = scope.store();
        let engine = store.engine();
        /// Polled once: it must be refused at once, without waiting.
        fn polled<T>(call: impl Future<Output = Result<T>>) -> Option<Error> {
            call.now_or_never().expect("it is refused at once").err()
        }
        let refusals = [
            ("transact", polled(scope.transact(|tx| tx.del(&NOTE.key(1))))),
            ("transact elsewhere", polled(beside.transact(|tx| tx.del(&NOTE.key(1))))),
            ("read", polled(scope.read(|tx| tx.get(&NOTE.key(1))))),
            ("get", polled(scope.get(&NOTE.key(1)))),
            ("get_many", polled(scope.get_many(&[NOTE.key(1)]))),
            ("smembers", polled(scope.smembers(&CREW.key(1)))),
            ("members", polled(scope.members(&CREW.key(1), None, 10))),
            ("put", polled(scope.put(&NOTE.key(1), "x".to_owned()))),
            ("scan", polled(store.scan::<NOTE>(None, 10))),
            ("subscribe", polled(scope.subscribe(&NEWS.key(1)))),
            ("subscribe_all", polled(store.subscribe_all::<NEWS, _>())),
            ("now", polled(store.now())),
            ("ready", polled(store.ready())),
            ("close", polled(store.close())),
            ("stats", store.stats().err()),
            ("raw read", polled(engine.read_many(vec![(raw.clone(), Read::Get)]))),
            ("raw scan", polled(engine.scan(None, b"*", 10))),
            ("raw stats", engine.stats().err()),
        ];
        for (call, refusal) in refusals {
            assert_eq!(refusal, Some(Error::InsideTransaction), "{call}");
        }
        tx.raw_write(raw.clone(), set("committed"))?;
        Ok::<_, Error>(raw.clone())
    };
    let key = context.transaction(body).await.expect("it goes on");
    assert_eq!(context.read(&key, Read::Get).await, blob("committed"));
    assert!(context.store().stats().is_ok(), "after the transaction the store is free again");
}

/// A panic ends the time inside a closure, too.
pub async fn the_store_is_free_after_a_panic(context: &Context) {
    let answer: Result<()> =
        context.transaction(|_| std::panic::resume_unwind(Box::new("on purpose".to_owned()))).await;
    assert!(matches!(answer, Err(Error::Panicked { .. })), "{answer:?}");
    assert_eq!(context.scope().get(&NOTE.key(1)).await, Ok(None));
    assert!(context.store().stats().is_ok());
}

/// A name is in the errors of its transactions, and counts their calls and runs.
pub async fn a_name_is_reported_and_counted(context: &Context) {
    let name: &'static str = Box::leak(format!("case {}", context.partition()).into_boxed_str());
    let scope = context.scope().named(name);
    for _ in 0..3 {
        scope.transact(|tx| tx.incr_by(&COUNT.key(1), 1)).await.expect("a transaction");
    }
    let answer =
        scope.transact(|_| -> Result<()> { std::panic::resume_unwind(Box::new("oh".to_owned())) }).await;
    assert_eq!(answer, Err(Error::Panicked { message: format!("oh (transaction {name})") }));
    let counted = context.store().named_stats().into_iter().find(|stats| stats.name == name);
    let counted = counted.expect("it was used");
    assert_eq!(counted.calls, 4, "{counted:?}");
    assert!(counted.runs >= 4 && counted.conflicts == 0, "{counted:?}");
    let is_remote = context.manual_clock().is_none();
    assert_eq!(counted.round_trips >= 3, is_remote, "{counted:?}");
}

/// The error of a transaction that never settles has its name, and its conflicts are counted.
pub async fn conflicts_are_named(context: &Context) {
    let name: &'static str = Box::leak(format!("conflict {}", context.partition()).into_boxed_str());
    let raw = context.plant(&COUNT.key(1), set("0")).await;
    let mut external = context.external();
    let mut runs = 0;
    let body = move |tx: &mut Tx<'_, World>| {
        let found = tx.raw_read(&raw, Read::Get)?;
        runs += 1;
        external.disturb(&raw, set(&runs.to_string()));
        tx.put(&NOTE.key(1), &format!("{found:?}"))?;
        Ok::<_, Error>(found)
    };
    let scope = context.scope().named(name).deadline(Duration::from_millis(200));
    match scope.transact(body).await {
        Ok(found) => assert_eq!((found, context.manual_clock().is_some()), (Reply::Blob(b("0")), true)),
        Err(error @ Error::Conflict { transaction, .. }) => {
            assert_eq!(transaction, Some(name));
            assert!(error.to_string().contains(name), "{error}");
            let counted = context.store().named_stats().into_iter().find(|stats| stats.name == name);
            assert!(counted.is_some_and(|counted| counted.conflicts > 0), "{counted:?}");
        }
        Err(other) => panic!("{other}"),
    }
}
