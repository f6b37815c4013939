//! Hashes: HGET, HMGET, HGETALL, HLEN, HSET, HINCRBY, HDEL.

use crate::builders::*;
use crate::context::Context;
use crate::external::StoredValue;
use crate::families::{SHEET, World};
use crate::replay::{replay, replay_to_absent, replay_to_value};
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::{Error, Result, Tx};

/// Fields are set, replaced and read, by themselves and together.
pub async fn fields(context: &Context) {
    let writes = [hset(&[("b", "1"), ("a", "2")]), hset(&[("b", "3"), ("c", "")]), hdel(&["a", "never"])];
    let answers = [
        (Read::HGet(b("b")), blob("3")),
        (Read::HGet(b("a")), Reply::Nil),
        (Read::HGet(b("c")), blob("")),
        (Read::HGet(b("never")), Reply::Nil),
        (Read::HGetAll, pairs(&[("b", "3"), ("c", "")])),
        (Read::HLen, int(2)),
        (Read::Exists, int(1)),
    ];
    replay(context, &writes, &answers).await;
    let observed = [(b("b"), b("3")), (b("c"), b(""))].into_iter().collect();
    replay_to_value(context, &writes, StoredValue::Hash(observed), None).await;
}

/// A field named twice in one HSET takes the last value, and counts once.
pub async fn a_field_named_twice(context: &Context) {
    let answers = [(Read::HLen, int(1)), (Read::HGet(b("f")), blob("2"))];
    replay(context, &[hset(&[("f", "1"), ("f", "2")])], &answers).await;
    replay(context, &[hset(&[("f", "0")]), hdel(&["f", "f"]), hset(&[("f", "2")])], &answers).await;
}

/// Every read of a hash that does not exist is empty.
pub async fn absent_hash(context: &Context) {
    let answers = [
        (Read::HGet(b("f")), Reply::Nil),
        (Read::HGetAll, pairs(&[])),
        (Read::HLen, int(0)),
        (Read::Exists, int(0)),
    ];
    replay(context, &[], &answers).await;
    replay(context, &[hdel(&["f"])], &answers).await;
    replay(context, &[hset(&[("f", "v")]), Write::Del], &answers).await;
}

/// The last field takes the hash with it, and its deadline.
pub async fn an_empty_hash_vanishes(context: &Context) {
    let at = context.far(0).await;
    replay_to_absent(context, &[hset(&[("f", "v"), ("g", "w")]), Write::ExpireAt(at), hdel(&["f", "g"])])
        .await;
    let writes = [hset(&[("f", "v")]), Write::ExpireAt(at), hdel(&["f"]), hset(&[("g", "w")])];
    let answers = [(Read::ExpireTime, int(-1)), (Read::HGetAll, pairs(&[("g", "w")]))];
    replay(context, &writes, &answers).await;
}

/// Numbers in fields are increased without being read, beside other writes of the same hash.
pub async fn increments_of_fields(context: &Context) {
    let incr = |field: &str, by: i64| Write::HIncrBy(b(field), by);
    let writes = [
        hset(&[("a", "5"), ("text", "x")]),
        incr("a", 2),
        incr("new", -3),
        incr("a", -10),
        hdel(&["new"]),
        incr("new", 4),
        hset(&[("a", "100")]),
        incr("a", 1),
    ];
    let answers = [
        (Read::HGet(b("a")), blob("101")),
        (Read::HGet(b("new")), blob("4")),
        (Read::HGet(b("text")), blob("x")),
        (Read::HLen, int(3)),
        (Read::HGetAll, pairs(&[("a", "101"), ("new", "4"), ("text", "x")])),
    ];
    replay(context, &writes, &answers).await;
    let counted = [(Read::HGet(b("n")), blob("7")), (Read::HLen, int(1)), (Read::Exists, int(1))];
    replay(context, &[incr("n", 3), incr("n", 4)], &counted).await;
    replay(context, &[incr("n", 3), Write::Del, incr("n", 7)], &counted).await;
    let at = context.far(0).await;
    replay(context, &[incr("n", 3), Write::ExpireAt(at), incr("n", 4)], &[(Read::ExpireTime, int(at))]).await;
}

