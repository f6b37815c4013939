//! Lists: LLEN, LRANGE, LSET, LPUSH, RPUSH, LPOP, RPOP, LTRIM.

use crate::builders::*;
use crate::context::Context;
use crate::external::StoredValue;
use crate::families::{QUEUE, World};
use crate::replay::{replay, replay_to_absent, replay_to_value};
use emberkeep_hot::command::{Read, Write};
use emberkeep_hot::{Error, Result, Tx};

fn whole(elements: &[&str]) -> [(Read, emberkeep_hot::command::Reply); 2] {
    [(Read::LRange(0, -1), list(elements)), (Read::LLen, int(elements.len() as i64))]
}

/// Pushing at both ends; LPUSH of many turns them round.
pub async fn pushes(context: &Context) {
    let writes = [rpush(&["c", "d"]), lpush(&["b", "a"]), rpush(&["e"]), lpush(&["0"])];
    replay(context, &writes, &whole(&["0", "a", "b", "c", "d", "e"])).await;
    let found = StoredValue::List(bs(&["0", "a", "b", "c", "d", "e"]));
    replay_to_value(context, &writes, found, None).await;
    replay(context, &[rpush(&["x", "x"]), lpush(&["x"])], &whole(&["x", "x", "x"])).await;
}

/// Popping from both ends, through what the same body pushed and down into what was there.
pub async fn pops(context: &Context) {
    let writes = [rpush(&["a", "b", "c", "d"]), lpush(&["0"]), Write::LPop(2), Write::RPop(1)];
    replay(context, &writes, &whole(&["b", "c"])).await;
    replay(context, &[rpush(&["a", "b"]), rpush(&["c"]), Write::LPop(2)], &whole(&["c"])).await;
    replay(context, &[rpush(&["a", "b"]), lpush(&["0"]), Write::RPop(2), rpush(&["z"])], &whole(&["0", "z"]))
        .await;
    replay_to_absent(context, &[Write::LPop(1), Write::RPop(5)]).await;
}

/// Taking more than there is empties the list and ends at once, however many were asked for.
pub async fn pops_of_more_than_there_is(context: &Context) {
    for count in [3, 1_000_000, i64::MAX as usize] {
        replay_to_absent(context, &[rpush(&["a", "b"]), Write::LPop(count)]).await;
        replay(context, &[rpush(&["a", "b"]), Write::RPop(count), rpush(&["c"])], &whole(&["c"])).await;
    }
}

/// Elements are replaced by position: what was pushed around the list, and what was there.
pub async fn replaced_elements(context: &Context) {
    let at = |index: i64, text: &str| Write::LSet(index, b(text));
    let start = || vec![rpush(&["b", "c"]), lpush(&["a"]), rpush(&["d"])];
    for (index, expected) in [
        (0, ["X", "b", "c", "d"]),
        (1, ["a", "X", "c", "d"]),
        (2, ["a", "b", "X", "d"]),
        (3, ["a", "b", "c", "X"]),
        (-1, ["a", "b", "c", "X"]),
        (-4, ["X", "b", "c", "d"]),
    ] {
        let writes = [start(), vec![at(index, "X")]].concat();
        replay(context, &writes, &whole(&expected)).await;
        replay(context, &writes, &[(Read::LRange(1, 2), list(&expected[1..3]))]).await;
    }
    let writes = [start(), vec![at(1, "X"), Write::LPop(1), at(0, "Y"), at(-1, "Z"), lpush(&["0"])]].concat();
    replay(context, &writes, &whole(&["0", "Y", "c", "Z"])).await;
    let writes = [start(), vec![at(2, "X"), Write::LTrim(2, 2), rpush(&["e"]), at(0, "W")]].concat();
    replay(context, &writes, &whole(&["W", "e"])).await;
    replay_to_value(context, &writes, StoredValue::List(bs(&["W", "e"])), None).await;
}

/// A position that is not there is refused, and nothing of the transaction is written.
pub async fn no_element_to_replace(context: &Context) {
    let places: [(&[&str], i64); 5] =
        [(&["a", "b"], 2), (&["a", "b"], -3), (&[], 0), (&["a"], i64::MIN), (&[], i64::MAX)];
    for (stored, index) in places {
        let (key, beside) = (context.fresh(), context.fresh());
        if !stored.is_empty() {
            context.put(&key, rpush(stored)).await;
        }
        let writes = vec![(beside.clone(), set("x")), (key.clone(), Write::LSet(index, b("new")))];
        let refused = context.write(writes).await;
        assert!(
            matches!(refused, Err(Error::Invalid { what: "index", .. })),
            "{index} of {stored:?}: {refused:?}"
        );
        assert_eq!(context.read(&beside, Read::Exists).await, int(0));
        assert_eq!(context.read(&key, Read::LRange(0, -1)).await, list(stored));
    }
}

