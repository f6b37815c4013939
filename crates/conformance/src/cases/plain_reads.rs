//! Plain reads by typed words, outside of transactions, and prefetched reads.

use crate::builders::*;
use crate::context::Context;
use crate::families::*;
use emberkeep_hot::command::{Write, ZSlice};
use emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
use emberkeep_hot::{Error, Result, Tx};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every word answers what a transaction wrote.
pub async fn plain_words(context: &Context) {
    let (at, text) = (context.far(0).await, str::to_owned);
    let fill = move |tx: &mut Tx<'_, World>| {
        tx.put_until(&TOKEN.key(1), &text("t"), at)?;
        tx.put(&NOTE.key(1), &text("n"))?;
        [("b", 2), ("a", 1)].iter().try_for_each(|(f, v)| tx.hset(&SHEET.key(1), &text(f), v))?;
        [10, 9].iter().try_for_each(|member| tx.sadd(&CREW.key(1), member))?;
        ["x", "y", "z"].iter().try_for_each(|e| tx.rpush(&QUEUE.key(1), &text(e)))?;
        [("hi", 2.5), ("lo", -1.0)].iter().try_for_each(|(m, s)| tx.zadd(&BOARD.key(1), &text(m), *s))
    };
    context.transaction(fill).await.expect("a transaction");
    let scope = context.scope();
    assert_eq!(scope.exists(&NOTE.key(1)).await, Ok(true));
    assert_eq!(scope.exists_many(&[1, 2, 1].map(|id| CREW.key(id))).await, Ok(vec![true, false, true]));
    assert_eq!(scope.deadline_of(&TOKEN.key(1)).await, Ok(Some(at)));
    assert_eq!(scope.deadline_of(&NOTE.key(1)).await, Ok(None));
    assert_eq!(scope.hget(&SHEET.key(1), &text("b")).await, Ok(Some(2)));
    assert_eq!(scope.hgetall(&SHEET.key(1)).await, Ok(vec![(text("a"), 1), (text("b"), 2)]));
    assert_eq!(scope.hlen(&SHEET.key(1)).await, Ok(2));
    assert_eq!(scope.smembers(&CREW.key(1)).await, Ok(vec![10, 9]));
    assert_eq!(scope.scard(&CREW.key(1)).await, Ok(2));
    assert_eq!(scope.sismember(&CREW.key(1), &9).await, Ok(true));
    assert_eq!(scope.sismember(&CREW.key(1), &8).await, Ok(false));
    assert_eq!(scope.lrange(&QUEUE.key(1), 1, -1).await, Ok(vec![text("y"), text("z")]));
    assert_eq!(scope.llen(&QUEUE.key(1)).await, Ok(3));
    let ranked = vec![(text("hi"), 2.5), (text("lo"), -1.0)];
    assert_eq!(scope.zrange(&BOARD.key(1), all_ranks(), true).await, Ok(ranked));
    assert_eq!(scope.zscore(&BOARD.key(1), &text("lo")).await, Ok(Some(-1.0)));
    assert_eq!(scope.zcard(&BOARD.key(1)).await, Ok(2));
}

/// What is not there is empty for every word.
pub async fn plain_words_of_absent_keys(context: &Context) {
    let (scope, name) = (context.scope(), "x".to_owned());
    assert_eq!(scope.exists(&NOTE.key(1)).await, Ok(false));
    assert_eq!(scope.exists_many::<NOTE>(&[]).await, Ok(vec![]));
    assert_eq!(scope.deadline_of(&NOTE.key(1)).await, Ok(None));
    assert_eq!(scope.hget(&SHEET.key(1), &name).await, Ok(None));
    assert_eq!(scope.hgetall(&SHEET.key(1)).await, Ok(vec![]));
    assert_eq!(scope.hlen(&SHEET.key(1)).await, Ok(0));
    assert_eq!(scope.smembers(&CREW.key(1)).await, Ok(vec![]));
    assert_eq!(scope.scard(&CREW.key(1)).await, Ok(0));
    assert_eq!(scope.sismember(&CREW.key(1), &1).await, Ok(false));
    assert_eq!(scope.lrange(&QUEUE.key(1), 0, -1).await, Ok(vec![]));
    assert_eq!(scope.llen(&QUEUE.key(1)).await, Ok(0));
    assert_eq!(scope.zrange(&BOARD.key(1), all_ranks(), false).await, Ok(vec![]));
    assert_eq!(scope.zscore(&BOARD.key(1), &name).await, Ok(None));
    assert_eq!(scope.zcard(&BOARD.key(1)).await, Ok(0));
}

fn names<T: Debug>(result: Result<T>, family: &str) {
    match &result {
        Err(Error::WrongType { key, .. } | Error::TooLarge { key, .. }) => {
            assert!(key.contains(family), "{key} names {family}");
        }
        other => panic!("expected a refusal that names {family}, got {other:?}"),
    }
}

