//! The contract of a body: what reruns, errors, panics, swallowed errors, endless staleness and dropped
//! callers may and may not do.

use crate::builders::*;
use crate::context::Context;
use crate::families::{EVENTS, World};
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Score, ScoreBound, Write, ZSlice};
use emberkeep_hot::{Error, Result, Tx};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An error of a game's own.
#[derive(Debug, PartialEq)]
enum Refusal {
    Game(i64),
    Store(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Store(error)
    }
}

/// Every run of one call draws the same numbers, and no two calls draw the same.
pub async fn reruns_draw_the_same_numbers(context: &Context) {
    let draws = Arc::new(Mutex::new(Vec::<(usize, [u64; 3])>::new()));
    let key = context.fresh();
    for call in 0..20 {
        let (draws, key) = (draws.clone(), key.clone());
        let mut external = context.external();
        let mut runs = 0;
        let body = move |tx: &mut Tx<'_, World>| {
            let drawn = [tx.random(), tx.random(), tx.random()];
            draws.lock().expect("no task panics").push((call, drawn));
            let found = tx.raw_read(&key, Read::Get)?;
            runs += 1;
            if runs < 3 {
                external.disturb(&key, set(&format!("{call}-{runs}")));
            }
            Ok(found)
        };
        context.transaction(body).await.expect("it settles");
    }
    let draws = draws.lock().expect("no task panics");
    let mut first: Vec<[u64; 3]> = Vec::new();
    for call in 0..20 {
        let of_call: Vec<_> = draws.iter().filter(|(c, _)| *c == call).map(|(_, drawn)| *drawn).collect();
        assert!(of_call.iter().all(|drawn| *drawn == of_call[0]), "call {call}: {of_call:?}");
        assert!(!first.contains(&of_call[0]), "two calls drew the same");
        first.push(of_call[0]);
    }
    // Where a body can be made stale from outside, it was: the check above compared something.
    assert!(context.manual_clock().is_some() || draws.len() >= 40, "{} runs", draws.len());
}

/// A read may depend on the time, which is another in every run: the transaction settles all the same.
pub async fn reads_that_depend_on_the_time(context: &Context) {
    let (key, score) = (context.fresh(), |at: i64| Score::new(at as f64).expect("a time"));
    let add = {
        let key = key.clone();
        move |tx: &mut Tx<'_, World>| {
            let members = (0..20).map(|n| (Bytes::from(format!("m{n}")), score(n))).collect();
            tx.raw_write(key.clone(), Write::ZAdd(members))
        }
    };
    context.transaction(add).await.expect("a plain transaction");
    let due = move |tx: &mut Tx<'_, World>| {
        let mut found = 0;
        for limit in 1..=10 {
            let until = ScoreBound::Included(score(tx.now()));
            let slice = ZSlice::Score(ScoreBound::MIN, until, limit);
            match tx.raw_read(&key, Read::ZRange(slice, false))? {
                Reply::Scored(list) => found += list.len(),
                other => panic!("{other:?}"),
            }
        }
        Ok::<_, Error>(found)
    };
    assert_eq!(context.transaction(due).await, Ok(55));
}

/// An error of the body discards writes, log entries and messages, and comes back as it is.
pub async fn an_error_discards_everything(context: &Context) {
    let key = context.fresh();
    let news = crate::families::NEWS.key(1);
    let mut listener = context.scope().subscribe(&news).await.expect("a subscription");
    let (written, channel) = (key.clone(), news.clone());
    let body = move |tx: &mut Tx<'_, World>| -> Result<(), Refusal> {
        tx.raw_write(written.clone(), set("x"))?;
        tx.append(&EVENTS.key(1), &"entry".to_owned())?;
        tx.publish(&channel, &"never".to_owned())?;
        Err(Refusal::Game(7))
    };
    assert_eq!(context.scope().transact(body).await, Err(Refusal::Game(7)));
    assert_eq!(context.read(&key, Read::Exists).await, int(0));
    assert_eq!(context.scope().log_last(&EVENTS.key(1)).await.expect("a log").sequence, 0);
    let channel = news.clone();
    context.transaction(move |tx| tx.publish(&channel, &"later".to_owned())).await.expect("a transaction");
    let first = tokio::time::timeout(Duration::from_secs(5), listener.next()).await.expect("a message comes");
    let shown = format!("{first:?}");
    assert!(shown.contains("later"), "{shown}");
}