/// Elements by their position, typed, in a transaction and outside of one.
pub async fn typed_positions(context: &Context) {
    let body = |tx: &mut Tx<'_, World>| -> Result<_> {
        let (key, t) = (QUEUE.key(1), |text: &str| text.to_owned());
        assert_eq!((tx.lindex(&key, 0)?, tx.lset(&key, 0, &t("x"))?), (None, false));
        tx.rpush_many(&key, &["a", "b", "c"].map(t))?;
        let changed = (tx.lset(&key, -1, &t("z"))?, tx.lset(&key, 3, &t("w"))?);
        Ok((changed, tx.lindex(&key, 0)?, tx.lindex(&key, -1)?, tx.lindex(&key, 3)?))
    };
    let found = context.transaction(body).await;
    assert_eq!(found, Ok(((true, false), Some("a".to_owned()), Some("z".to_owned()), None)));
    let scope = context.scope();
    assert_eq!(scope.lindex(&QUEUE.key(1), 1).await, Ok(Some("b".to_owned())));
    assert_eq!(scope.lindex(&QUEUE.key(1), -4).await, Ok(None));
    let later = context.transaction(|tx| tx.lset(&QUEUE.key(1), 1, &"y".to_owned())).await;
    assert_eq!(later, Ok(true));
    assert_eq!(scope.lrange(&QUEUE.key(1), 0, -1).await, Ok(["a", "y", "z"].map(str::to_owned).to_vec()));
}

/// Trimming by positions from both ends, out of range, and to nothing.
pub async fn trims(context: &Context) {
    let start = || vec![rpush(&["b", "c"]), lpush(&["a"]), rpush(&["d", "e"])];
    let trims: [(i64, i64, &[&str]); 8] = [
        (1, 3, &["b", "c", "d"]),
        (-2, -1, &["d", "e"]),
        (0, -2, &["a", "b", "c", "d"]),
        (-100, 100, &["a", "b", "c", "d", "e"]),
        (4, 4, &["e"]),
        (0, 0, &["a"]),
        (i64::MIN, i64::MAX, &["a", "b", "c", "d", "e"]),
        (2, -3, &["c"]),
    ];
    for (from, to, left) in trims {
        let mut writes = start();
        writes.push(Write::LTrim(from, to));
        replay(context, &writes, &whole(left)).await;
    }
    for (from, to) in [(3, 1), (5, 9), (0, -9), (i64::MAX, i64::MIN), (-1, -2)] {
        let mut writes = start();
        writes.push(Write::LTrim(from, to));
        replay_to_absent(context, &writes).await;
    }
    replay_to_absent(context, &[Write::LTrim(0, 5)]).await;
}

/// Parts of a list by positions from both ends and out of range.
pub async fn ranges(context: &Context) {
    let writes = [rpush(&["c"]), lpush(&["b", "a"]), rpush(&["d", "e", "f"]), Write::RPop(1)];
    let part = |from, to, elements: &[&str]| (Read::LRange(from, to), list(elements));
    let answers = [
        part(0, 0, &["a"]),
        part(1, 3, &["b", "c", "d"]),
        part(-2, -1, &["d", "e"]),
        part(-100, 1, &["a", "b"]),
        part(3, 100, &["d", "e"]),
        part(2, 1, &[]),
        part(5, 9, &[]),
        part(-100, -50, &[]),
        part(1, -2, &["b", "c", "d"]),
        part(4, 4, &["e"]),
    ];
    replay(context, &writes, &answers).await;
}

/// A range that ends before it begins is empty, also behind one that ends where it begins.
pub async fn reversed_ranges(context: &Context) {
    let part = |from, to, elements: &[&str]| (Read::LRange(from, to), list(elements));
    replay(context, &[rpush(&["a", "b", "c"])], &[part(3, 1, &[]), part(1, 2, &["b", "c"])]).await;
    replay(context, &[rpush(&["a", "b", "c"])], &[part(0, 2, &["a", "b", "c"]), part(3, 0, &[])]).await;
}

/// Nothing there, and the last element takes the list with it, and its deadline.
pub async fn an_empty_list_vanishes(context: &Context) {
    let absent = [(Read::LLen, int(0)), (Read::LRange(0, -1), list(&[])), (Read::Exists, int(0))];
    replay(context, &[], &absent).await;
    let at = context.far(0).await;
    replay_to_absent(context, &[rpush(&["a", "b"]), Write::ExpireAt(at), Write::LPop(1), Write::RPop(1)])
        .await;
    let writes = [rpush(&["a"]), Write::ExpireAt(at), Write::LPop(1), lpush(&["a"])];
    replay(context, &writes, &[(Read::ExpireTime, int(-1)), (Read::LLen, int(1))]).await;
}

/// The typed face of lists.
pub async fn typed_list(context: &Context) {
    let key = QUEUE.key(1);
    let body = move |tx: &mut Tx<'_, World>| -> Result<_> {
        let f = |text: &str| text.to_owned();
        assert_eq!((tx.lpop(&key)?, tx.rpop(&key)?), (None, None));
        for text in ["b", "c", "d", "e"] {
            tx.rpush(&key, &f(text))?;
        }
        tx.lpush(&key, &f("a"))?;
        let taken = (tx.lpop(&key)?, tx.rpop(&key)?);
        tx.ltrim(&key, 1, -1)?;
        Ok((taken, tx.llen(&key)?, tx.lrange(&key, 0, -1)?))
    };
    let found = context.transaction(body).await.expect("a plain transaction");
    let taken = (Some("a".to_owned()), Some("e".to_owned()));
    assert_eq!(found, (taken, 2, vec!["c".to_owned(), "d".to_owned()]));
}
