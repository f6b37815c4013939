//! Values that are not what their family declares: named, and left as they are.

use crate::builders::*;
use crate::context::Context;
use crate::external::StoredValue;
use crate::families::*;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::{Error, Result, Tx};

fn assert_corrupt<T: std::fmt::Debug>(result: Result<T>, raw: &Bytes, family: &str) {
    match result {
        Err(Error::Corrupt { key, reason }) => {
            assert!(key.contains(&emberkeep_hot::show(raw)), "{key} names the key");
            assert!(key.contains(family), "{key} names the family {family}");
            assert!(!reason.is_empty());
        }
        other => panic!("expected Corrupt, got {other:?}"),
    }
}

/// Broken JSON: in transactions and outside, and a body that goes on all the same does not overwrite it
/// unless it says so.
pub async fn broken_json(context: &Context) {
    let scope = context.scope();
    for text in [r#"{"hp":1"#, "", "null", "[]", r#"{"hp":"x","name":"y"}"#, "\u{0}"] {
        let raw = context.plant(&MONSTER.key(1), set(text)).await;
        assert_corrupt(scope.get(&MONSTER.key(1)).await, &raw, "MONSTER");
        assert_corrupt(scope.get_many(&[MONSTER.key(1)]).await, &raw, "MONSTER");
        let hit = context.transaction(|tx: &mut Tx<'_, World>| {
            let monster = tx.get(&MONSTER.key(1))?;
            let hp = monster.map_or(0, |monster| monster.hp);
            tx.put(&MONSTER.key(1), &Monster { hp: hp - 1, name: String::new() })?;
            tx.put(&COUNT.key(1), &hp)
        });
        assert_corrupt(hit.await, &raw, "MONSTER");
        assert_eq!(
            context.external().inspect(&raw).await,
            Some((StoredValue::Text(b(text)), None)),
            "left as it is"
        );
        assert_eq!(scope.get(&COUNT.key(1)).await, Ok(None));
    }
}

/// Numbers that are not canonical.
pub async fn broken_numbers(context: &Context) {
    let scope = context.scope();
    for text in ["abc", "007", "1.5", "", "9223372036854775808", " 1"] {
        let raw = context.plant(&COUNT.key(1), set(text)).await;
        assert_corrupt(scope.get(&COUNT.key(1)).await, &raw, "COUNT");
        assert_corrupt(
            context.transaction(|tx: &mut Tx<'_, World>| tx.get(&COUNT.key(1))).await,
            &raw,
            "COUNT",
        );
    }
    let raw = context.plant(&CREW.key(1), sadd(&["1", "x"])).await;
    assert_corrupt(
        context.transaction(|tx: &mut Tx<'_, World>| tx.smembers(&CREW.key(1))).await,
        &raw,
        "CREW",
    );
    let raw = context.plant(&SHEET.key(1), hset(&[("f", "one")])).await;
    assert_corrupt(
        context.transaction(|tx: &mut Tx<'_, World>| tx.hget(&SHEET.key(1), &"f".to_owned())).await,
        &raw,
        "SHEET",
    );
}

/// Bytes that are no UTF-8 where text is declared, in every kind.
pub async fn bytes_that_are_no_text(context: &Context) {
    let bad = Bytes::from_static(b"a\xff\xfe");
    let raw = context.plant(&NOTE.key(1), Write::Set(bad.clone(), Expiry::Never)).await;
    assert_corrupt(context.scope().get(&NOTE.key(1)).await, &raw, "NOTE");
    let raw = context.plant(&SHEET.key(1), Write::HSet(vec![(bad.clone(), b("1"))])).await;
    assert_corrupt(
        context.transaction(|tx: &mut Tx<'_, World>| tx.hgetall(&SHEET.key(1))).await,
        &raw,
        "SHEET",
    );
    let raw = context.plant(&BOARD.key(1), Write::ZAdd(vec![(bad.clone(), score(1.0))])).await;
    assert_corrupt(
        context.transaction(|tx: &mut Tx<'_, World>| tx.zrange(&BOARD.key(1), all_ranks(), false)).await,
        &raw,
        "BOARD",
    );
    let raw = context.plant(&QUEUE.key(1), Write::RPush(vec![bad.clone()])).await;
    assert_corrupt(
        context.transaction(|tx: &mut Tx<'_, World>| tx.lrange(&QUEUE.key(1), 0, -1)).await,
        &raw,
        "QUEUE",
    );
    assert_corrupt(context.transaction(|tx: &mut Tx<'_, World>| tx.lpop(&QUEUE.key(1))).await, &raw, "QUEUE");
    assert_eq!(
        context.external().inspect(&raw).await,
        Some((StoredValue::List(vec![bad]), None)),
        "nothing was popped"
    );
}
