//! Deadlines: what each write does to them, when a key expires, and the TTL policies of families.

use crate::builders::*;
use crate::context::Context;
use crate::external::{Change, StoredValue};
use crate::families::*;
use crate::replay::{replay, replay_to_absent, replay_to_value};
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::{Error, Result, Tx};
use std::time::Duration;

/// How far ahead a deadline is that a case waits for.
const SOON_MS: i64 = 20;
/// Keys that are followed to their end before a look must have met the last millisecond of one.
const LIVES_MAX: usize = 200;

/// Each write's effect on a deadline.
pub async fn deadlines_after_writes(context: &Context) {
    let (at, later) = (context.far(0).await, context.far(5_000).await);
    let ends = |at: i64| [(Read::ExpireTime, int(at)), (Read::Exists, int(1))];
    replay(context, &[set_at("x", at)], &ends(at)).await;
    replay(context, &[set_at("x", at), set_at("x", later)], &ends(later)).await;
    replay(context, &[set_at("x", at), set("y")], &ends(-1)).await;
    replay(context, &[set_at("x", at), set_keep("y")], &ends(at)).await;
    replay(context, &[set_keep("y")], &ends(-1)).await;
    replay(context, &[set("x"), Write::ExpireAt(at)], &ends(at)).await;
    replay(context, &[set("x"), Write::ExpireAt(later), Write::ExpireAt(at)], &ends(at)).await;
    replay(context, &[set_at("x", at), Write::Persist], &ends(-1)).await;
    replay(context, &[set_at("x", at), Write::Del, set_keep("y")], &ends(-1)).await;
    replay(context, &[sadd(&["a"]), Write::ExpireAt(at), set_keep("y")], &ends(at)).await;
    replay_to_value(context, &[set_at("x", at), set_keep("y")], StoredValue::Text(b("y")), Some(at)).await;
    let grow: [(Write, Write); 4] = [
        (hset(&[("f", "v")]), hset(&[("g", "w")])),
        (sadd(&["a"]), sadd(&["b"])),
        (zadd(&[("a", 1.0)]), zadd(&[("b", 2.0)])),
        (rpush(&["a"]), lpush(&["b"])),
    ];
    for (first, second) in grow {
        replay(context, &[first.clone(), Write::ExpireAt(at), second.clone()], &ends(at)).await;
        replay(context, &[first, Write::ExpireAt(at), second, Write::Persist], &ends(-1)).await;
    }
    let shrink: [(Write, Write); 4] = [
        (hset(&[("f", "v"), ("g", "w")]), hdel(&["f"])),
        (sadd(&["a", "b"]), srem(&["a"])),
        (zadd(&[("a", 1.0), ("b", 2.0)]), zrem(&["b"])),
        (rpush(&["a", "b", "c"]), Write::LTrim(0, 1)),
    ];
    for (first, second) in shrink {
        replay(context, &[first, Write::ExpireAt(at), second], &ends(at)).await;
    }
}

/// A deadline for a key that is not there does nothing.
pub async fn deadlines_of_absent_keys(context: &Context) {
    let at = context.far(0).await;
    replay_to_absent(context, &[Write::ExpireAt(at)]).await;
    replay_to_absent(context, &[Write::Persist]).await;
    let writes = [Write::ExpireAt(at), set_keep("x")];
    replay(context, &writes, &[(Read::ExpireTime, int(-1)), (Read::Get, blob("x"))]).await;
    replay(
        context,
        &[set("x"), Write::Del, Write::ExpireAt(at), sadd(&["a"])],
        &[(Read::ExpireTime, int(-1))],
    )
    .await;
}

