//! Hashes: HGET, HGETALL, HLEN, HSET, HDEL.

use crate::builders::*;
use crate::context::Context;
use crate::external::StoredValue;
use crate::families::{SHEET, World};
use crate::replay::{replay, replay_to_absent, replay_to_value};
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::{Result, Tx};

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
    let seen = [(b("b"), b("3")), (b("c"), b(""))].into_iter().collect();
    replay_to_value(context, &writes, StoredValue::Hash(seen), None).await;
}

/// A field named twice in one HSET takes the last value, and counts once.
pub async fn a_field_named_twice(context: &Context) {
    let answers = [(Read::HLen, int(1)), (Read::HGet(b("f")), blob("2"))];
    replay(context, &[hset(&[("f", "1"), ("f", "2")])], &answers).await;
    replay(context, &[hset(&[("f", "0")]), hdel(&["f", "f"]), hset(&[("f", "2")])], &answers).await;
}

/// Nothing there.
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
    let seen = context.transaction(body).await.expect("a plain transaction");
    assert_eq!(seen, (Some(9), None, 2, vec![("hp".to_owned(), 9), ("mp".to_owned(), -5)]));
}