/// A panic is an error with its message; nothing of the body is kept, and the store goes on.
pub async fn a_panic_is_an_error(context: &Context) {
    let (key, beside) = (context.fresh(), context.fresh());
    context.put(&key, set("kept")).await;
    for round in 0..5 {
        let (key, beside) = (key.clone(), beside.clone());
        let answer: Result<()> = context
            .transaction(move |tx| {
                tx.raw_write(beside.clone(), set("x"))?;
                tx.raw_read(&key, Read::Get)?;
                tx.raw_write(key.clone(), set("lost"))?;
                // Without the hook's trace on stderr.
                std::panic::resume_unwind(Box::new(format!("round {round}")))
            })
            .await;
        assert_eq!(answer, Err(Error::Panicked { message: format!("round {round}") }));
    }
    assert_eq!(context.read(&key, Read::Get).await, blob("kept"));
    assert_eq!(context.read(&beside, Read::Exists).await, int(0));
    context.put(&key, set("on")).await;
    assert_eq!(context.read_in_transaction(&key, Read::Get).await, Ok(blob("on")));
}

/// A body that swallows the error of a read which is not known yet commits nothing that it made of it.
pub async fn a_swallowed_error_commits_no_garbage(context: &Context) {
    for round in 0..20 {
        let (key, shadow) = (context.fresh(), context.fresh());
        context.put(&key, set(&format!("true {round}"))).await;
        let (from, to) = (key.clone(), shadow.clone());
        let body = move |tx: &mut Tx<'_, World>| {
            let found = match tx.raw_read(&from, Read::Get) {
                Ok(Reply::Blob(text)) => text,
                other => b(&format!("garbage: {other:?}")),
            };
            tx.raw_write(to.clone(), Write::Set(found, emberkeep_hot::command::Expiry::Never))?;
            tx.append(&EVENTS.key(1), &"garbage or not".to_owned())
        };
        context.transaction(body).await.expect("a transaction");
        assert_eq!(context.read(&shadow, Read::Get).await, blob(&format!("true {round}")));
        assert_eq!(context.scope().log_last(&EVENTS.key(1)).await.expect("a log").sequence, round + 1);
    }
}

/// A refused write that the body swallowed is not made, and the others are.
pub async fn a_swallowed_refusal_of_a_write(context: &Context) {
    let (key, beside) = (context.fresh(), context.fresh());
    let (refused, other) = (key.clone(), beside.clone());
    let body = move |tx: &mut Tx<'_, World>| {
        let answer = tx.raw_write(refused.clone(), Write::SAdd(vec![]));
        assert!(answer.is_err());
        tx.raw_write(other.clone(), set("x"))
    };
    assert_eq!(context.transaction(body).await, Ok(()));
    assert_eq!(context.read(&beside, Read::Get).await, blob("x"));
    assert_eq!(context.read(&key, Read::Exists).await, int(0));
}

