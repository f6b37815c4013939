//! Transactions that run at the same time on the same keys, some of which fail: an engine may carry them in
//! one commit, but each one's fate is its own.

use crate::builders::*;
use crate::context::Context;
use crate::families::{EVENTS, OUTBOX, OUTBOX_MAX, World};
use bytes::Bytes;
use emberkeep_hot::command::{Read, Write};
use emberkeep_hot::{Error, Result, Scope, Tx};
use futures_util::future::join_all;

/// Transactions at a time.
const AT_ONCE: usize = 24;
/// How often all of it happens at once.
const ROUNDS: usize = 15;

type Body = Box<dyn FnMut(&mut Tx<'_, World>) -> Result<()> + Send>;

/// Runs bodies at once and gives their results in order.
async fn at_once(scope: &Scope<World>, bodies: Vec<Body>) -> Vec<Result<()>> {
    let tasks = bodies.into_iter().map(|body| {
        let scope = scope.clone();
        tokio::spawn(async move { scope.transact(body).await })
    });
    let done = join_all(tasks.collect::<Vec<_>>()).await;
    done.into_iter().map(|result| result.expect("no caller panics")).collect()
}

fn writes(list: Vec<(Bytes, Write)>) -> Body {
    Box::new(move |tx| list.iter().try_for_each(|(key, write)| tx.raw_write(key.clone(), write.clone())))
}

/// Every third transaction fails as `failing` makes it fail; the others count.
async fn every_third_fails(
    context: &Context,
    failing: impl Fn(&Bytes) -> Body,
    is_expected: impl Fn(&Error) -> bool,
) {
    for _ in 0..ROUNDS {
        let (count, beside) = (context.fresh(), context.fresh());
        let body = |n: usize| {
            if n.is_multiple_of(3) {
                failing(&beside)
            } else {
                writes(vec![(count.clone(), Write::IncrBy(1))])
            }
        };
        let results = at_once(&context.scope(), (0..AT_ONCE).map(body).collect()).await;
        for (n, result) in results.iter().enumerate() {
            match result {
                Err(error) if n % 3 == 0 => assert!(is_expected(error), "transaction {n}: {error}"),
                other => assert_eq!((other, n % 3 == 0), (&Ok(()), false), "transaction {n}"),
            }
        }
        assert_eq!(context.read(&count, Read::Get).await, blob(&(AT_ONCE - AT_ONCE / 3).to_string()));
        assert_eq!(context.read(&beside, Read::Exists).await, int(0), "what fails writes nothing");
    }
}

/// Transactions that meet an external type beside transactions that do not.
pub async fn wrong_types_beside_good_transactions(context: &Context) {
    let text = context.fresh();
    context.put(&text, set("text")).await;
    let failing = |beside: &Bytes| writes(vec![(beside.clone(), set("x")), (text.clone(), sadd(&["a"]))]);
    every_third_fails(context, failing, |error| matches!(error, Error::WrongType { .. })).await;
    assert_eq!(context.read(&text, Read::Get).await, blob("text"));
}

/// The same on one and the same key: those that count it, and those that take it for a set.
pub async fn two_opinions_of_one_key(context: &Context) {
    for _ in 0..ROUNDS {
        let (count, beside) = (context.fresh(), context.fresh());
        context.put(&count, set("0")).await;
        let body = |n: usize| match n % 3 {
            0 => writes(vec![(beside.clone(), set("x")), (count.clone(), sadd(&["a"]))]),
            _ => writes(vec![(count.clone(), Write::IncrBy(1))]),
        };
        let results = at_once(&context.scope(), (0..AT_ONCE).map(body).collect()).await;
        for (n, result) in results.iter().enumerate() {
            let refused = matches!(result, Err(Error::WrongType { .. }));
            assert_eq!(refused, n % 3 == 0, "transaction {n}: {result:?}");
        }
        assert_eq!(context.read(&count, Read::Get).await, blob(&(AT_ONCE - AT_ONCE / 3).to_string()));
        assert_eq!(context.read(&beside, Read::Exists).await, int(0));
    }
}

/// Each transaction leaves the key as it found it, absent, but uses it as another type: all are good.
pub async fn a_key_that_changes_its_type(context: &Context) {
    for _ in 0..ROUNDS {
        let key = context.fresh();
        let body = |n: usize| {
            let pair = match n % 3 {
                0 => [sadd(&["a"]), srem(&["a"])],
                1 => [hset(&[("f", "v")]), hdel(&["f"])],
                _ => [rpush(&["a"]), Write::LPop(1)],
            };
            writes(pair.into_iter().map(|write| (key.clone(), write)).collect())
        };
        let results = at_once(&context.scope(), (0..AT_ONCE).map(body).collect()).await;
        assert!(results.iter().all(|result| *result == Ok(())), "{results:?}");
        assert_eq!(context.read(&key, Read::Exists).await, int(0));
    }
}

/// The writes of a refused transaction are never visible to another one.
pub async fn no_reader_sees_what_is_refused(context: &Context) {
    let text = context.fresh();
    context.put(&text, set("text")).await;
    for _ in 0..ROUNDS {
        let key = context.fresh();
        context.put(&key, set("clean")).await;
        let body = |n: usize| -> Body {
            if n.is_multiple_of(3) {
                return writes(vec![(key.clone(), set("dirty")), (text.clone(), sadd(&["a"]))]);
            }
            let key = key.clone();
            Box::new(move |tx| {
                let found = tx.raw_read(&key, Read::Get)?;
                // As an error: what a body makes of its reads must be true too.
                if found == blob("clean") { Ok(()) } else { Err(Error::Closed) }
            })
        };
        let results = at_once(&context.scope(), (0..AT_ONCE).map(body).collect()).await;
        for (n, result) in results.iter().enumerate() {
            let refused = matches!(result, Err(Error::WrongType { .. }));
            assert_eq!((refused, result == &Ok(())), (n % 3 == 0, n % 3 != 0), "transaction {n}: {result:?}");
        }
    }
}

/// Errors and panics of bodies that had already written.
pub async fn failing_bodies_beside_good_transactions(context: &Context) {
    let error = |beside: &Bytes| -> Body {
        let beside = beside.clone();
        Box::new(move |tx| {
            tx.raw_write(beside.clone(), set("x"))?;
            tx.append(&EVENTS.key(1), &"never".to_owned())?;
            Err(Error::Closed)
        })
    };
    every_third_fails(context, error, |error| *error == Error::Closed).await;
    let panic = |beside: &Bytes| -> Body {
        let beside = beside.clone();
        Box::new(move |tx| {
            tx.raw_write(beside.clone(), set("x"))?;
            std::panic::resume_unwind(Box::new("corrupt"))
        })
    };
    every_third_fails(context, panic, |error| matches!(error, Error::Panicked { .. })).await;
    assert_eq!(context.scope().log_last(&EVENTS.key(1)).await.expect("a log").sequence, 0);
}

/// A full log refuses the transactions that append to it, and no others.
pub async fn a_full_log_beside_good_transactions(context: &Context) {
    let fill = |tx: &mut Tx<'_, World>| {
        (0..OUTBOX_MAX).try_for_each(|_| tx.append(&OUTBOX.key(1), &"full".to_owned()))
    };
    context.transaction(fill).await.expect("the first ones fit");
    let failing = |beside: &Bytes| -> Body {
        let beside = beside.clone();
        Box::new(move |tx| {
            tx.raw_write(beside.clone(), set("x"))?;
            tx.append(&OUTBOX.key(1), &"too many".to_owned())
        })
    };
    every_third_fails(context, failing, |error| matches!(error, Error::LogFull { .. })).await;
    assert_eq!(context.scope().log_last(&OUTBOX.key(1)).await.expect("a log").sequence, OUTBOX_MAX as u64);
}

