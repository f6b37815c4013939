//! Followers of a log: every entry once and in order, and a word about what they missed.

use crate::context::Context;
use crate::families::*;
use emberkeep_hot::command::Write;
use emberkeep_hot::store::{Follower, LogItem, LogPosition};
use emberkeep_hot::{Error, Scope, Tx};
use emberkeep_schema::{Codec, Family, Log, LogBound, Utf8};
use std::time::Duration;

/// An entry that takes longer is lost.
const ARRIVAL_MAX: Duration = Duration::from_secs(20);
/// Far longer than an entry takes: what arrives earlier was brought by a message.
const RARELY: Duration = Duration::from_secs(600);

async fn next<F, C, B>(follower: &mut Follower<F, C>) -> LogItem<C::Value>
where
    F: Family<Kind = Log<C, B>>,
    C: Codec,
    C::Value: Send,
    B: LogBound,
{
    let item = tokio::time::timeout(ARRIVAL_MAX, follower.next()).await;
    item.expect("an item comes").expect("the store is open").expect("the log can be read")
}

async fn next_texts<F, B>(follower: &mut Follower<F, Utf8>, count: usize) -> Vec<(u64, String)>
where
    F: Family<Kind = Log<Utf8, B>>,
    B: LogBound,
{
    let mut texts = Vec::new();
    while texts.len() < count {
        match next(follower).await {
            LogItem::Entry { position, event } => texts.push((position.sequence, event)),
            other => panic!("{other:?} after {texts:?}"),
        }
    }
    texts
}

fn expected(range: std::ops::RangeInclusive<u64>) -> Vec<(u64, String)> {
    range.map(|n| (n, format!("e{n}"))).collect()
}

async fn append(scope: &Scope<World>, range: std::ops::RangeInclusive<u64>) {
    let body = move |tx: &mut Tx<'_, World>| {
        range.clone().try_for_each(|n| tx.append(&EVENTS.key(1), &format!("e{n}")))
    };
    scope.transact(body).await.expect("a transaction");
}

async fn append_recent(scope: &Scope<World>, range: std::ops::RangeInclusive<u64>) {
    let body = move |tx: &mut Tx<'_, World>| {
        range.clone().try_for_each(|n| tx.append(&RECENT.key(1), &format!("e{n}")))
    };
    scope.transact(body).await.expect("a transaction");
}

/// Entries from before and after the follower began, blind and numbered, of this process and another one:
/// each once, in order, brought by messages.
pub async fn old_and_new_entries(context: &Context) {
    let (scope, other) = (context.scope(), context.other_scope());
    append(&scope, 1..=600).await;
    let mut follower = scope.follow(&EVENTS.key(1), 0).poll_every(RARELY);
    assert_eq!(next_texts(&mut follower, 600).await, expected(1..=600));
    let mut late = scope.follow(&EVENTS.key(1), scope.log_last(&EVENTS.key(1)).await.expect("a log"));
    for n in 601..=620 {
        match n % 3 {
            0 => append(&scope, n..=n).await,
            1 => append(&other, n..=n).await,
            _ => {
                let body = move |tx: &mut Tx<'_, World>| tx.append_numbered(&EVENTS.key(1), &format!("e{n}"));
                assert_eq!(scope.transact(body).await, Ok(n));
            }
        }
        assert_eq!(next_texts(&mut follower, 1).await, expected(n..=n));
    }
    assert_eq!(next_texts(&mut late, 20).await, expected(601..=620));
    assert_eq!(follower.position(), late.position());
    let nothing = tokio::time::timeout(Duration::from_millis(20), follower.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    let stored = follower.position().to_string();
    append(&scope, 621..=622).await;
    let resumed: LogPosition = stored.parse().expect("a position");
    assert_eq!(next_texts(&mut scope.follow(&EVENTS.key(1), resumed), 2).await, expected(621..=622));
    assert_eq!(next_texts(&mut follower, 2).await, expected(621..=622), "a dropped future loses nothing");
}

/// Entries that were dropped or trimmed before they were read are counted.
pub async fn missed_entries(context: &Context) {
    let scope = context.scope();
    append_recent(&scope, 1..=3).await;
    let mut follower = scope.follow(&RECENT.key(1), 1);
    assert_eq!(next_texts(&mut follower, 2).await, expected(2..=3));
    append_recent(&scope, 4..=20).await;
    assert_eq!(next(&mut follower).await, LogItem::Missed(13));
    assert_eq!(next_texts(&mut follower, 4).await, expected(17..=20));
    append(&scope, 1..=10).await;
    scope.log_trim(&EVENTS.key(1), 8).await.expect("a transaction");
    let mut follower = scope.follow(&EVENTS.key(1), 0);
    assert_eq!(next(&mut follower).await, LogItem::Missed(7));
    assert_eq!(next_texts(&mut follower, 3).await, expected(8..=10));
}

/// A log that was removed and begun anew is noticed, whether it is shorter than before or longer.
pub async fn a_log_that_was_set_back(context: &Context) {
    let scope = context.scope();
    append(&scope, 1..=5).await;
    let mut follower = scope.follow(&EVENTS.key(1), 0);
    assert_eq!(next_texts(&mut follower, 5).await, expected(1..=5));
    for length in [1, 5, 9] {
        let position = follower.position();
        let raw = context.raw(&EVENTS.key(1));
        let again = move |tx: &mut Tx<'_, World>| {
            tx.raw_write(raw.clone(), Write::Del)?;
            (1..=length).try_for_each(|n| tx.append(&EVENTS.key(1), &format!("e{n}")))
        };
        scope.transact(again).await.expect("a transaction");
        assert_eq!(next(&mut follower).await, LogItem::Reset, "{length} entries");
        assert_eq!(next_texts(&mut follower, length as usize).await, expected(1..=length));
        let mut resumed = scope.follow(&EVENTS.key(1), position);
        assert_eq!(next(&mut resumed).await, LogItem::Reset, "also by who comes back");
        assert_eq!(next_texts(&mut resumed, length as usize).await, expected(1..=length));
    }
}