/// Before its deadline a key is there, after it it is gone, for every read and without a sweep.
pub async fn a_key_ends_at_its_deadline(context: &Context) {
    let at = context.now().await + SOON_MS;
    let key = context.fresh();
    context.put(&key, set_at("x", at)).await;
    let found = context.read_in_transaction(&key, Read::ExpireTime).await;
    let early = context.now().await < at - 5;
    assert!(!early || found == Ok(int(at)), "{found:?}");
    context.past(at).await;
    assert_eq!(context.read(&key, Read::Get).await, Reply::Nil);
    let gone = [(Read::Get, Reply::Nil), (Read::Exists, int(0)), (Read::ExpireTime, int(-2))];
    for (read, expected) in gone {
        assert_eq!(context.read(&key, read.clone()).await, expected, "{read:?}");
        assert_eq!(context.read_in_transaction(&key, read).await, Ok(expected));
    }
    assert_eq!(context.external().inspect(&key).await, None);
}

/// In the millisecond of its deadline a key still lives, in the next one it is gone: for external clients,
/// for plain reads and for transactions.
pub async fn the_last_millisecond(context: &Context) {
    for _ in 0..LIVES_MAX {
        if lives_through_its_last_millisecond(context).await {
            return;
        }
    }
    panic!("of {LIVES_MAX} keys none was looked at in its last millisecond");
}

/// Follows one key to its end; whether a look fell into the last millisecond.
async fn lives_through_its_last_millisecond(context: &Context) -> bool {
    let (key, mut external) = (context.fresh(), context.external());
    let at = external.now().await + SOON_MS;
    assert!(external.change(&key, Change::Write(set_at("x", at))).await);
    if external.now().await >= at {
        return false; // Held up: the deadline had come when it was set, which removes the key.
    }
    let mut found = false;
    loop {
        let (before, exists, after) = external.exists_between(&key).await;
        assert!(exists || after > at, "gone at {after}, {} ms before its end", at - after);
        assert!(!exists || before <= at, "there at {before}, {} ms after its end", before - at);
        if before > at {
            assert_eq!(context.read_in_transaction(&key, Read::Exists).await, Ok(int(0)));
            return found;
        }
        found |= before == at && after == at;
        if let Some(clock) = context.manual_clock() {
            assert_eq!(context.read(&key, Read::Get).await, blob("x"));
            assert_eq!(context.read_in_transaction(&key, Read::ExpireTime).await, Ok(int(at)));
            clock.advance(1);
        }
    }
}

/// A deadline of this very millisecond has passed when it is set: an external PEXPIREAT removes the key.
pub async fn an_external_deadline_of_now(context: &Context) {
    let (key, mut external) = (context.fresh(), context.external());
    context.put(&key, set("x")).await;
    let now = external.now().await;
    assert!(external.change(&key, Change::Write(Write::ExpireAt(now))).await);
    assert_eq!(context.read_in_transaction(&key, Read::Exists).await, Ok(int(0)));
    assert_eq!(external.inspect(&key).await, None);
}

/// Two keys with the same deadline end in the same moment: no transaction sees one without the other.
pub async fn equal_deadlines_end_together(context: &Context) {
    for _ in 0..5 {
        let at = context.now().await + SOON_MS;
        let keys = [context.fresh(), context.fresh(), context.fresh()];
        let writes = keys.iter().map(|key| (key.clone(), set_at("x", at))).collect();
        context.write(writes).await.expect("a plain transaction");
        loop {
            let asked = keys.clone();
            let body = move |tx: &mut Tx<'_, World>| {
                asked.iter().map(|key| tx.raw_read(key, Read::Exists)).collect::<Result<Vec<_>>>()
            };
            let found = context.transaction(body).await.expect("a plain transaction");
            assert!(found.iter().all(|reply| *reply == found[0]), "{found:?}");
            if found[0] == int(0) {
                break;
            }
            if let Some(clock) = context.manual_clock() {
                clock.advance(1);
            }
        }
    }
}

