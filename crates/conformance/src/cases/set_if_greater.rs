//! Strings that are set if the number after their last comma is greater than the stored one.

use crate::builders::*;
use crate::context::Context;
use crate::external::{Change, StoredValue};
use crate::families::{LEASE, PLACE, REFRESH_MS};
use crate::replay::{replay, replay_to_value};
use emberkeep_hot::Error;
use emberkeep_hot::command::{Expiry, KindFound, Read, Write};

fn greater(text: &str) -> Write {
    set_if_greater(text, Expiry::Never)
}

/// By value and not by text, with the whole range of 64 bits; what is as great stays.
pub async fn the_greater_number_stays(context: &Context) {
    let stays = [
        ("a,9", "b,10", "b,10"),
        ("a,10", "b,9", "a,10"),
        ("a,10", "b,10", "a,10"),
        ("-1", "0", "0"),
        ("0", "-1", "0"),
        ("a,-10", "b,-9", "b,-9"),
        ("a,-9", "b,-10", "a,-9"),
        ("1.5,0.0,-2.25,1704067260000", "1,2,3,1704067260001", "1,2,3,1704067260001"),
        ("x,9007199254740993", "y,9007199254740992", "x,9007199254740993"),
        ("x,9223372036854775806", "y,9223372036854775807", "y,9223372036854775807"),
        ("x,-9223372036854775808", "y,-9223372036854775807", "y,-9223372036854775807"),
        ("9,1", "8,2", "8,2"),
        ("5", "a,6", "a,6"),
    ];
    for (before, after, stored) in stays {
        for first in [set(before), greater(before)] {
            replay(context, &[first, greater(after)], &[(Read::Get, blob(stored)), (Read::Exists, int(1))])
                .await;
        }
        replay_to_value(context, &[set(before), greater(after)], StoredValue::Text(b(stored)), None).await;
    }
    let writes = [greater("c,3"), greater("a,1"), greater("d,4"), greater("b,2")];
    replay(context, &writes, &[(Read::Get, blob("d,4"))]).await;
}

/// Malformed texts, texts of another form of number, other types and nothing.
pub async fn what_has_no_number_is_replaced(context: &Context) {
    let malformed = [
        "",
        ",",
        "7,",
        "a",
        "1,2,x",
        "1,2,3.5",
        "1,+9",
        "1,09",
        "1,-0",
        "1, 9",
        "9 ",
        "1,9223372036854775808",
        "1,-9223372036854775809",
        "99999999999999999999999999",
        "1e9",
    ];
    let answers = [(Read::Get, blob("p,-5")), (Read::ExpireTime, int(-1))];
    for before in malformed {
        replay(context, &[set(before), greater("p,-5")], &answers).await;
    }
    for before in [hset(&[("f", "9")]), sadd(&["9"]), zadd(&[("a", 9.0)]), rpush(&["9"]), Write::Del] {
        replay(context, &[before, greater("p,-5")], &answers).await;
    }
    replay(context, &[sadd(&["a"]), srem(&["a"]), greater("p,-5")], &answers).await;
}

/// A value that could never be compared.
pub async fn texts_without_a_number_are_refused(context: &Context) {
    for text in ["", "a", "1,2,", "1,2,x", "1,2.5", "1,9223372036854775808"] {
        let key = context.fresh();
        let refused = context.write(vec![(key.clone(), set("1")), (key.clone(), greater(text))]).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "value", .. })), "{text:?}: {refused:?}");
        assert_eq!(context.read(&key, Read::Exists).await, int(0));
    }
}

/// The deadline is set with the string, and stays as it is where the string stays.
pub async fn deadlines_come_with_what_is_set(context: &Context) {
    let at = context.far(0).await;
    let until = |text: &str, ms: i64| set_if_greater(text, Expiry::At(at + ms));
    let has = |text: &str, ms: i64| [(Read::ExpireTime, int(at + ms)), (Read::Get, blob(text))];
    replay(context, &[until("1", 1), until("2", 2)], &has("2", 2)).await;
    replay(context, &[until("2", 1), until("1", 2)], &has("2", 1)).await;
    replay(context, &[until("2", 1), until("2", 2), until("1", 3)], &has("2", 1)).await;
    replay(context, &[set_at("x", at), until("2", 2)], &has("2", 2)).await;
    replay(context, &[set_at("1", at), set_if_greater("2", Expiry::Keep)], &has("2", 0)).await;
    replay(context, &[until("1", 1), set_keep("2"), until("3", 2), set_keep("4")], &has("4", 2)).await;
    let never = [(Read::ExpireTime, int(-1))];
    replay(context, &[set_at("1", at), greater("2")], &never).await;
    replay(context, &[greater("2"), until("1", 1)], &never).await;
    replay(context, &[greater("2"), Write::ExpireAtIfNone(at), until("1", 1)], &has("2", 0)).await;
    replay(context, &[until("1", 1), Write::ExpireAt(at + 5), until("0", 2)], &has("1", 5)).await;
    replay(context, &[until("1", 1), Write::Persist, until("1", 2)], &never).await;
}

