//! Strings: GET, SET, INCRBY, DEL, EXISTS.

use crate::builders::*;
use crate::context::Context;
use crate::external::StoredValue;
use crate::families::{COUNT, MONSTER, Monster, NOTE, OPEN, RATE};
use crate::replay::{replay, replay_to_absent, replay_to_value};
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, KindFound, Read, Reply, Write};
use emberkeep_hot::{Error, Result};

/// What was set is what every reader gets.
pub async fn get_and_set(context: &Context) {
    let answers = [(Read::Get, blob("two")), (Read::Exists, int(1)), (Read::ExpireTime, int(-1))];
    replay(context, &[set("one"), set("two")], &answers).await;
    replay(context, &[set("one"), Write::Del, set("two")], &answers).await;
    replay(context, &[set_keep("one"), set_keep("two")], &answers).await;
    replay_to_value(context, &[set("one"), set("two")], StoredValue::Text(b("two")), None).await;
    replay_to_absent(context, &[set("one"), Write::Del]).await;
}

/// A key that was never written.
pub async fn absent_text(context: &Context) {
    let answers = [(Read::Get, Reply::Nil), (Read::Exists, int(0)), (Read::ExpireTime, int(-2))];
    replay(context, &[], &answers).await;
    replay(context, &[Write::Persist], &answers).await;
    replay(context, &[Write::Del, Write::Del], &answers).await;
}

/// The empty string is a value, unlike the empty collection.
pub async fn empty_text_is_a_text(context: &Context) {
    replay(context, &[set("")], &[(Read::Get, blob("")), (Read::Exists, int(1))]).await;
}

/// Values are bytes: zeros, line ends and every other byte come back as they were.
pub async fn binary_text(context: &Context) {
    let all: Bytes = (0..=255u8).chain(*b"\r\n$-1\r\n").collect::<Vec<_>>().into();
    let answers = [(Read::Get, Reply::Blob(all.clone()))];
    replay(context, &[Write::Set(all.clone(), Expiry::Never)], &answers).await;
    replay_to_value(context, &[Write::Set(all.clone(), Expiry::Never)], StoredValue::Text(all), None).await;
}

/// SET asks for no type.
pub async fn set_replaces_any_type(context: &Context) {
    let collections =
        [hset(&[("f", "v")]), sadd(&["a"]), zadd(&[("a", 1.0)]), rpush(&["a"]), Write::IncrBy(5)];
    for before in collections {
        replay(context, &[before, set("text")], &[(Read::Get, blob("text")), (Read::Exists, int(1))]).await;
    }
}

/// DEL of nothing is nothing, and a key may change its type after it.
pub async fn del_of_nothing(context: &Context) {
    replay_to_absent(context, &[Write::Del]).await;
    replay(context, &[set("x"), Write::Del, sadd(&["a"])], &[(Read::SMembers, list(&["a"]))]).await;
    replay(context, &[sadd(&["a"]), Write::Del, rpush(&["a"])], &[(Read::LRange(0, -1), list(&["a"]))]).await;
}

/// INCRBY counts from 0, below 0, over SET and DEL, and keeps the deadline.
pub async fn increments(context: &Context) {
    let gives = |text: &str| [(Read::Get, blob(text)), (Read::Exists, int(1))];
    replay(context, &[Write::IncrBy(5), Write::IncrBy(-12)], &gives("-7")).await;
    replay(context, &[Write::IncrBy(0)], &gives("0")).await;
    replay(context, &[set("40"), Write::IncrBy(2)], &gives("42")).await;
    replay(context, &[set("40"), Write::Del, Write::IncrBy(2)], &gives("2")).await;
    replay(context, &[Write::IncrBy(1 << 53), Write::IncrBy(1 << 53)], &gives("18014398509481984")).await;
    let at = context.far(0).await;
    replay(
        context,
        &[set_at("1", at), Write::IncrBy(1)],
        &[(Read::ExpireTime, int(at)), (Read::Get, blob("2"))],
    )
    .await;
}

/// Sums at the edge of 64 bits: reached exactly, never left, and a refusal leaves everything as it was, also
/// where a later decrement would have brought the sum back.
pub async fn increments_at_the_edge(context: &Context) {
    let (max, min) = (i64::MAX.to_string(), i64::MIN.to_string());
    let below_max = (i64::MAX - 1).to_string();
    replay(context, &[set(&below_max), Write::IncrBy(1)], &[(Read::Get, blob(&max))]).await;
    replay(
        context,
        &[set("1000000000000000000"), Write::IncrBy(1)],
        &[(Read::Get, blob("1000000000000000001"))],
    )
    .await;
    replay(context, &[set(&max), Write::IncrBy(-1)], &[(Read::Get, blob(&below_max))]).await;
    let too_far: [(&str, &[i64]); 4] =
        [(&max, &[1]), (&min, &[-1]), (&max, &[1, -1]), (&max, &[-1, 1, 1, -5])];
    for (start, transactions) in too_far {
        refused_increments(context, start, transactions).await;
    }
    for text in ["abc", "", " 1", "1 ", "+1", "01", "-0", "1.0", "9223372036854775808", "0x10"] {
        refused_increments(context, text, &[1]).await;
    }
}

