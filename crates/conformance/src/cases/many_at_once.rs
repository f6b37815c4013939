//! Many members, fields or elements by one call, and pages of large hashes.

use crate::builders::*;
use crate::context::Context;
use crate::families::*;
use bytes::Bytes;
use emberkeep_hot::command::{Kind, KindFound, Read, Reply, Write, wrong_type};
use emberkeep_hot::engine::{Cursor, MemberCursor};
use emberkeep_hot::limits::COMMAND_ARGUMENTS_MAX;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Tx};
use std::collections::BTreeSet;

/// More than one command takes.
const MANY: u32 = 2 * COMMAND_ARGUMENTS_MAX as u32 + 7;

/// All of them arrive, also where they need several commands; none of them writes nothing.
pub async fn many_members_at_once(context: &Context) {
    let body = |tx: &mut Tx<'_, World>| -> Result<_> {
        let ids: Vec<u32> = (0..MANY).collect();
        let names: Vec<String> = ids.iter().map(|id| format!("{id:05}")).collect();
        let numbers: Vec<i64> = ids.iter().map(|id| i64::from(*id)).collect();
        tx.sadd_many(&CREW.key(1), &ids)?;
        tx.srem_many(&CREW.key(1), &ids[3..])?;
        tx.hset_many(&SHEET.key(1), names.iter().zip(&numbers))?;
        tx.hdel_many(&SHEET.key(1), &names[2..])?;
        tx.zadd_many(&BOARD.key(1), names.iter().zip(numbers.iter().map(|n| *n as f64)))?;
        tx.zrem_many(&BOARD.key(1), &names[1..])?;
        tx.rpush_many(&QUEUE.key(1), &names)?;
        tx.sadd_many(&CREW.key(2), [])?;
        tx.rpush_many(&QUEUE.key(2), [])?;
        tx.hset_many(&SEEN_FIELDS.key(1), [])
    };
    assert_eq!(context.transaction(body).await, Ok(()));
    let (scope, name) = (context.scope(), |n: u32| format!("{n:05}"));
    assert_eq!(scope.smembers(&CREW.key(1)).await, Ok(vec![0, 1, 2]));
    assert_eq!(scope.hgetall(&SHEET.key(1)).await, Ok(vec![(name(0), 0), (name(1), 1)]));
    assert_eq!(scope.zcard(&BOARD.key(1)).await, Ok(1));
    assert_eq!(scope.llen(&QUEUE.key(1)).await, Ok(MANY as usize));
    assert_eq!(scope.lindex(&QUEUE.key(1), -1).await, Ok(Some(name(MANY - 1))));
    assert_eq!(scope.exists(&CREW.key(2)).await, Ok(false));
    assert_eq!(scope.exists(&SEEN_FIELDS.key(1)).await, Ok(false));
}

/// Many members of a family with a TTL have its deadline.
pub async fn many_members_with_a_deadline(context: &Context) {
    let written = context.transaction(|tx| {
        tx.sadd_many(&LEASED_SET.key(1), &[1, 2, 3])?;
        tx.hset_many(&SEEN_FIELDS.key(1), [(&"a".to_owned(), &1), (&"b".to_owned(), &2)])?;
        let now = tx.now();
        Ok((now, tx.deadline(&LEASED_SET.key(1))?, tx.deadline(&SEEN_FIELDS.key(1))?))
    });
    let (now, fixed, refreshed) = written.await.expect("a transaction");
    assert_eq!((fixed, refreshed), (Some(now + FIXED_MS), Some(now + REFRESH_MS)));
}

/// A hash larger than any reply, page by page; cursors are printed and parsed on the way.
pub async fn pages_of_a_large_hash(context: &Context) {
    let raw = context.raw(&SHEET.key(1));
    let names = numbered(2_500);
    for part in names.chunks(COMMAND_ARGUMENTS_MAX / 2) {
        context.put(&raw, Write::HSet(part.iter().map(|name| (name.clone(), b("7"))).collect())).await;
    }
    assert_eq!(context.read(&raw, Read::HGetAll).await, Reply::TooMany(2_500));
    for count in [10, 400, usize::MAX] {
        let (mut found, mut from) = (BTreeSet::new(), None);
        loop {
            let page = context.scope().fields(&SHEET.key(1), from, count).await.expect("a page");
            for (name, value) in page.fields {
                assert_eq!(value, Member::Known(7));
                found.extend(name.known());
            }
            let Some(next) = page.next else { break };
            from = Some(next.to_string().parse::<MemberCursor>().expect("a printed cursor can be parsed"));
        }
        assert!(found.iter().map(|name| name.as_bytes()).eq(names.iter().map(|name| &name[..])), "{count}");
    }
}

/// Absent and ended hashes, wrong types, cursors of another engine.
pub async fn pages_of_odd_hashes(context: &Context) {
    let (key, engine) = (context.fresh(), context.store().engine().clone());
    let all = |page: emberkeep_hot::engine::FieldPage| (page.fields, page.next);
    assert_eq!(engine.scan_fields(&key, None, 10).await.map(all), Ok((vec![], None)));
    context.put(&key, rpush(&["a"])).await;
    let answer = engine.scan_fields(&key, None, 10).await;
    assert_eq!(answer, Err(wrong_type(&key, Kind::Hash, KindFound::Kind(Kind::List))));
    let ends = context.fresh();
    let at = context.now().await + 20;
    context.put(&ends, hset(&[("f", "v")])).await;
    assert_eq!(engine.scan_fields(&ends, None, 10).await.map(all), Ok((vec![(b("f"), b("v"))], None)));
    context.put(&ends, Write::ExpireAt(at)).await;
    context.past(at).await;
    assert_eq!(engine.scan_fields(&ends, None, 10).await.map(all), Ok((vec![], None)));
    let cursors =
        [MemberCursor::At(Cursor { place: 9, position: 1 << 40 }), MemberCursor::After(Bytes::new())];
    let mut refused = 0;
    for from in cursors {
        match engine.scan_fields(&ends, Some(from), 10).await {
            Ok(page) => assert!(page.fields.is_empty(), "{page:?}"),
            Err(Error::Invalid { what: "cursor", .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 1, "each engine has one kind of cursor");
}

/// What an external client put into a hash is distinguished, and removed by its bytes.
pub async fn external_fields(context: &Context) {
    let junk = Bytes::from_static(b"\xff");
    let pairs = vec![(junk.clone(), b("1")), (b("text"), b("x")), (b("good"), b("5"))];
    context.plant(&SHEET.key(1), Write::HSet(pairs)).await;
    let page = context.scope().fields(&SHEET.key(1), None, 100).await.expect("a page");
    let known = |text: &str| Member::Known(text.to_owned());
    for expected in [
        (Member::External(junk.clone()), Member::Known(1)),
        (known("text"), Member::External(b("x"))),
        (known("good"), Member::Known(5)),
    ] {
        assert!(page.fields.contains(&expected), "{page:?}");
    }
    assert_eq!((page.fields.len(), page.next), (3, None));
    let mended = context.transaction(move |tx| {
        tx.hdel_raw(&SHEET.key(1), junk.clone())?;
        tx.hdel(&SHEET.key(1), &"text".to_owned())?;
        tx.hgetall(&SHEET.key(1))
    });
    assert_eq!(mended.await, Ok(vec![("good".to_owned(), 5)]));
}