/// A key that has ended is absent for writes: they start anew, without the old members and the old deadline.
pub async fn an_ended_key_is_absent_for_writes(context: &Context) {
    let stories: [(Write, Write, Read, Reply); 6] = [
        (sadd(&["old"]), sadd(&["new"]), Read::SMembers, list(&["new"])),
        (hset(&[("old", "1")]), hset(&[("new", "2")]), Read::HGetAll, pairs(&[("new", "2")])),
        (
            zadd(&[("old", 1.0)]),
            zadd(&[("new", 2.0)]),
            Read::ZRange(all_ranks(), false),
            scored(&[("new", 2.0)]),
        ),
        (rpush(&["old"]), lpush(&["new"]), Read::LRange(0, -1), list(&["new"])),
        (set("41"), Write::IncrBy(1), Read::Get, blob("1")),
        (sadd(&["old"]), rpush(&["new"]), Read::LRange(0, -1), list(&["new"])),
    ];
    let at = context.now().await + SOON_MS;
    let keys: Vec<Bytes> = stories.iter().map(|_| context.fresh()).collect();
    for (key, (old, ..)) in keys.iter().zip(&stories) {
        context
            .write(vec![(key.clone(), old.clone()), (key.clone(), Write::ExpireAt(at))])
            .await
            .expect("a transaction");
    }
    let (kept, moved, persisted) = (context.fresh(), context.fresh(), context.fresh());
    let writes = [&kept, &moved, &persisted].map(|key| (key.clone(), set_at("x", at)));
    context.write(writes.to_vec()).await.expect("a transaction");
    context.past(at).await;
    for (key, (_, new, read, expected)) in keys.iter().zip(&stories) {
        context.put(key, new.clone()).await;
        assert_eq!(context.read(key, read.clone()).await, *expected, "{new:?}");
        assert_eq!(context.read(key, Read::ExpireTime).await, int(-1), "{new:?}");
    }
    context.put(&kept, set_keep("y")).await;
    assert_eq!(context.read(&kept, Read::ExpireTime).await, int(-1), "there was no deadline to keep");
    let later = context.far(0).await;
    context.put(&moved, Write::ExpireAt(later)).await;
    context.put(&persisted, Write::Persist).await;
    assert_eq!(context.read(&moved, Read::Exists).await, int(0));
    assert_eq!(context.read(&persisted, Read::Exists).await, int(0));
}

/// An external client ends a key by a deadline in the past: a transaction that saw it alive does not commit.
pub async fn an_external_client_ends_a_key(context: &Context) {
    let key = context.fresh();
    context.put(&key, sadd(&["a"])).await;
    assert!(context.external().change(&key, Change::Write(Write::ExpireAt(1))).await);
    assert_eq!(context.read_in_transaction(&key, Read::SCard).await, Ok(int(0)));
    context.put(&key, sadd(&["b"])).await;
    assert_eq!(context.read_in_transaction(&key, Read::SMembers).await, Ok(list(&["b"])));
}

/// A transaction's time is one for all its reads, does not run backwards, and is the server's.
pub async fn a_transaction_has_one_time(context: &Context) {
    let mut last = 0;
    for _ in 0..50 {
        let (first, second) =
            context.transaction(|tx| Ok((tx.now(), tx.now()))).await.expect("a plain transaction");
        assert_eq!(first, second);
        assert!(first >= last, "{first} after {last}");
        last = first;
    }
    let servers = context.external().now().await;
    assert!((servers - last).abs() <= 100, "a transaction's time is {} ms off", servers - last);
}