/// The increments are refused whether the string was committed before or set by the same body, and the key
/// beside it is not written either.
async fn refused_increments(context: &Context, start: &str, transactions: &[i64]) {
    for together in [false, true] {
        let (key, beside) = (context.fresh(), context.fresh());
        let increments = transactions.iter().map(|by| (key.clone(), Write::IncrBy(*by)));
        let mut writes = vec![(beside.clone(), set("x"))];
        if together {
            writes.push((key.clone(), set(start)));
        } else {
            context.put(&key, set(start)).await;
        }
        writes.extend(increments);
        let refusal = context.write(writes).await;
        let place = format!("{start:?} {transactions:?}, in one body: {together}");
        let is_expected = match start.parse::<i64>() {
            Ok(value) if value.to_string() == start => {
                matches!(&refusal, Err(Error::Overflow { value: found, .. }) if *found == value)
            }
            _ => matches!(refusal, Err(Error::WrongType { found: KindFound::NotAnInteger, .. })),
        };
        assert!(is_expected, "{place}: {refusal:?}");
        assert_eq!(context.read(&beside, Read::Get).await, Reply::Nil, "{place}");
        let kept = if together { Reply::Nil } else { blob(start) };
        assert_eq!(context.read(&key, Read::Get).await, kept, "{place}");
    }
}

/// A sum that leaves 64 bits is an error of its own, which names the family, the number and the increment; so
/// is one that the body reads.
pub async fn overflows_are_named(context: &Context) {
    context.plant(&COUNT.key(1), set("9223372036854775806")).await;
    let answer = [
        context.transaction(|tx| tx.incr_by(&COUNT.key(1), 5)).await,
        context
            .transaction(|tx| {
                tx.incr_by(&COUNT.key(1), 5)?;
                tx.get(&COUNT.key(1)).map(drop)
            })
            .await,
    ];
    for answer in answer {
        let Err(Error::Overflow { key, value, by }) = &answer else { panic!("{answer:?}") };
        assert!(key.contains("(family COUNT)"), "{key}");
        assert_eq!((*value, *by), (i64::MAX - 1, 5));
    }
    assert_eq!(context.scope().get(&COUNT.key(1)).await, Ok(Some(i64::MAX - 1)));
}

/// Decimal numbers and booleans, and what an external client may leave in their place.
pub async fn floats_and_booleans(context: &Context) {
    let written = context.transaction(|tx| {
        tx.put(&RATE.key(1), &0.1)?;
        tx.put(&RATE.key(2), &-1e300)?;
        tx.put(&OPEN.key(1), &true)?;
        tx.put(&OPEN.key(2), &false)?;
        Ok((tx.get_many(&[1, 2, 3].map(|id| RATE.key(id)))?, tx.get_many(&[1, 2, 3].map(|id| OPEN.key(id)))?))
    });
    let numbers = vec![Some(0.1), Some(-1e300), None];
    assert_eq!(written.await, Ok((numbers, vec![Some(true), Some(false), None])));
    assert_eq!(context.read(&context.raw(&RATE.key(1)), Read::Get).await, blob("0.1"));
    assert_eq!(context.read(&context.raw(&OPEN.key(1)), Read::Get).await, blob("1"));
    for number in [f64::NAN, f64::INFINITY] {
        let answer = context.scope().put(&RATE.key(1), number).await;
        assert!(matches!(answer, Err(Error::Invalid { what: "value", .. })), "{answer:?}");
    }
    context.plant(&RATE.key(1), set("inf")).await;
    context.plant(&OPEN.key(1), set("yes")).await;
    let (rate, open) = (context.scope().get(&RATE.key(1)).await, context.scope().get(&OPEN.key(1)).await);
    assert!(matches!(rate, Err(Error::Corrupt { .. })), "{rate:?}");
    assert!(matches!(open, Err(Error::Corrupt { .. })), "{open:?}");
}

/// The typed face of strings.
pub async fn typed_text(context: &Context) {
    let (note, monster, count) = (NOTE.key(1), MONSTER.key(1), COUNT.key(1));
    let keys = (note.clone(), monster.clone(), count.clone());
    let body = move |tx: &mut emberkeep_hot::Tx<'_, crate::families::World>| -> Result<_> {
        let (note, monster, count) = &keys;
        assert_eq!(tx.get(note)?, None);
        tx.put(note, &"hello".to_owned())?;
        tx.put(monster, &Monster { hp: 7, name: "Ökil".into() })?;
        tx.incr_by(count, 3)?;
        tx.incr_by(count, 4)?;
        Ok((tx.get(note)?, tx.get(monster)?, tx.get(count)?, tx.exists(note)?, tx.deadline(note)?))
    };
    let observed = context.transaction(body).await.expect("a plain transaction");
    let stored = Monster { hp: 7, name: "Ökil".into() };
    assert_eq!(observed, (Some("hello".to_owned()), Some(stored.clone()), Some(7), true, None));
    let scope = context.scope();
    assert_eq!(scope.get(&monster).await, Ok(Some(stored)));
    assert_eq!(scope.get_many(&[note.clone(), NOTE.key(2)]).await, Ok(vec![Some("hello".to_owned()), None]));
    assert_eq!(scope.put(&count, -1).await, Ok(()));
    assert_eq!(scope.get(&count).await, Ok(Some(-1)));
    assert_eq!((scope.del(&note).await, scope.del(&note).await), (Ok(true), Ok(false)));
    assert_eq!(scope.get(&note).await, Ok(None));
}