/// The writes of one body, in their order; the string of a SET counts like a stored one.
pub async fn own_writes_are_compared(context: &Context) {
    replay(context, &[set("5"), greater("a,4"), set("3"), greater("b,4")], &[(Read::Get, blob("b,4"))]).await;
    replay(context, &[greater("a,9"), Write::Del, greater("b,1")], &[(Read::Get, blob("b,1"))]).await;
    replay(context, &[greater("a,9"), set("x"), greater("b,1")], &[(Read::Get, blob("b,1"))]).await;
    replay(context, &[Write::IncrBy(7), greater("b,6")], &[(Read::Get, blob("7"))]).await;
    replay(context, &[Write::IncrBy(7), greater("b,8")], &[(Read::Get, blob("b,8"))]).await;
    replay(context, &[Write::IncrBy(7), greater("b,8"), greater("c,8")], &[(Read::Get, blob("b,8"))]).await;
    replay(
        context,
        &[sadd(&["a"]), greater("b,1"), Write::Del, sadd(&["c"])],
        &[(Read::SMembers, list(&["c"]))],
    )
    .await;
    let key = context.fresh();
    let refused = context.write(vec![(key.clone(), greater("b,1")), (key, sadd(&["c"]))]).await;
    assert!(matches!(refused, Err(Error::WrongType { .. })), "it is a string then: {refused:?}");
}

/// Which string is there shows at the commit: the same transaction cannot increment it, the next one can.
pub async fn increments_of_what_is_greater(context: &Context) {
    let key = context.fresh();
    let refused = context.write(vec![(key.clone(), greater("5")), (key.clone(), Write::IncrBy(1))]).await;
    assert!(matches!(refused, Err(Error::WrongType { found: KindFound::NotAnInteger, .. })), "{refused:?}");
    assert_eq!(context.read(&key, Read::Exists).await, int(0), "nothing was written");
    context.put(&key, greater("5")).await;
    context.put(&key, Write::IncrBy(1)).await;
    context.put(&key, greater("6")).await;
    assert_eq!(context.read(&key, Read::Get).await, blob("6"));
    let both = vec![(key.clone(), greater("4")), (key.clone(), set("8")), (key.clone(), Write::IncrBy(1))];
    assert_eq!(context.write(both).await, Ok(()), "a plain SET is known");
    assert_eq!(context.read(&key, Read::Get).await, blob("9"));
}

/// The typed face, and how many of a bulk were not greater.
pub async fn strings_that_were_not_set_are_counted(context: &Context) {
    let (scope, place) = (context.scope(), |text: &str| text.to_owned());
    let first = [(PLACE.key(1), place("a,5")), (PLACE.key(2), place("a,5")), (PLACE.key(3), place("a,5"))];
    assert_eq!(scope.put_each_if_greater(first).await, Ok(0));
    context.plant(&PLACE.key(3), set("broken")).await;
    let second = [(PLACE.key(1), place("b,4")), (PLACE.key(2), place("b,6")), (PLACE.key(3), place("b,1"))];
    assert_eq!(scope.put_each_if_greater(second).await, Ok(1));
    let third = [(PLACE.key(1), place("c,9")), (PLACE.key(1), place("c,8")), (PLACE.key(1), place("c,9"))];
    assert_eq!(scope.put_each_if_greater(third).await, Ok(2), "one after the other");
    let texts = scope.get_many(&[1, 2, 3, 4].map(|id| PLACE.key(id))).await.expect("plain texts");
    assert_eq!(texts, [Some(place("c,9")), Some(place("b,6")), Some(place("b,1")), None]);
    assert_eq!(scope.put_each_if_greater::<PLACE, _>([]).await, Ok(0));
    let refused = scope.put_each_if_greater([(PLACE.key(4), place("no time"))]).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "value", .. })), "{refused:?}");
    let body = |tx: &mut emberkeep_hot::Tx<'_, crate::families::World>| {
        tx.put_if_greater(&PLACE.key(1), &"d,8".to_owned())?;
        tx.put_if_greater(&LEASE.key(9), &7)?;
        let read = (tx.get(&PLACE.key(1))?, tx.get(&LEASE.key(9))?);
        Ok((read, tx.now(), tx.deadline(&LEASE.key(9))?))
    };
    let (read, now, deadline) = context.transaction(body).await.expect("a plain transaction");
    assert_eq!(read, (Some(place("c,9")), Some(7)));
    assert_eq!(deadline, Some(now + crate::families::FIXED_MS), "as the family declares");
    let life = scope.deadline_of(&PLACE.key(1)).await.expect("a read").expect("a deadline") - now;
    assert!(life <= REFRESH_MS && life > REFRESH_MS - 60_000, "{life}");
}

