//! A key of another type: named in the error, and nothing of the transaction is written.

use crate::builders::*;
use crate::context::Context;
use crate::external::Change;
use crate::families::{COUNT, CREW, NOTE, SHEET, World};
use bytes::Bytes;
use emberkeep_hot::command::{Kind, KindFound, LexBound, Read, Reply, ScoreBound, Write, ZSlice};
use emberkeep_hot::{Error, Result, Tx};

/// One value of each type.
fn values() -> Vec<(Kind, Write)> {
    vec![
        (Kind::Text, set("text")),
        (Kind::Hash, hset(&[("f", "v")])),
        (Kind::Set, sadd(&["a"])),
        (Kind::SortedSet, zadd(&[("a", 1.0)])),
        (Kind::List, rpush(&["a"])),
    ]
}

/// Every read that asks for a type.
fn typed_reads() -> Vec<Read> {
    vec![
        Read::Get,
        Read::HGet(b("f")),
        Read::HGetAll,
        Read::HLen,
        Read::SIsMember(b("a")),
        Read::SMembers,
        Read::SCard,
        Read::ZScore(b("a")),
        Read::ZRank(b("a"), false),
        Read::ZRank(b("a"), true),
        Read::ZRange(all_ranks(), false),
        Read::ZRange(ZSlice::Score(ScoreBound::MIN, ScoreBound::MAX, 9), true),
        Read::ZRange(ZSlice::Lex(LexBound::Min, LexBound::Max, 9), false),
        Read::ZCard,
        Read::ZCount(ScoreBound::MIN, ScoreBound::MAX),
        Read::ZLexCount(LexBound::Min, LexBound::Max),
        Read::LLen,
        Read::LRange(0, -1),
    ]
}

/// Every write that asks for a type.
fn typed_writes() -> Vec<Write> {
    vec![
        Write::IncrBy(1),
        hset(&[("f", "w")]),
        hdel(&["f"]),
        Write::HIncrBy(b("n"), 1),
        sadd(&["b"]),
        srem(&["a"]),
        zadd(&[("b", 2.0)]),
        zrem(&["a"]),
        Write::ZIncrBy(b("a"), score(1.0)),
        lpush(&["b"]),
        rpush(&["b"]),
        Write::LPop(1),
        Write::RPop(1),
        Write::LTrim(0, 0),
        Write::LSet(0, b("b")),
    ]
}

fn is_wrong_type<T>(answer: &Result<T>, key: &Bytes, expected: Kind, found: Kind) -> bool {
    let Err(Error::WrongType { key: named, expected: wanted, found: stored }) = answer else { return false };
    named.contains(&emberkeep_hot::show(key))
        && *wanted == expected.name()
        && *stored == KindFound::Kind(found)
}

/// Every read of every other type answers what was found, plainly, in a transaction and after own writes.
pub async fn every_read_of_a_wrong_type(context: &Context) {
    for (stored, value) in values() {
        let key = context.fresh();
        assert!(context.external().change(&key, Change::Write(value.clone())).await);
        for read in typed_reads() {
            let expected = read.kind().expect("only typed reads stand here");
            if expected == stored {
                continue;
            }
            let plain = context.read(&key, read.clone()).await;
            assert_eq!(plain, Reply::WrongType(KindFound::Kind(stored)), "{read:?} of a {stored:?}");
            let in_transaction = context.read_in_transaction(&key, read.clone()).await;
            assert!(
                is_wrong_type(&in_transaction, &key, expected, stored),
                "{read:?} of a {stored:?}: {in_transaction:?}"
            );
            let own = context.fresh();
            let (value, asked) = (value.clone(), read.clone());
            let after_own = context.transaction(move |tx| {
                tx.raw_write(own.clone(), value.clone())?;
                let outcome = tx.raw_read(&own, asked.clone());
                Ok(matches!(outcome, Err(Error::WrongType { found: KindFound::Kind(kind), .. }) if kind == stored))
            });
            assert_eq!(after_own.await, Ok(true), "{read:?} after an own {stored:?}");
        }
    }
}

/// Every write on every other type is refused, and no key of the transaction changes, wherever in the
/// transaction the wrong key stands.
pub async fn every_write_on_a_wrong_type(context: &Context) {
    for (stored, value) in values() {
        for write in typed_writes() {
            let expected = write.kind().expect("only typed writes stand here");
            if expected != stored {
                refused_at_every_place(context, stored, &value, &write, expected).await;
            }
        }
    }
}

async fn refused_at_every_place(
    context: &Context,
    stored: Kind,
    value: &Write,
    write: &Write,
    expected: Kind,
) {
    for place in 0..3 {
        let keys: Vec<Bytes> = (0..3).map(|_| context.fresh()).collect();
        let external = &mut context.external();
        for key in &keys {
            assert!(external.change(key, Change::Write(value.clone())).await);
        }
        let before = external.inspect(&keys[0]).await;
        let change = |at: usize| if at == place { write.clone() } else { set("changed") };
        let refused = context.write((0..3).map(|at| (keys[at].clone(), change(at))).collect()).await;
        let shown = format!("{write:?} on a {stored:?} at place {place}");
        assert!(is_wrong_type(&refused, &keys[place], expected, stored), "{shown}: {refused:?}");
        for key in &keys {
            assert_eq!(external.inspect(key).await, before, "{shown}");
        }
    }
}