/// An event that cannot be read does not stop a follower; a key of another type is an error as long as it is
/// there.
pub async fn unreadable_entries(context: &Context) {
    let scope = context.scope();
    scope.transact(|tx| tx.append(&NUMBERS.key(1), &1)).await.expect("a transaction");
    let raw = context.raw(&NUMBERS.key(1));
    let push = |text: &str| Write::RPush(vec![bytes::Bytes::copy_from_slice(text.as_bytes())]);
    context.plant(&NUMBERS.key(1), push("2:0000000a:two")).await;
    context.plant(&NUMBERS.key(1), push("strange")).await;
    context.plant(&NUMBERS.key(1), push("4:0000000b:4")).await;
    let mut follower = scope.follow(&NUMBERS.key(1), 0).poll_every(Duration::from_millis(5));
    assert!(matches!(next(&mut follower).await, LogItem::Entry { event: 1, .. }));
    for (sequence, mark) in [(2, Some(10)), (3, None)] {
        let item = next(&mut follower).await;
        let LogItem::Unreadable { position, error: Error::Corrupt { key, .. } } = item else {
            panic!("{item:?}")
        };
        assert_eq!(position, LogPosition { sequence, mark });
        assert!(key.contains("log:c:"), "{key}");
    }
    assert!(matches!(next(&mut follower).await, LogItem::Entry { event: 4, .. }));
    context
        .put(&raw, Write::Set(bytes::Bytes::from_static(b"text"), emberkeep_hot::command::Expiry::Never))
        .await;
    for _ in 0..2 {
        let refused = tokio::time::timeout(ARRIVAL_MAX, follower.next()).await.expect("an answer comes");
        assert!(matches!(refused, Some(Err(Error::WrongType { .. }))), "{refused:?}");
    }
    context.put(&raw, Write::Del).await;
    assert_eq!(next(&mut follower).await, LogItem::Reset);
    scope.transact(|tx| tx.append(&NUMBERS.key(1), &1)).await.expect("a transaction");
    assert!(matches!(next(&mut follower).await, LogItem::Entry { event: 1, .. }));
}

/// Many writers and a follower in another process: nothing is missed, nothing comes twice.
pub async fn a_follower_beside_writers(context: &Context) {
    const WRITERS: u64 = 8;
    const EACH: u64 = 50;
    let mut follower = context.other_scope().follow(&EVENTS.key(1), 0);
    let tasks: Vec<_> = (0..WRITERS)
        .map(|_| {
            let scope = context.scope();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    append(&scope, 0..=0).await;
                }
            })
        })
        .collect();
    let sequences = next_texts(&mut follower, (WRITERS * EACH) as usize).await.into_iter().map(|(n, _)| n);
    assert_eq!(sequences.collect::<Vec<_>>(), (1..=WRITERS * EACH).collect::<Vec<_>>());
    for task in tasks {
        task.await.expect("no writer panics");
    }
}

/// Many writers of a log that drops its oldest entries, and followers of both processes: each entry comes once and
/// in order, or counts as missed.
pub async fn a_follower_of_a_full_log_beside_writers(context: &Context) {
    const WRITERS: u64 = 6;
    const EACH: u64 = 60;
    // Of both bounds: one is full at once, the other one after a while.
    let small = context.other_scope().follow(&RECENT.key(1), 0);
    let large = context.other_scope().follow(&REFRESHED_LOG.key(1), 0);
    let tasks: Vec<_> = (0..WRITERS)
        .map(|n| {
            let scope = if n % 2 == 0 { context.scope() } else { context.other_scope() };
            tokio::spawn(async move {
                for entry in 0..EACH {
                    let body = move |tx: &mut Tx<'_, World>| {
                        let text = format!("{n}:{entry}");
                        tx.append(&RECENT.key(1), &text)?;
                        if entry % 2 == 0 {
                            return tx.append(&REFRESHED_LOG.key(1), &text);
                        }
                        tx.append_numbered(&REFRESHED_LOG.key(1), &text).map(drop)
                    };
                    scope.transact(body).await.expect("a transaction");
                }
            })
        })
        .collect();
    let (small, large) = tokio::join!(count_to(small, WRITERS * EACH), count_to(large, WRITERS * EACH));
    assert!(small > 0 && large > 0, "{small} and {large} entries were read");
    for task in tasks {
        task.await.expect("no writer panics");
    }
}

/// Follows a log to this sequence. Returns how many entries came; the others were missed.
async fn count_to<F, B>(mut follower: Follower<F, Utf8>, last: u64) -> u64
where
    F: Family<Kind = Log<Utf8, B>>,
    B: LogBound,
{
    let (mut entries, mut sequence) = (0, 0);
    let mut texts = std::collections::BTreeSet::new();
    while sequence < last {
        match next(&mut follower).await {
            LogItem::Entry { position, event } => {
                sequence += 1;
                assert_eq!(position.sequence, sequence, "after {entries} entries");
                assert!(texts.insert(event.clone()), "{event} came twice");
                entries += 1;
            }
            LogItem::Missed(count) => sequence += count,
            other => panic!("{other:?} after {sequence}"),
        }
    }
    assert_eq!(sequence, last);
    entries
}