fn deadline_of(
    tx: &mut Tx<'_, World>,
    read: impl Fn(&mut Tx<'_, World>) -> Result<Option<i64>>,
) -> Result<(i64, Option<i64>)> {
    let now = tx.now();
    Ok((now, read(tx)?))
}

/// `persistent` writes clear a deadline that an external client set.
pub async fn persistent_families(context: &Context) {
    let scope = context.scope();
    scope.put(&NOTE.key(1), "x".into()).await.expect("a transaction");
    let raw = Bytes::from(NOTE.key(1).to_text(context.store().key_layout(), scope.partition()));
    let at = context.far(0).await;
    assert!(context.external().change(&raw, Change::Write(Write::ExpireAt(at))).await);
    scope.put(&NOTE.key(1), "y".into()).await.expect("a transaction");
    assert_eq!(context.read(&raw, Read::ExpireTime).await, int(-1));
}

/// `fixed`: the first write sets the end, later ones keep it, and a collection that was emptied on the way
/// keeps it too.
pub async fn fixed_families(context: &Context) {
    let first = context.transaction(|tx| {
        tx.put(&LEASE.key(1), &1)?;
        tx.sadd(&LEASED_SET.key(1), &1)?;
        deadline_of(tx, |tx| tx.deadline(&LEASE.key(1)))
    });
    let (now, end) = first.await.expect("a transaction");
    assert_eq!(end, Some(now + FIXED_MS));
    if let Some(clock) = context.manual_clock() {
        clock.advance(1_000);
    }
    let later = context.transaction(|tx| {
        tx.put(&LEASE.key(1), &2)?;
        tx.incr_by(&LEASE.key(1), 5)?;
        tx.sadd(&LEASED_SET.key(1), &2)?;
        Ok((tx.deadline(&LEASE.key(1))?, tx.deadline(&LEASED_SET.key(1))?, tx.get(&LEASE.key(1))?))
    });
    assert_eq!(later.await, Ok((end, end, Some(7))));
    let emptied = context.transaction(|tx| {
        tx.srem(&LEASED_SET.key(1), &1)?;
        tx.srem(&LEASED_SET.key(1), &2)?;
        let between = tx.exists(&LEASED_SET.key(1))?;
        tx.sadd(&LEASED_SET.key(1), &3)?;
        let now = tx.now();
        Ok((between, now, tx.deadline(&LEASED_SET.key(1))?))
    });
    let (between, now, anew) = emptied.await.expect("a transaction");
    assert_eq!((between, anew), (false, Some(now + FIXED_MS)), "what is gone starts a new life");
}

/// A deadline that is set only where there is none, after every other write.
pub async fn deadlines_if_there_is_none(context: &Context) {
    let at = context.far(0).await;
    let once = |n: i64| Write::ExpireAtIfNone(at + n);
    let has = |n: i64| [(Read::ExpireTime, int(at + n)), (Read::Exists, int(1))];
    replay(context, &[set("x"), once(1)], &has(1)).await;
    replay(context, &[set("x"), once(1), once(2), set_keep("y"), once(3)], &has(1)).await;
    replay(context, &[set_at("x", at), once(1)], &has(0)).await;
    replay(context, &[set("x"), Write::ExpireAt(at), once(1), Write::Persist, once(2)], &has(2)).await;
    replay(
        context,
        &[Write::IncrBy(1), once(1), Write::IncrBy(1), Write::ExpireAt(at + 4), once(5)],
        &has(4),
    )
    .await;
    replay(context, &[sadd(&["a"]), once(1), srem(&["a"]), once(2), sadd(&["b"]), once(3)], &has(3)).await;
    replay(context, &[sadd(&["a", "b"]), once(1), srem(&["a"]), once(2), sadd(&["b"]), once(3)], &has(1))
        .await;
    replay(context, &[rpush(&["a"]), once(1), Write::LPop(1), rpush(&["b"])], &[(Read::ExpireTime, int(-1))])
        .await;
    replay(context, &[Write::ExpireAt(at), once(1), hset(&[("f", "v")]), once(2)], &has(2)).await;
    replay(context, &[zadd(&[("a", 1.0)]), Write::Del, zadd(&[("a", 1.0)]), once(2)], &has(2)).await;
    replay_to_absent(context, &[once(1)]).await;
    replay_to_absent(context, &[set("x"), once(1), Write::Del, once(2)]).await;
    let passed = context.write(vec![(context.fresh(), Write::ExpireAtIfNone(1))]).await;
    assert!(matches!(passed, Err(Error::Invalid { what: "deadline", .. })), "{passed:?}");
}

/// Writes of a `fixed` family read nothing: those of several transactions at once agree on the first one's
/// deadline.
pub async fn fixed_families_of_many_writers(context: &Context) {
    let tasks: Vec<_> = (0..16u32)
        .map(|n| {
            let scope = if n % 2 == 0 { context.scope() } else { context.other_scope() };
            tokio::spawn(async move {
                let body = move |tx: &mut Tx<'_, World>| {
                    tx.incr_by(&LEASE.key(1), 1)?;
                    tx.sadd(&LEASED_SET.key(1), &n)?;
                    Ok::<_, Error>(tx.now())
                };
                scope.transact(body).await
            })
        })
        .collect();
    let mut times = vec![];
    for task in tasks {
        times.push(task.await.expect("no panic").expect("a transaction"));
    }
    let scope = context.scope();
    let ends = [scope.deadline_of(&LEASE.key(1)).await, scope.deadline_of(&LEASED_SET.key(1)).await];
    for end in ends {
        let end = end.expect("a read").expect("a deadline");
        assert!(times.contains(&(end - FIXED_MS)), "{end} is the deadline of one of them");
    }
    assert_eq!(scope.get(&LEASE.key(1)).await, Ok(Some(16)));
    assert_eq!(scope.scard(&LEASED_SET.key(1)).await, Ok(16));
}

