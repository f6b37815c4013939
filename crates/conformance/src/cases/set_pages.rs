//! Sets by pages, of any size, and what external clients put into them.

use crate::builders::*;
use crate::context::Context;
use crate::families::{CREW, World};
use bytes::Bytes;
use emberkeep_hot::command::{Kind, KindFound, Read, Reply, Write};
use emberkeep_hot::engine::{Cursor, MemberCursor};
use emberkeep_hot::limits::COMMAND_ARGUMENTS_MAX;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Scope, Tx};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Members that stay; more than any reply inside a transaction may hold.
const STAY: usize = 3_000;

/// All members; every cursor is printed and parsed on the way.
async fn walk(context: &Context, key: &Bytes, count: usize) -> Result<Vec<Bytes>> {
    let (mut members, mut from) = (Vec::new(), None);
    loop {
        let page = context.store().engine().scan_members(key, from, count).await?;
        members.extend(page.members);
        let Some(next) = page.next else { return Ok(members) };
        from = Some(next.to_string().parse::<MemberCursor>().expect("a printed cursor can be parsed"));
    }
}

async fn fill(context: &Context, key: &Bytes, members: &[Bytes]) {
    for piece in members.chunks(COMMAND_ARGUMENTS_MAX) {
        context.put(key, Write::SAdd(piece.to_vec())).await;
    }
}

/// Members come and go while the walk runs: those that stay are all returned.
pub async fn members_that_stay_throughout(context: &Context) {
    let (key, stay) = (context.fresh(), numbered(STAY));
    fill(context, &key, &stay).await;
    let stop = Arc::new(AtomicBool::new(false));
    let churn = tokio::spawn(churn(context.other_scope(), key.clone(), stop.clone()));
    for count in [0, 10, 333, usize::MAX] {
        let found: BTreeSet<Bytes> = walk(context, &key, count).await.expect("a walk").into_iter().collect();
        let missing = stay.iter().filter(|member| !found.contains(*member)).count();
        assert_eq!(missing, 0, "of {STAY}, pages of {count}");
        assert!(found.iter().all(|member| stay.contains(member) || member.starts_with(b"come:")));
    }
    stop.store(true, Ordering::Relaxed);
    churn.await.expect("no panic");
}