/// Of many that want the last place of a log, one gets it.
pub async fn the_last_place_of_a_log(context: &Context) {
    for round in 0..ROUNDS {
        let scope = context.scope_beside(&format!("last{round}"));
        let body = |_| -> Body { Box::new(|tx| tx.append(&OUTBOX.key(1), &"mine".to_owned())) };
        let results = at_once(&scope, (0..AT_ONCE).map(body).collect()).await;
        let taken = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(taken, OUTBOX_MAX, "{results:?}");
        assert_eq!(scope.log_last(&OUTBOX.key(1)).await.expect("a log").sequence, OUTBOX_MAX as u64);
    }
}

/// Reads and writes of many transactions on one hash: nothing is lost, and each sees whole transactions.
pub async fn many_fields_of_one_hash(context: &Context) {
    let key = context.fresh();
    for round in 0..ROUNDS {
        let body = |n: usize| -> Body {
            let key = key.clone();
            Box::new(move |tx| {
                let field = Bytes::from(format!("{round}:{n}"));
                let before = tx.raw_read(&key, Read::HLen)?;
                tx.raw_write(key.clone(), Write::HSet(vec![(field.clone(), b(&format!("{before:?}")))]))?;
                let after = tx.raw_read(&key, Read::HGet(field))?;
                assert_eq!(after, blob(&format!("{before:?}")));
                Ok(())
            })
        };
        let results = at_once(&context.scope(), (0..AT_ONCE).map(body).collect()).await;
        assert!(results.iter().all(|result| *result == Ok(())), "{results:?}");
    }
    let emberkeep_hot::command::Reply::Pairs(pairs) = context.read(&key, Read::HGetAll).await else {
        panic!("a hash")
    };
    let mut found: Vec<Bytes> = pairs.into_iter().map(|(_, before)| before).collect();
    let mut expected: Vec<Bytes> =
        (0..ROUNDS * AT_ONCE).map(|n| b(&format!("{:?}", int(n as i64)))).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "each transaction saw another number of fields");
}
