//! Dumps: every key of a partition with type, value and deadline, while others write.

use crate::builders::*;
use crate::context::Context;
use crate::families::{BOARD, COUNT, CREW, EVENTS, MONSTER, NOTE, QUEUE, SHEET, TOKEN};
use bytes::Bytes;
use emberkeep_hot::Store;
use emberkeep_hot::command::{Content, KeyDump, Write};
use emberkeep_hot::store::PartitionKeys;
use emberkeep_schema::{Schema, schema};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn families() -> Schema {
    schema![NOTE, MONSTER, COUNT, SHEET, CREW, BOARD, QUEUE, TOKEN, EVENTS].expect("families of one schema")
}

fn keys(context: &Context) -> PartitionKeys {
    PartitionKeys::of(&families(), context.scope().partition())
}

/// All keys of a dump; each comes once.
async fn dump(store: &Store, keys: &PartitionKeys) -> BTreeMap<Bytes, KeyDump> {
    let mut dump = store.dump(keys).await.expect("a dump begins");
    let mut found = BTreeMap::new();
    while let Some(dumps) = dump.next().await.expect("a dump goes on") {
        for one in dumps {
            let before = found.insert(one.key.clone(), one);
            assert!(before.is_none(), "a key came twice: {before:?}");
        }
    }
    found
}

/// Every type comes with its content and its absolute deadline.
pub async fn every_type_with_its_deadline(context: &Context) {
    let at = context.far(7).await;
    let planted = [
        (context.raw(&NOTE.key(1)), set("text"), Content::Text(b("text"))),
        (context.raw(&TOKEN.key(1)), set_at("ends", at), Content::Text(b("ends"))),
        (context.raw(&SHEET.key(1)), hset(&[("b", "2"), ("a", "1")]), {
            Content::Hash(vec![(b("a"), b("1")), (b("b"), b("2"))])
        }),
        (context.raw(&CREW.key(1)), sadd(&["9", "10"]), Content::Set(bs(&["10", "9"]))),
        (context.raw(&BOARD.key(1)), zadd(&[("z", -1.5), ("a", f64::INFINITY)]), {
            Content::SortedSet(vec![(b("z"), score(-1.5)), (b("a"), score(f64::INFINITY))])
        }),
        (context.raw(&QUEUE.key(1)), rpush(&["x", "", "x"]), Content::List(bs(&["x", "", "x"]))),
    ];
    for (key, write, _) in &planted {
        context.put(key, write.clone()).await;
    }
    context.put(&planted[2].0, Write::ExpireAt(at + 1)).await;
    let found = dump(context.store(), &keys(context)).await;
    let deadline = |number: usize| [None, Some(at), Some(at + 1), None, None, None][number];
    let expected = planted.into_iter().enumerate().map(|(number, (key, _, content))| {
        (key.clone(), KeyDump { key, content, deadline: deadline(number) })
    });
    assert_eq!(found, expected.collect());
}

/// Other partitions, logs, keys of no family and ended keys are not in it.
pub async fn only_the_state_of_the_partition(context: &Context) {
    let soon = context.now().await + 20;
    context.scope().put(&NOTE.key(1), "mine".into()).await.expect("a transaction");
    context.scope_beside("dump").put(&NOTE.key(1), "theirs".into()).await.expect("a transaction");
    context.transaction(|tx| tx.append(&EVENTS.key(1), &"event".into())).await.expect("a transaction");
    context.put(&context.fresh(), set("of no family")).await;
    context.put(&context.raw(&TOKEN.key(1)), set_at("ends", soon)).await;
    context.past(soon).await;
    let found = dump(context.store(), &keys(context)).await;
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [context.raw(&NOTE.key(1))]);
    let none = dump(context.store(), &keys(context).only(&["COUNT"])).await;
    assert_eq!(none, BTreeMap::new());
}

/// A key that an external client gave another type is dumped as what it is.
pub async fn a_key_of_another_type(context: &Context) {
    let key = context.plant(&NOTE.key(1), sadd(&["m"])).await;
    context.scope().put(&NOTE.key(2), "text".into()).await.expect("a transaction");
    let found = dump(context.store(), &keys(context)).await;
    assert_eq!(found[&key].content, Content::Set(bs(&["m"])));
    assert_eq!(found.len(), 2);
}

/// Keys with more members than one reply may have are whole.
pub async fn keys_larger_than_a_reply(context: &Context) {
    let all = numbered(2_500);
    let (hash, members) = (context.raw(&SHEET.key(1)), context.raw(&CREW.key(1)));
    let (board, queue) = (context.raw(&BOARD.key(1)), context.raw(&QUEUE.key(1)));
    for piece in all.chunks(500) {
        let pairs = piece.iter().map(|name| (name.clone(), name.clone())).collect();
        let scored = piece.iter().map(|name| (name.clone(), score(1.0))).collect();
        context.put(&hash, Write::HSet(pairs)).await;
        context.put(&members, Write::SAdd(piece.to_vec())).await;
        context.put(&board, Write::ZAdd(scored)).await;
        context.put(&queue, Write::RPush(piece.to_vec())).await;
    }
    let found = dump(context.store(), &keys(context)).await;
    let pairs = all.iter().map(|name| (name.clone(), name.clone())).collect();
    let scored = all.iter().map(|name| (name.clone(), score(1.0))).collect();
    assert_eq!(found[&hash].content, Content::Hash(pairs));
    assert_eq!(found[&members].content, Content::Set(all.clone()));
    assert_eq!(found[&board].content, Content::SortedSet(scored));
    assert_eq!(found[&queue].content, Content::List(all));
}

/// Keys that live throughout are in it once, each whole; where the dump shows one moment, all are of that moment.
pub async fn a_dump_among_writers(context: &Context) {
    let scope = context.scope();
    let stay: Vec<Bytes> = (0..300).map(|id| context.raw(&SHEET.key(id))).collect();
    set_all(&scope, &stay, 0).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (scope, stay, stop) = (context.other_scope(), stay.clone(), stop.clone());
        async move {
            for round in 1.. {
                set_all(&scope, &stay, round).await;
                tokio::task::yield_now().await;
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    });
    for _ in 0..8 {
        let one_moment = context.store().dump(&keys(context)).await.expect("a dump").is_one_moment();
        let found = dump(context.store(), &keys(context)).await;
        assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), stay.iter().cloned().collect());
        let rounds: BTreeSet<Bytes> = found.into_values().map(round_of).collect();
        assert!(!one_moment || rounds.len() == 1, "rounds of one moment: {rounds:?}");
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.expect("no panic");
}

/// Both fields of every hash, in one transaction.
async fn set_all(scope: &emberkeep_hot::Scope<crate::families::World>, keys: &[Bytes], round: i64) {
    let (keys, round) = (keys.to_vec(), round.to_string());
    let body = move |tx: &mut emberkeep_hot::Tx<'_, crate::families::World>| {
        let write = hset(&[("a", &round), ("b", &round)]);
        keys.iter().try_for_each(|key| tx.raw_write(key.clone(), write.clone()))
    };
    scope.transact(body).await.expect("a transaction");
}

fn round_of(dump: KeyDump) -> Bytes {
    let Content::Hash(fields) = dump.content else { panic!("a hash is a hash") };
    assert!(fields.len() == 2 && fields[0].1 == fields[1].1, "a hash of two rounds: {fields:?}");
    fields[0].1.clone()
}