/// A body whose key an external client changes in every run never settles: `Conflict` by its deadline,
/// nothing written. Where locks keep others out, the same body commits in its first run instead.
pub async fn a_body_that_never_settles(context: &Context) {
    let (key, shadow) = (context.fresh(), context.fresh());
    context.put(&key, set("0")).await;
    let runs = Arc::new(AtomicU32::new(0));
    let mut external = context.external();
    let (from, to, counted) = (key.clone(), shadow.clone(), runs.clone());
    let disturbed = Arc::new(AtomicBool::new(false));
    let was_disturbed = disturbed.clone();
    let body = move |tx: &mut Tx<'_, World>| {
        let found = tx.raw_read(&from, Read::Get)?;
        let run = counted.fetch_add(1, Ordering::Relaxed);
        if external.disturb(&from, set(&format!("changed {run}"))) {
            disturbed.store(true, Ordering::Relaxed);
        }
        tx.raw_write(to.clone(), set(&format!("{found:?}")))
    };
    let deadline = Duration::from_millis(300);
    let started = Instant::now();
    let answer = context.scope().deadline(deadline).transact(body).await;
    let took = started.elapsed();
    if !was_disturbed.load(Ordering::Relaxed) {
        assert_eq!((answer, runs.load(Ordering::Relaxed)), (Ok(()), 1));
        return;
    }
    assert!(matches!(answer, Err(Error::Conflict { .. })), "{answer:?}");
    assert!(took >= deadline - Duration::from_millis(50) && took < deadline * 5, "{took:?}");
    assert!(runs.load(Ordering::Relaxed) > 2, "it tried");
    // A commit that is reported to be in flight could still be executed: check again later.
    for _ in 0..20 {
        assert_eq!(context.read(&shadow, Read::Exists).await, int(0));
        context.transaction(|_| Ok(())).await.expect("a transaction");
    }
    context.put(&key, set("on")).await;
}

/// Cancelled callers block no other caller: every transaction is made whole or not at all, and
/// others go on.
pub async fn dropped_callers_strand_no_other(context: &Context) {
    let (one, other) = (context.fresh(), context.fresh());
    let transaction = |by: i64| {
        let (one, other) = (one.clone(), other.clone());
        let scope = context.scope();
        async move {
            let body = move |tx: &mut Tx<'_, World>| {
                tx.raw_read(&one, Read::Get)?;
                tx.raw_write(one.clone(), Write::IncrBy(by))?;
                tx.raw_write(other.clone(), Write::IncrBy(-by))
            };
            scope.transact(body).await
        }
    };
    let mut kept = 0;
    for round in 0..200u64 {
        let doomed: Vec<_> = (0..4).map(|_| tokio::spawn(transaction(1_000_000))).collect();
        let living: Vec<_> = (0..2).map(|_| tokio::spawn(transaction(1))).collect();
        for _ in 0..round % 8 {
            tokio::task::yield_now().await;
        }
        doomed.iter().for_each(|task| task.abort());
        for task in living {
            task.await.expect("no panic").expect("living callers are served");
            kept += 1;
        }
    }
    let sums = (context.read(&one, Read::Get).await, context.read(&other, Read::Get).await);
    let (Reply::Blob(plus), Reply::Blob(minus)) = sums else { panic!("{sums:?}") };
    let number = |text: &Bytes| -> i64 { String::from_utf8_lossy(text).parse().expect("a number") };
    assert_eq!(number(&plus), -number(&minus), "transactions are made whole");
    assert_eq!(number(&plus) % 1_000_000, kept, "every living caller's transaction is there once");
}

/// A body that polls once and is dropped before it is sent anywhere.
pub async fn a_future_dropped_at_its_first_await(context: &Context) {
    let key = context.fresh();
    for _ in 0..50 {
        let counted = key.clone();
        let transaction = context.transaction(move |tx| tx.raw_write(counted.clone(), Write::IncrBy(1)));
        let mut transaction = Box::pin(transaction);
        let _ = futures_util::future::poll_immediate(&mut transaction).await;
        drop(transaction);
    }
    context.put(&key, Write::IncrBy(1)).await;
    let Reply::Blob(text) = context.read(&key, Read::Get).await else { panic!("the last one counted") };
    let count: i64 = String::from_utf8_lossy(&text).parse().expect("a number");
    assert!((1..=51).contains(&count), "{count}");
}