/// An increment of a field that is not a number, or that leaves 64 bits, is refused, with all of its transaction.
pub async fn refused_increments_of_fields(context: &Context) {
    let max = i64::MAX.to_string();
    for (start, by) in [("x", 1), ("", 1), ("01", 1), ("9223372036854775808", 1), (max.as_str(), 1)] {
        for together in [false, true] {
            let (key, beside) = (context.fresh(), context.fresh());
            let mut writes = vec![(beside.clone(), set("x"))];
            if together {
                writes.push((key.clone(), hset(&[("f", start)])));
            } else {
                context.put(&key, hset(&[("f", start)])).await;
            }
            writes.push((key.clone(), Write::HIncrBy(b("f"), by)));
            let refused = context.write(writes).await;
            let is_named = match &refused {
                Err(Error::Corrupt { reason, .. }) => start != max && reason.contains("field f"),
                Err(Error::Overflow { value: i64::MAX, by: 1, .. }) => start == max,
                _ => false,
            };
            assert!(is_named, "{start:?}, in one body: {together}: {refused:?}");
            assert_eq!(context.read(&beside, Read::Exists).await, int(0), "{start:?}");
            let kept = if together { Reply::Nil } else { blob(start) };
            assert_eq!(context.read(&key, Read::HGet(b("f"))).await, kept);
        }
    }
    let too_large = context.write(vec![(context.fresh(), Write::HIncrBy(b("f"), i64::MAX))]).await;
    assert!(matches!(too_large, Err(Error::Invalid { what: "increment", .. })), "{too_large:?}");
    context.plant(&SHEET.key(1), hset(&[("f", "x")])).await;
    let answer = context.transaction(|tx| tx.hincr_by(&SHEET.key(1), &"f".to_owned(), 1)).await;
    assert!(
        matches!(&answer, Err(Error::Corrupt { key, .. }) if key.contains("(family SHEET)")),
        "{answer:?}"
    );
}

/// Transactions at once increase a few fields, some set them: the sums are right.
pub async fn increments_of_fields_at_once(context: &Context) {
    let tasks: Vec<_> = (0..40i64)
        .map(|n| {
            let scope = if n % 2 == 0 { context.scope() } else { context.other_scope() };
            tokio::spawn(async move {
                let body = move |tx: &mut Tx<'_, World>| {
                    tx.hincr_by(&SHEET.key(1), &format!("f{}", n % 3), n)?;
                    tx.hincr_by(&SHEET.key(1), &"all".to_owned(), 1)
                };
                scope.transact(body).await
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic").expect("a transaction");
    }
    let sum = |rest: i64| (0..40).filter(|n| n % 3 == rest).sum::<i64>();
    let names: Vec<String> = ["all", "f0", "f1", "f2", "none"].map(str::to_owned).into();
    let found = context.scope().hmget(&SHEET.key(1), &names).await;
    assert_eq!(found, Ok(vec![Some(40), Some(sum(0)), Some(sum(1)), Some(sum(2)), None]));
}

/// Several fields at once, in the order asked for, own writes among them.
pub async fn several_fields_at_once(context: &Context) {
    let names: Vec<String> = ["b", "a", "none", "b", "own"].map(str::to_owned).into();
    let asked = names.clone();
    context.plant(&SHEET.key(1), hset(&[("a", "1"), ("b", "2")])).await;
    let observed = context.transaction(move |tx| {
        tx.hset(&SHEET.key(1), &"own".to_owned(), &9)?;
        tx.hincr_by(&SHEET.key(1), &"b".to_owned(), 5)?;
        tx.hmget(&SHEET.key(1), &asked)
    });
    let expected = vec![Some(7), Some(1), None, Some(7), Some(9)];
    assert_eq!(observed.await, Ok(expected.clone()));
    assert_eq!(context.scope().hmget(&SHEET.key(1), &names).await, Ok(expected));
    assert_eq!(context.scope().hmget(&SHEET.key(2), &names).await, Ok(vec![None; 5]));
    assert_eq!(context.transaction(|tx| tx.hmget(&SHEET.key(1), [])).await, Ok(vec![]));
    context.plant(&SHEET.key(2), set("text")).await;
    let answer = context.scope().hmget(&SHEET.key(2), &names).await;
    assert!(matches!(&answer, Err(Error::WrongType { key, .. }) if key.contains("SHEET")), "{answer:?}");
    context.plant(&SHEET.key(3), hset(&[("a", "x")])).await;
    let answer = context.transaction(move |tx| tx.hmget(&SHEET.key(3), &names)).await;
    assert!(matches!(answer, Err(Error::Corrupt { .. })), "{answer:?}");
}

/// The typed face of hashes.
pub async fn typed_hash(context: &Context) {
    let key = SHEET.key(1);
    let body = move |tx: &mut Tx<'_, World>| -> Result<_> {
        let f = |text: &str| text.to_owned();
        tx.hset(&key, &f("hp"), &10)?;
        tx.hset(&key, &f("mp"), &-5)?;
        tx.hset(&key, &f("hp"), &9)?;
        tx.hset(&key, &f("gone"), &0)?;
        tx.hdel(&key, &f("gone"))?;
        Ok((tx.hget(&key, &f("hp"))?, tx.hget(&key, &f("gone"))?, tx.hlen(&key)?, tx.hgetall(&key)?))
    };
    let observed = context.transaction(body).await.expect("a plain transaction");
    assert_eq!(observed, (Some(9), None, 2, vec![("hp".to_owned(), 9), ("mp".to_owned(), -5)]));
}