/// A list of writes that contradicts itself is refused whole, whatever was there.
pub async fn a_transaction_that_contradicts_itself(context: &Context) {
    for (stored, first) in values() {
        for second in typed_writes() {
            if second.kind() == Some(stored) {
                continue;
            }
            let (key, beside) = (context.fresh(), context.fresh());
            let writes =
                vec![(beside.clone(), set("x")), (key.clone(), first.clone()), (key.clone(), second.clone())];
            let refused = context.write(writes).await;
            let shown = format!("{first:?} then {second:?}");
            assert!(matches!(refused, Err(Error::WrongType { .. })), "{shown}: {refused:?}");
            assert_eq!(context.read(&beside, Read::Exists).await, int(0), "{shown}");
            assert_eq!(context.read(&key, Read::Exists).await, int(0), "{shown}");
        }
    }
}

/// A write that the key's type refuses is refused also where a SET or DEL of the same transaction would have
/// covered it.
pub async fn a_wrong_write_that_is_covered_later(context: &Context) {
    for cover in [set("covered"), Write::Del] {
        for write in [hdel(&["f"]), sadd(&["a"]), Write::LPop(1), Write::IncrBy(1)] {
            let (key, beside) = (context.fresh(), context.fresh());
            context.put(&key, set("text")).await;
            let shown = format!("{write:?} on a string, then {cover:?}");
            let writes = vec![(beside.clone(), set("x")), (key.clone(), write), (key.clone(), cover.clone())];
            let refused = context.write(writes).await;
            assert!(matches!(refused, Err(Error::WrongType { .. })), "{shown}: {refused:?}");
            assert_eq!(context.read(&key, Read::Get).await, blob("text"), "{shown}");
            assert_eq!(context.read(&beside, Read::Exists).await, int(0), "{shown}");
        }
    }
}

/// A collection that the same body emptied is absent for every read, of whatever type.
pub async fn an_emptied_collection_has_no_type(context: &Context) {
    let emptied: [&[Write]; 5] = [
        &[hset(&[("f", "v")]), hdel(&["f"])],
        &[sadd(&["a"]), srem(&["a"])],
        &[zadd(&[("a", 1.0)]), zrem(&["a"])],
        &[rpush(&["a"]), Write::LPop(1)],
        &[srem(&["a"])],
    ];
    for writes in emptied {
        for read in typed_reads() {
            let absent = context.read(&context.fresh(), read.clone()).await;
            crate::replay::replay(context, writes, &[(read, absent)]).await;
        }
    }
}

/// Typed errors name the family as well as the key.
pub async fn typed_errors_name_the_family(context: &Context) {
    let scope = context.scope();
    let layout = context.store().key_layout();
    let raw = Bytes::from(NOTE.key(1).to_text(layout, scope.partition()));
    assert!(context.external().change(&raw, Change::Write(sadd(&["a"]))).await);
    let names_it = |error: Error| {
        let text = error.to_string();
        assert!(text.contains("NOTE") && text.contains(&emberkeep_hot::show(&raw)), "{text}");
    };
    let in_transaction = context.transaction(|tx: &mut Tx<'_, World>| tx.get(&NOTE.key(1))).await;
    names_it(in_transaction.expect_err("a set is not a text"));
    names_it(scope.get(&NOTE.key(1)).await.expect_err("a set is not a text"));
    names_it(scope.get_many(&[NOTE.key(1)]).await.expect_err("a set is not a text"));
    let raw = Bytes::from(SHEET.key(1).to_text(layout, scope.partition()));
    assert!(context.external().change(&raw, Change::Write(set("text"))).await);
    let read = context.transaction(|tx: &mut Tx<'_, World>| tx.hgetall(&SHEET.key(1))).await;
    assert!(read.expect_err("a text is not a hash").to_string().contains("SHEET"));
    let write = context.transaction(|tx: &mut Tx<'_, World>| {
        tx.sadd(&CREW.key(1), &1)?;
        tx.incr_by(&COUNT.key(1), 1)?;
        tx.hset(&SHEET.key(1), &"f".to_owned(), &1)
    });
    names_sheet(write.await);
    assert_eq!(scope.get(&COUNT.key(1)).await, Ok(None), "nothing of the transaction was written");
}

/// So do those that are found only at the commit: by a plain write, by one of many, by one that contradicts
/// another, and by a number that is none.
pub async fn commits_name_the_family(context: &Context) {
    context.plant(&SHEET.key(1), set("text")).await;
    let field = || "f".to_owned();
    names_sheet(context.transaction(move |tx| tx.hset(&SHEET.key(1), &field(), &1)).await);
    names_sheet(context.transaction(move |tx| tx.hdel(&SHEET.key(1), &field())).await);
    let many = move |tx: &mut Tx<'_, World>| {
        tx.put(&NOTE.key(1), &field())?;
        tx.sadd(&CREW.key(1), &1)?;
        tx.incr_by(&COUNT.key(2), 1)?;
        tx.hset(&SHEET.key(1), &field(), &1)
    };
    names_sheet(context.transaction(many).await);
    let raw = context.raw(&SHEET.key(2));
    let contradiction = move |tx: &mut Tx<'_, World>| {
        tx.raw_write(raw.clone(), set("text"))?;
        tx.hset(&SHEET.key(2), &field(), &1)
    };
    names_sheet(context.transaction(contradiction).await);
    context.plant(&COUNT.key(1), set("many")).await;
    let outcome = context.transaction(|tx| tx.incr_by(&COUNT.key(1), 1)).await;
    let named = |error: &Error| error.to_string().contains("COUNT") && error.to_string().contains("integer");
    assert!(outcome.as_ref().is_err_and(named), "{outcome:?}");
}

fn names_sheet(outcome: Result<()>) {
    match outcome {
        Err(Error::WrongType { key, expected: "hash", .. }) => {
            assert!(key.contains("(family SHEET)"), "{key}")
        }
        other => panic!("expected a wrong type, got {other:?}"),
    }
}
