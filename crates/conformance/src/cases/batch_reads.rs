//! Many keys read together inside a transaction: one round trip, own writes included, each key with its own
//! result.

use crate::builders::*;
use crate::context::Context;
use crate::families::*;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::limits::{READS_TOGETHER_BYTES_MAX, READS_TOGETHER_MAX};
use emberkeep_hot::{Error, Result, Tx};
use emberkeep_schema::Key;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Keys of a case; every third one is absent.
const KEYS: u32 = 200;

fn keys() -> Vec<Key<COUNT>> {
    (0..KEYS).map(|id| COUNT.key(id)).collect()
}

fn is_there(id: u32) -> bool {
    !id.is_multiple_of(3)
}

/// Written by another process, so that the engine under test has seen none of them.
async fn fill(context: &Context) {
    let body = |tx: &mut Tx<'_, World>| {
        (0..KEYS).filter(|id| is_there(*id)).try_for_each(|id| tx.put(&COUNT.key(id), &id.into()))
    };
    context.other_scope().transact(body).await.expect("a transaction");
}

/// Keys that are in no cache: the body runs once to name them, and once with all of them.
pub async fn keys_read_together(context: &Context) {
    fill(context).await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let body = move |tx: &mut Tx<'_, World>| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok((tx.get_many(&keys())?, tx.get_many::<COUNT, _>(&[])?))
    };
    let (values, none) = context.transaction(body).await.expect("a transaction");
    let expected: Vec<_> = (0..KEYS).map(|id| is_there(id).then_some(i64::from(id))).collect();
    assert_eq!((values, none), (expected, vec![]));
    assert!(runs.load(Ordering::Relaxed) <= 2, "{runs:?} runs");
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let body = move |tx: &mut Tx<'_, World>| {
        counted.fetch_add(1, Ordering::Relaxed);
        tx.exists_many(&keys())
    };
    assert_eq!(context.transaction(body).await, Ok((0..KEYS).map(is_there).collect()));
    assert!(runs.load(Ordering::Relaxed) <= 2, "{runs:?} runs");
}

/// What the body wrote before is seen among the many, a key named twice is answered twice.
pub async fn own_writes_among_many(context: &Context) {
    fill(context).await;
    let body = |tx: &mut Tx<'_, World>| {
        tx.put(&COUNT.key(0), &-7)?;
        tx.del(&COUNT.key(1))?;
        tx.incr_by(&COUNT.key(2), 40)?;
        let asked = [0, 1, 2, 3, 4, 4].map(|id| COUNT.key(id));
        Ok((tx.get_many(&asked)?, tx.exists_many(&asked)?))
    };
    let (values, there) = context.transaction(body).await.expect("a transaction");
    assert_eq!(values, [Some(-7), None, Some(42), None, Some(4), Some(4)]);
    assert_eq!(there, [true, false, true, false, true, true]);
}

/// One value that cannot be read: alone among the others where each has its own result, and named where not.
pub async fn one_corrupt_value_of_many(context: &Context) {
    let good = Monster { hp: 5, name: "ok".into() };
    context.scope().put(&MONSTER.key(1), good.clone()).await.expect("a transaction");
    context.plant(&MONSTER.key(2), set("{broken")).await;
    context.plant(&MONSTER.key(3), sadd(&["a"])).await;
    let asked = || [1, 2, 3, 4].map(|id| MONSTER.key(id));
    let each = context.transaction(move |tx| tx.get_each(&asked())).await.expect("a transaction");
    assert_eq!((&each[0], &each[3]), (&Ok(Some(good)), &Ok(None)));
    assert!(matches!(&each[1], Err(Error::Corrupt { key, .. }) if key.contains("MONSTER")), "{:?}", each[1]);
    assert!(
        matches!(&each[2], Err(Error::WrongType { key, .. }) if key.contains("MONSTER")),
        "{:?}",
        each[2]
    );
    let all: Result<_> = context.transaction(move |tx| tx.get_many(&asked())).await;
    assert!(matches!(all, Err(Error::Corrupt { .. })), "{all:?}");
    let there = context.transaction(move |tx| tx.exists_many(&asked())).await;
    assert_eq!(there, Ok(vec![true, true, true, false]));
}

/// More keys than one call may name, and more bytes than it may bring.
pub async fn too_much_read_together(context: &Context) {
    let of = |count: usize| (0..count as u32).map(|id| NOTE.key(id)).collect::<Vec<_>>();
    let most = context.transaction(move |tx| tx.exists_many(&of(READS_TOGETHER_MAX))).await;
    assert_eq!(most, Ok(vec![false; READS_TOGETHER_MAX]));
    let more = context.transaction(move |tx| tx.get_many(&of(READS_TOGETHER_MAX + 1))).await;
    assert!(matches!(more, Err(Error::Invalid { what: "keys", .. })), "{more:?}");
    let half = "x".repeat(READS_TOGETHER_BYTES_MAX / 2);
    for id in 0..3 {
        context.scope().put(&NOTE.key(id), half.clone()).await.expect("a transaction");
    }
    let most = context.transaction(move |tx| tx.get_many(&of(2))).await.expect("8 MiB together");
    assert!(most.iter().all(|note| note.as_ref().is_some_and(|note| note.len() == half.len())));
    let more = context.transaction(move |tx| tx.get_many(&of(3))).await;
    let named = matches!(&more, Err(Error::TooLarge { key, unit: "bytes", .. }) if key.contains("NOTE"));
    assert!(named, "{:?}", more.err());
}

/// A body that looks at many parts of one key, one after the other and together.
pub async fn many_reads_of_one_key(context: &Context) {
    const PARTS: i64 = 100;
    let (sheet, crowd) = (context.fresh(), context.fresh());
    let names = || (0..PARTS).map(|n| b(&n.to_string()));
    let even = |n: i64| n % 2 == 0;
    let fields = Write::HSet(names().map(|name| (name.clone(), name)).collect());
    let members = Write::SAdd((0..PARTS).filter(|n| even(*n)).map(|n| b(&n.to_string())).collect());
    context.write(vec![(sheet.clone(), fields), (crowd.clone(), members)]).await.expect("a transaction");

    let gets: Vec<Read> = names().map(Read::HGet).collect();
    let one_by_one = move |tx: &mut Tx<'_, World>| {
        gets.iter().map(|get| tx.raw_read(&sheet, get.clone())).collect::<Result<Vec<Reply>>>()
    };
    let one_by_one = context.other_scope().transact(one_by_one).await;
    assert_eq!(one_by_one, Ok(names().map(Reply::Blob).collect()));

    let asks: Vec<_> = names().map(|name| (crowd.clone(), Read::SIsMember(name))).collect();
    let together = move |tx: &mut Tx<'_, World>| {
        let answers = tx.raw_read_many(&asks)?.into_iter().collect::<Result<Vec<Reply>>>()?;
        tx.raw_write(crowd.clone(), sadd(&["last"]))?;
        Ok::<_, Error>(answers)
    };
    let together = context.other_scope().transact(together).await;
    assert_eq!(together, Ok((0..PARTS).map(|n| int(even(n) as i64)).collect()));
}