/// Adds and removes around the members that stay, so that the set grows and shrinks by half.
async fn churn(scope: Scope<World>, key: Bytes, stop: Arc<AtomicBool>) {
    for round in 0.. {
        let members: Vec<Bytes> = (0..500).map(|n| b(&format!("come:{}", round % 6 * 500 + n))).collect();
        let write = if round / 6 % 2 == 0 { Write::SAdd(members) } else { Write::SRem(members) };
        let key = key.clone();
        scope.transact(move |tx| tx.raw_write(key.clone(), write.clone())).await.expect("a transaction");
        tokio::task::yield_now().await;
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Small sets, odd members, absent and ended keys.
pub async fn small_sets(context: &Context) {
    let key = context.fresh();
    assert_eq!(walk(context, &key, 10).await, Ok(vec![]));
    let odd: BTreeSet<Bytes> = [b(""), b("1"), b("-2"), Bytes::from_static(b"\0\xff"), b("x")].into();
    context.put(&key, Write::SAdd(odd.iter().cloned().collect())).await;
    for count in [1, 2, 5, 100] {
        let found: BTreeSet<Bytes> = walk(context, &key, count).await.expect("a walk").into_iter().collect();
        assert_eq!(found, odd, "pages of {count}");
    }
    let at = context.now().await + 20;
    context.put(&key, Write::ExpireAt(at)).await;
    context.past(at).await;
    assert_eq!(walk(context, &key, 10).await, Ok(vec![]));
}

/// A set that vanishes in the middle of a walk ends it; one of members as long as a page's bytes is walked
/// too.
pub async fn walks_that_end_early(context: &Context) {
    let key = context.fresh();
    fill(context, &key, &numbered(2_000)).await;
    let engine = context.store().engine().clone();
    let first = engine.scan_members(&key, None, 10).await.expect("a page");
    assert!(first.next.is_some());
    context.put(&key, Write::Del).await;
    let rest = engine.scan_members(&key, first.next, 10).await.expect("a page");
    assert_eq!((rest.members, rest.next), (vec![], None));
    let long: BTreeSet<Bytes> = (0..3).map(|n| b(&n.to_string().repeat(700_000))).collect();
    context.put(&key, Write::SAdd(long.iter().cloned().collect())).await;
    let found: BTreeSet<Bytes> = walk(context, &key, 100).await.expect("a walk").into_iter().collect();
    assert!(found == long, "{} members", found.len());
}

/// A key of another type is named with what it holds, and with its family where the caller named one.
pub async fn pages_of_a_wrong_type(context: &Context) {
    let key = context.fresh();
    context.put(&key, rpush(&["a"])).await;
    let result = walk(context, &key, 10).await;
    let expected = emberkeep_hot::command::wrong_type(&key, Kind::Set, KindFound::Kind(Kind::List));
    assert_eq!(result, Err(expected));
    context.plant(&CREW.key(1), set("text")).await;
    let result = context.scope().members(&CREW.key(1), None, 10).await;
    assert!(matches!(&result, Err(Error::WrongType { key, .. }) if key.contains("CREW")), "{result:?}");
}

/// Bytes that are not a cursor are refused with a clear error, and so is a cursor of another engine; a server's cursor from
/// another server begins anew.
pub async fn wrong_member_cursors(context: &Context) {
    for text in ["", "-", "1", "a-b", "x1", "xg0", "x 1", "y61"] {
        let parsed = text.parse::<MemberCursor>();
        assert!(matches!(parsed, Err(Error::Invalid { what: "cursor", .. })), "{text:?}");
    }
    let key = context.fresh();
    context.put(&key, sadd(&["a", "b"])).await;
    let cursors =
        [MemberCursor::At(Cursor { place: 9, position: 1 << 40 }), MemberCursor::After(Bytes::new())];
    let mut refused = 0;
    for from in cursors {
        match context.store().engine().scan_members(&key, Some(from), 10).await {
            Ok(page) => assert_eq!(page.members.len(), 2, "{page:?}"),
            Err(Error::Invalid { what: "cursor", .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 1, "each engine has one kind of cursor");
}

/// What an external client put into a set is distinguished, and removed by its bytes; the others stay readable.
pub async fn external_members(context: &Context) {
    let junk = [b("x"), b("007"), Bytes::from_static(b"\xff")];
    context.plant(&CREW.key(1), Write::SAdd([&junk[..], &[b("5"), b("12")]].concat())).await;
    let result = context.transaction(|tx| tx.smembers(&CREW.key(1))).await;
    assert!(matches!(result, Err(Error::Corrupt { .. })), "{result:?}");
    let external = |member: &Bytes| Member::External(member.clone());
    let expected =
        [external(&junk[1]), Member::Known(12), Member::Known(5), external(&junk[0]), external(&junk[2])];
    let observed = context.transaction(|tx| tx.smembers_lossy(&CREW.key(1))).await.expect("a transaction");
    assert_eq!(observed, expected, "in the order of their bytes");
    let page = context.scope().members(&CREW.key(1), None, 100).await.expect("a page");
    assert!(page.next.is_none() && expected.iter().all(|member| page.members.contains(member)), "{page:?}");
    let mend = |tx: &mut Tx<'_, World>| {
        for member in tx.smembers_lossy(&CREW.key(1))? {
            if let Member::External(bytes) = member {
                tx.srem_raw(&CREW.key(1), bytes)?;
            }
        }
        tx.smembers(&CREW.key(1))
    };
    assert_eq!(context.transaction(mend).await, Ok(vec![12, 5]));
    assert_eq!(context.scope().smembers(&CREW.key(1)).await, Ok(vec![12, 5]));
}

/// A large set by its typed face: nothing is lost between the pages.
pub async fn a_large_typed_set(context: &Context) {
    let raw = context.raw(&CREW.key(1));
    let ids: BTreeSet<u32> = (0..2_500).map(|n| n * 7).collect();
    let members: Vec<Bytes> = ids.iter().map(|id| b(&id.to_string())).collect();
    fill(context, &raw, &members).await;
    assert_eq!(context.read(&raw, Read::SMembers).await, Reply::TooMany(2_500));
    let (mut found, mut from) = (BTreeSet::new(), None);
    loop {
        let page = context.scope().members(&CREW.key(1), from, 400).await.expect("a page");
        found.extend(page.members.into_iter().filter_map(Member::known));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(found, ids);
}