/// `refresh`: every write moves the end, and so does `touch`.
pub async fn refreshed_families(context: &Context) {
    let field = || "f".to_owned();
    for round in 0..3 {
        let written = context.transaction(move |tx| {
            tx.put(&SEEN.key(1), &round)?;
            tx.hset(&SEEN_FIELDS.key(1), &field(), &round)?;
            let now = tx.now();
            Ok((now, tx.deadline(&SEEN.key(1))?, tx.deadline(&SEEN_FIELDS.key(1))?))
        });
        let (now, one, other) = written.await.expect("a transaction");
        assert_eq!((one, other), (Some(now + REFRESH_MS), Some(now + REFRESH_MS)));
        if let Some(clock) = context.manual_clock() {
            clock.advance(500);
        }
        let touched = context.transaction(|tx| {
            tx.touch(&SEEN.key(1))?;
            tx.touch(&SEEN.key(404))?;
            let now = tx.now();
            Ok((now, tx.deadline(&SEEN.key(1))?, tx.exists(&SEEN.key(404))?))
        });
        let (now, end, made) = touched.await.expect("a transaction");
        assert_eq!((end, made), (Some(now + REFRESH_MS), false));
    }
}

/// `given`: each write says how long.
pub async fn given_families(context: &Context) {
    let scope = context.scope();
    let life = Duration::from_secs(100);
    let text = || "t".to_owned();
    let written = context.transaction(move |tx| {
        tx.put_for(&TOKEN.key(1), &text(), life)?;
        deadline_of(tx, |tx| tx.deadline(&TOKEN.key(1)))
    });
    let (now, end) = written.await.expect("a transaction");
    assert_eq!(end, Some(now + 100_000));
    let at = context.far(7).await;
    let moved = context.transaction(move |tx| {
        tx.put_until(&TOKEN.key(1), &text(), at)?;
        tx.expire_at(&TOKEN.key(1), at + 1)?;
        tx.deadline(&TOKEN.key(1))
    });
    assert_eq!(moved.await, Ok(Some(at + 1)));
    let ended = scope.put_for(&TOKEN.key(2), text(), Duration::ZERO).await;
    assert!(matches!(ended, Err(Error::Invalid { what: "deadline", .. })), "{ended:?}");
    let forever = scope.put_for(&TOKEN.key(2), text(), Duration::MAX).await;
    assert!(matches!(forever, Err(Error::Invalid { what: "deadline", .. })), "{forever:?}");
    assert_eq!(scope.get(&TOKEN.key(2)).await, Ok(None));
}

/// Writes to a key with a fixed life succeed up to its last millisecond and beyond: they meet a living key or
/// make a new one, and never fail for the end that lies between.
pub async fn writes_around_the_end_of_a_fixed_life(context: &Context) {
    for round in 0..8 {
        let until = context.now().await + 2 * SPARK_MS;
        while context.now().await < until {
            let written = context.transaction(move |tx| {
                tx.sadd(&SPARK.key(round), &1)?;
                tx.srem(&SPARK.key(round), &1)?;
                tx.sadd(&SPARK.key(round), &2)
            });
            assert_eq!(written.await, Ok(()), "round {round}");
            if let Some(clock) = context.manual_clock() {
                clock.advance(1);
            }
        }
    }
}