/// A key of another type: each word names the family; a word that asks for no type answers.
pub async fn plain_words_on_a_wrong_type(context: &Context) {
    let (scope, name) = (context.scope(), "x".to_owned());
    context.plant(&SHEET.key(1), set("text")).await;
    context.plant(&CREW.key(1), set("text")).await;
    context.plant(&QUEUE.key(1), sadd(&["a"])).await;
    context.plant(&BOARD.key(1), sadd(&["a"])).await;
    names(scope.hget(&SHEET.key(1), &name).await, "SHEET");
    names(scope.hgetall(&SHEET.key(1)).await, "SHEET");
    names(scope.hlen(&SHEET.key(1)).await, "SHEET");
    names(scope.smembers(&CREW.key(1)).await, "CREW");
    names(scope.scard(&CREW.key(1)).await, "CREW");
    names(scope.sismember(&CREW.key(1), &1).await, "CREW");
    names(scope.lrange(&QUEUE.key(1), 0, 5).await, "QUEUE");
    names(scope.llen(&QUEUE.key(1)).await, "QUEUE");
    names(scope.zrange(&BOARD.key(1), all_ranks(), false).await, "BOARD");
    names(scope.zscore(&BOARD.key(1), &name).await, "BOARD");
    names(scope.zcard(&BOARD.key(1)).await, "BOARD");
    names(scope.zrank(&BOARD.key(1), &name).await, "BOARD");
    names(scope.zcount(&BOARD.key(1), incl(0.0), incl(1.0)).await, "BOARD");
    names(scope.lindex(&QUEUE.key(1), 0).await, "QUEUE");
    names(scope.fields(&SHEET.key(1), None, 10).await, "SHEET");
    assert_eq!(scope.exists(&BOARD.key(1)).await, Ok(true));
    assert_eq!(scope.deadline_of(&BOARD.key(1)).await, Ok(None));
}

/// The bounds of a reply are those of a transaction, and the refusal says how a large set is read.
pub async fn plain_words_of_too_much(context: &Context) {
    let (scope, most) = (context.scope(), REPLY_ELEMENTS_MAX as i64);
    names(scope.lrange(&QUEUE.key(1), 0, most).await, "QUEUE");
    names(scope.zrange(&BOARD.key(1), ZSlice::Rank(0, most), false).await, "BOARD");
    let members = |from: usize, to: usize| Write::SAdd((from..to).map(|n| b(&n.to_string())).collect());
    context.plant(&CREW.key(1), members(0, REPLY_ELEMENTS_MAX)).await;
    assert_eq!(scope.smembers(&CREW.key(1)).await.map(|all| all.len()), Ok(REPLY_ELEMENTS_MAX));
    context.plant(&CREW.key(1), members(REPLY_ELEMENTS_MAX, REPLY_ELEMENTS_MAX + 1)).await;
    let answer = scope.smembers(&CREW.key(1)).await;
    assert!(answer.as_ref().is_err_and(|error| error.to_string().contains("`Scope::members`")), "{answer:?}");
    names(answer, "CREW");
    names(context.transaction(|tx| tx.smembers(&CREW.key(1))).await, "CREW");
    assert_eq!(scope.scard(&CREW.key(1)).await, Ok(REPLY_ELEMENTS_MAX + 1));
}

/// One value that cannot be read does not affect the others.
pub async fn each_value_with_its_own_result(context: &Context) {
    let scope = context.scope();
    let good = Monster { hp: 5, name: "ok".into() };
    scope.put(&MONSTER.key(1), good.clone()).await.expect("a transaction");
    context.plant(&MONSTER.key(2), set("{broken")).await;
    context.plant(&MONSTER.key(3), sadd(&["a"])).await;
    let each = scope.get_each(&[1, 2, 3, 4].map(|id| MONSTER.key(id))).await.expect("the store answers");
    assert_eq!((&each[0], &each[3]), (&Ok(Some(good)), &Ok(None)));
    assert!(matches!(&each[1], Err(Error::Corrupt { key, .. }) if key.contains("MONSTER")), "{:?}", each[1]);
    names(each[2].clone(), "MONSTER");
    assert_eq!(scope.get_each::<MONSTER, _>(&[]).await.map(|each| each.len()), Ok(0));
}

/// Prefetched reads are known when the body begins: it runs once, although this process has not read the keys before.
pub async fn prefetched_reads(context: &Context) {
    let fill = |tx: &mut Tx<'_, World>| {
        tx.put(&NOTE.key(1), &"n".to_owned())?;
        tx.put(&COUNT.key(1), &5)?;
        tx.sadd(&CREW.key(1), &7)
    };
    context.other_scope().transact(fill).await.expect("a transaction");
    let scope = context.scope().prefetch_get(&NOTE.key(1)).prefetch_exists(&COUNT.key(1));
    let scope = scope.prefetch_members(&CREW.key(1)).prefetch_members(&CREW.key(2));
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let body = move |tx: &mut Tx<'_, World>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let crews = (tx.smembers(&CREW.key(1))?, tx.smembers(&CREW.key(2))?);
        Ok::<_, Error>((tx.get(&NOTE.key(1))?, tx.exists(&COUNT.key(1))?, crews))
    };
    let found = scope.transact(body).await;
    assert_eq!(found, Ok((Some("n".to_owned()), true, (vec![7], vec![]))));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}