/// More than one transaction takes: each string is set once, and each that is not greater is counted.
pub async fn many_strings_at_once(context: &Context) {
    let (scope, ids) = (context.scope(), 0..1_300u32);
    let all = |tick: u32| ids.clone().map(move |id| (PLACE.key(id), format!("p{id},{}", tick + id % 2)));
    assert_eq!(scope.put_each_if_greater(all(10)).await, Ok(0));
    assert_eq!(scope.put_each_if_greater(all(10)).await, Ok(1_300));
    let mixed = ids.clone().map(|id| (PLACE.key(id), format!("q{id},11")));
    assert_eq!(scope.put_each_if_greater(mixed).await, Ok(650), "those that have 11 already");
    let keys: Vec<_> = ids.clone().map(|id| PLACE.key(id)).collect();
    for (found, id) in scope.get_each(&keys).await.expect("a read").into_iter().zip(ids) {
        let expected = if id % 2 == 0 { format!("q{id},11") } else { format!("p{id},11") };
        assert_eq!(found, Ok(Some(expected)));
    }
}

/// Writers of two processes, each with numbers of its own in no order: the greatest of all is there at the end, and
/// every one that was not set was counted.
pub async fn the_greatest_of_many_writers_stays(context: &Context) {
    let writers: Vec<_> = (0..8u64)
        .map(|writer| {
            let scope = if writer % 2 == 0 { context.scope() } else { context.other_scope() };
            tokio::spawn(async move {
                let mut set = vec![];
                for step in 0..40 {
                    // Each number once, in an order that looks like none.
                    let number = (writer * 40 + step) * 197 % 320;
                    let text = format!("{writer},{number}");
                    let not_greater = scope.put_each_if_greater([(PLACE.key(1), text)]).await;
                    set.extend((not_greater.expect("a plain write") == 0).then_some(number));
                }
                set
            })
        })
        .collect();
    let mut set = vec![];
    for writer in writers {
        set.extend(writer.await.expect("no panic"));
    }
    let found = context.scope().get(&PLACE.key(1)).await.expect("a read").expect("a text");
    assert!(found.ends_with(",319"), "{found}");
    assert!(set.contains(&319), "whose writer was answered that it was set");
    assert!(!set.is_empty() && set.len() < 320, "{} of 320 were set", set.len());
}

/// Transactions that set what is greater read nothing: an external client that writes the key all the while makes none
/// of them run again.
pub async fn unread_strings_never_conflict(context: &Context) {
    let mut external = context.external();
    let raw = context.raw(&PLACE.key(1));
    for number in 0..50 {
        let write = Change::Write(set(&format!("other,{number}")));
        assert!(external.change(&raw, write).await, "the server accepts it");
        let runs = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let body = {
            let runs = runs.clone();
            move |tx: &mut emberkeep_hot::Tx<'_, crate::families::World>| {
                runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tx.put_if_greater(&PLACE.key(1), &format!("ours,{}", number + number % 2))
            }
        };
        context.transaction(body).await.expect("a blind write");
        let expected =
            if number % 2 == 0 { format!("other,{number}") } else { format!("ours,{}", number + 1) };
        assert_eq!(context.read(&raw, Read::Get).await, blob(&expected));
        let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
        assert!(runs <= 2, "{runs} runs: two where closures are checked");
    }
}
