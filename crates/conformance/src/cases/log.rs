//! Event logs: in the same commit as the state, without holes, bounded, paged, trimmed, with a deadline.

use crate::builders::*;
use crate::context::Context;
use crate::families::*;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::limits::LOG_ENTRY_BYTES_MAX;
use emberkeep_hot::store::{LogPage, LogPosition};
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Automatic, Family, Key, Log, LogBound, Utf8};

async fn append<F, B>(scope: &Scope<World>, log: Key<F>, entries: Vec<String>) -> Result<()>
where
    F: Family<Partition = World, Kind = Log<Utf8, B>>,
    F::Ttl: Automatic,
    B: LogBound,
{
    scope.transact(move |tx| entries.iter().try_for_each(|entry| tx.append(&log, entry))).await
}

async fn page<F, B>(scope: &Scope<World>, log: Key<F>, after: u64, limit: usize) -> LogPage<String>
where
    F: Family<Partition = World, Kind = Log<Utf8, B>>,
    B: LogBound,
{
    scope.log_after(&log, after, limit).await.expect("a log can be read")
}

fn sequences<E>(page: &LogPage<E>) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.sequence).collect()
}

fn texts(page: &LogPage<String>) -> Vec<String> {
    page.entries.iter().map(|entry| entry.event.clone().expect("a text")).collect()
}

fn numbered_texts(range: std::ops::RangeInclusive<u64>) -> Vec<String> {
    range.map(|n| format!("e{n}")).collect()
}

/// Entries are there exactly if their transaction committed, in the order of the body, in the log of their
/// key and partition.
pub async fn entries_come_with_their_transaction(context: &Context) {
    let scope = context.scope();
    assert_eq!(page(&scope, EVENTS.key(1), 0, 10).await, LogPage::default());
    let key = context.fresh();
    let written = key.clone();
    let body = move |tx: &mut Tx<'_, World>| {
        tx.append(&EVENTS.key(1), &"one".to_owned())?;
        tx.append(&EVENTS.key(2), &"of another log".to_owned())?;
        tx.raw_write(written.clone(), set("x"))?;
        tx.append(&EVENTS.key(1), &"two: with: colons".to_owned())?;
        tx.append(&BYTES.key(1), &vec![0u8, 255, b'\n'])
    };
    context.transaction(body).await.expect("a transaction");
    let aborted: Result<()> = context
        .transaction(|tx| {
            tx.append(&EVENTS.key(1), &"never".to_owned())?;
            Err(Error::Closed)
        })
        .await;
    assert_eq!(aborted, Err(Error::Closed));
    append(&scope, EVENTS.key(1), vec!["three".into()]).await.expect("a transaction");
    let log = page(&scope, EVENTS.key(1), 0, 10).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![1, 2, 3], 3, 0));
    assert_eq!(texts(&log), ["one", "two: with: colons", "three"]);
    assert_eq!(texts(&page(&scope, EVENTS.key(2), 0, 10).await), ["of another log"]);
    let bytes = scope.log_after(&BYTES.key(1), 0, 10).await.expect("a log");
    assert_eq!(bytes.entries[0].event, Ok(vec![0u8, 255, b'\n']));
    let beside = page(&context.scope_beside("log"), EVENTS.key(1), 0, 10).await;
    assert_eq!(beside, LogPage::default(), "a log per partition");
    let marks: Vec<_> = log.entries.iter().map(|entry| entry.mark).collect();
    assert!(marks[0].is_some() && marks[0] != marks[1] && marks[1] != marks[2], "{marks:?}");
}

/// A transaction whose writes are refused appends nothing.
pub async fn refused_transactions_append_nothing(context: &Context) {
    let key = context.fresh();
    context.put(&key, set("text")).await;
    let body = move |tx: &mut Tx<'_, World>| {
        tx.append(&EVENTS.key(1), &"never".to_owned())?;
        tx.raw_write(key.clone(), sadd(&["a"]))
    };
    assert!(matches!(context.transaction(body).await, Err(Error::WrongType { .. })));
    assert_eq!(page(&context.scope(), EVENTS.key(1), 0, 10).await.last, 0);
    let large = "x".repeat(LOG_ENTRY_BYTES_MAX);
    let refused = append(&context.scope(), EVENTS.key(1), vec![large]).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "log entry", .. })), "{refused:?}");
}

/// Sixteen writers in two processes: sequences are continuous from 1, each entry once, each writer's in its
/// order.
pub async fn sequences_are_continuous(context: &Context) {
    const WRITERS: usize = 16;
    const EACH: usize = 25;
    let tasks = (0..WRITERS).map(|writer| {
        let scope = if writer % 2 == 0 { context.scope() } else { context.other_scope() };
        let counter = context.key("counted");
        tokio::spawn(async move {
            for n in 0..EACH {
                let (counter, entry) = (counter.clone(), format!("{writer}:{n}"));
                let body = move |tx: &mut Tx<'_, World>| {
                    tx.raw_write(counter.clone(), Write::IncrBy(1))?;
                    tx.append(&EVENTS.key(1), &entry)
                };
                scope.transact(body).await.expect("writers settle");
                tokio::task::yield_now().await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no writer panics");
    }
    let log = page(&context.scope(), EVENTS.key(1), 0, 1_000).await;
    assert_eq!(sequences(&log), (1..=(WRITERS * EACH) as u64).collect::<Vec<_>>());
    assert_eq!(context.read(&context.key("counted"), Read::Get).await, blob(&(WRITERS * EACH).to_string()));
    let texts = texts(&log);
    for writer in 0..WRITERS {
        let own: Vec<_> =
            texts.iter().filter(|text| text.starts_with(&format!("{writer}:"))).cloned().collect();
        assert_eq!(own, (0..EACH).map(|n| format!("{writer}:{n}")).collect::<Vec<_>>());
    }
}

/// Writers count and append in one transaction, readers compare the count with two logs in one transaction:
/// it is one moment, whichever transactions share a commit.
pub async fn state_and_logs_are_of_one_moment(context: &Context) {
    const PAIRS: usize = 8;
    const EACH: u64 = 40;
    let mut tasks = Vec::new();
    for _ in 0..PAIRS {
        let (scope, counter) = (context.scope(), context.key("answer"));
        tasks.push(tokio::spawn(async move {
            for _ in 0..EACH {
                let counter = counter.clone();
                let body = move |tx: &mut Tx<'_, World>| {
                    tx.raw_write(counter.clone(), Write::IncrBy(1))?;
                    tx.append(&EVENTS.key(1), &"answer".to_owned())?;
                    tx.append(&RECENT.key(1), &"answer".to_owned())
                };
                scope.transact(body).await.expect("writers settle");
            }
        }));
        let (scope, counter) = (context.scope(), context.key("answer"));
        tasks.push(tokio::spawn(async move {
            for _ in 0..EACH {
                let counter = counter.clone();
                let body = move |tx: &mut Tx<'_, World>| {
                    let count = match tx.raw_read(&counter, Read::Get)? {
                        Reply::Blob(text) => String::from_utf8_lossy(&text).parse().unwrap_or(u64::MAX),
                        _ => 0,
                    };
                    let (all, recent) = (tx.log_last(&EVENTS.key(1))?, tx.log_last(&RECENT.key(1))?);
                    Ok::<_, Error>((count, all.sequence, recent.sequence))
                };
                let (count, all, recent) = scope.transact(body).await.expect("readers settle");
                assert_eq!((all, recent), (count, count), "the state and its logs are of two moments");
            }
        }));
    }
    for task in tasks {
        task.await.expect("no task panics");
    }
    assert_eq!(page(&context.scope(), EVENTS.key(1), 0, 1).await.last, PAIRS as u64 * EACH);
}

/// A full log drops its oldest entries, and a reader that asks for them learns how many are missing.
pub async fn a_full_log_drops_and_tells(context: &Context) {
    let scope = context.scope();
    for n in 1..=10 {
        append(&scope, RECENT.key(1), vec![format!("e{n}")]).await.expect("a transaction");
    }
    let log = page(&scope, RECENT.key(1), 0, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![7, 8, 9, 10], 10, 6));
    let log = page(&scope, RECENT.key(1), 3, 2).await;
    assert_eq!((texts(&log), log.last, log.missed), (vec!["e7".to_owned(), "e8".to_owned()], 10, 3));
    let log = page(&scope, RECENT.key(1), 7, 100).await;
    assert_eq!((sequences(&log), log.missed), (vec![8, 9, 10], 0));
    append(&scope, RECENT.key(1), numbered_texts(11..=20)).await.expect("a transaction");
    let log = page(&scope, RECENT.key(1), 10, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![17, 18, 19, 20], 20, 6));
}

/// A log that may drop nothing refuses the whole transaction when it is full, and takes it again when it was
/// trimmed. The entry that it was trimmed through stays and counts. Other logs are not affected.
pub async fn a_full_log_refuses(context: &Context) {
    let (scope, key) = (context.scope(), context.fresh());
    let transaction = |entries: usize| {
        let key = key.clone();
        context.transaction(move |tx| {
            tx.raw_write(key.clone(), Write::IncrBy(1))?;
            tx.append(&OUTBOX.key(2), &"beside".to_owned())?;
            (0..entries).try_for_each(|n| tx.append(&OUTBOX.key(1), &n.to_string()))
        })
    };
    transaction(2).await.expect("there is room");
    let answer = transaction(2).await;
    let name = "(family OUTBOX)";
    assert!(
        matches!(&answer, Err(Error::LogFull { max: OUTBOX_MAX, key }) if key.contains(name)),
        "{answer:?}"
    );
    transaction(1).await.expect("there is room for one");
    assert!(matches!(transaction(1).await, Err(Error::LogFull { .. })));
    assert_eq!(context.read(&key, Read::Get).await, blob("2"), "refused transactions wrote nothing");
    assert_eq!(page(&scope, OUTBOX.key(1), 0, 10).await.last, 3);
    assert_eq!(page(&scope, OUTBOX.key(2), 0, 10).await.last, 2, "nor appended to another log");
    scope.log_trim(&OUTBOX.key(1), 3).await.expect("a transaction");
    scope.log_trim(&OUTBOX.key(2), 2).await.expect("a transaction");
    let numbered = scope.transact(|tx| tx.append_numbered(&OUTBOX.key(1), &"four".to_owned())).await;
    assert_eq!(numbered, Ok(4));
    transaction(1).await.expect("there is room again");
    let numbered = scope.transact(|tx| tx.append_numbered(&OUTBOX.key(1), &"six".to_owned())).await;
    assert!(matches!(numbered, Err(Error::LogFull { max: OUTBOX_MAX, .. })), "{numbered:?}");
    let log = page(&scope, OUTBOX.key(1), 3, 10).await;
    assert_eq!((sequences(&log), log.missed), (vec![4, 5], 0));
}

/// Pages follow each other without overlap; a position beyond the end is not one of the log.
pub async fn pages(context: &Context) {
    let scope = context.scope();
    append(&scope, EVENTS.key(1), numbered_texts(1..=25)).await.expect("a transaction");
    let (mut place, mut all) = (LogPosition::START, Vec::new());
    loop {
        let log = scope.log_after(&EVENTS.key(1), place, 10).await.expect("a page");
        assert_eq!((log.last, log.missed, log.is_reset), (25, 0, false));
        let Some(last) = log.entries.last() else { break };
        place = last.position();
        all.extend(texts(&log));
    }
    assert_eq!(all, numbered_texts(1..=25));
    for beyond in [26, 1_000, u64::MAX - 1, u64::MAX] {
        let log = page(&scope, EVENTS.key(1), beyond, 10).await;
        let expected = LogPage { entries: vec![], last: 25, missed: 0, is_reset: true };
        assert_eq!(log, expected, "after {beyond}");
    }
    assert_eq!(sequences(&page(&scope, EVENTS.key(1), 24, 0).await), [25], "a page holds at least one");
    assert_eq!(page(&scope, EVENTS.key(1), 0, usize::MAX).await.entries.len(), 25);
}

/// A page holds fewer entries than asked for if they are large, never none.
pub async fn pages_of_large_entries(context: &Context) {
    let scope = context.scope();
    for n in 0..12 {
        let large = format!("{n}:{}", "x".repeat(LOG_ENTRY_BYTES_MAX - 100));
        append(&scope, EVENTS.key(1), vec![large]).await.expect("a transaction");
    }
    let (mut place, mut read) = (LogPosition::START, 0);
    while place.sequence < 12 {
        let log = scope.log_after(&EVENTS.key(1), place, 100).await.expect("a page");
        read += log.entries.len();
        place = log.entries.last().expect("at least one").position();
    }
    assert_eq!(read, 12);
}

/// Trimming removes what is before a sequence, twice as well as once. The entry of the sequence, or the last
/// one, stays, and the next entry goes on counting.
pub async fn trims(context: &Context) {
    let scope = context.scope();
    scope.log_trim(&EVENTS.key(1), 5).await.expect("nothing to trim");
    append(&scope, EVENTS.key(1), numbered_texts(1..=10)).await.expect("a transaction");
    for through in [0, 5, 2, 5] {
        scope.log_trim(&EVENTS.key(1), through).await.expect("a transaction");
    }
    let log = page(&scope, EVENTS.key(1), 0, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), ((5..=10).collect(), 10, 4));
    for through in [u64::MAX, 10, 99] {
        scope.log_trim(&EVENTS.key(1), through).await.expect("a transaction");
        let log = page(&scope, EVENTS.key(1), 7, 100).await;
        assert_eq!((sequences(&log), log.last, log.missed), (vec![10], 10, 2), "trimmed through {through}");
        let log = page(&scope, EVENTS.key(1), 10, 100).await;
        assert_eq!((sequences(&log), log.last, log.missed), (vec![], 10, 0), "trimmed through {through}");
    }
    append(&scope, EVENTS.key(1), vec!["e11".into()]).await.expect("a transaction");
    let log = page(&scope, EVENTS.key(1), 10, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![11], 11, 0));
}

/// A trim by sequence and mark removes nothing unless that very entry is there: after a removal of the log its
/// sequences belong to other entries.
pub async fn trims_of_another_entry(context: &Context) {
    let scope = context.scope();
    append(&scope, EVENTS.key(1), numbered_texts(1..=6)).await.expect("a transaction");
    let position = |page: &LogPage<String>, place: usize| page.entries[place].position();
    let before = page(&scope, EVENTS.key(1), 0, 100).await;
    scope.log_trim(&EVENTS.key(1), position(&before, 2)).await.expect("a transaction");
    assert_eq!(sequences(&page(&scope, EVENTS.key(1), 0, 100).await), [3, 4, 5, 6]);
    scope.del(&EVENTS.key(1)).await.expect("a removal");
    append(&scope, EVENTS.key(1), numbered_texts(1..=5)).await.expect("a transaction");
    // Another entry stands at 5, and none at 6.
    for place in [4, 5] {
        scope.log_trim(&EVENTS.key(1), position(&before, place)).await.expect("nothing to trim");
        assert_eq!(sequences(&page(&scope, EVENTS.key(1), 0, 100).await), [1, 2, 3, 4, 5]);
    }
}

/// The bytes of entries, also of one that an external client overwrote: it has no mark, and all that stands in
/// its place.
pub async fn encoded_pages(context: &Context) {
    let scope = context.scope();
    append(&scope, EVENTS.key(1), numbered_texts(1..=3)).await.expect("a transaction");
    let log = context.raw(&EVENTS.key(1));
    let overwrite = move |tx: &mut Tx<'_, World>| tx.raw_write(log.clone(), Write::LSet(1, "strange".into()));
    context.transaction(overwrite).await.expect("a transaction");
    let page = scope.log_after_encoded(&EVENTS.key(1), 0, 100).await.expect("a page");
    let found: Vec<_> =
        page.entries.iter().map(|entry| (entry.mark.is_some(), entry.event.clone())).collect();
    let expected = [(true, Ok("e1".into())), (false, Ok("strange".into())), (true, Ok("e3".into()))];
    assert_eq!((found, page.last), (expected.to_vec(), 3));
    let decoded = scope.log_after(&EVENTS.key(1), 0, 100).await.expect("a page");
    assert!(decoded.entries[1].event.as_ref().is_err_and(Error::is_corrupt), "{decoded:?}");
}

/// A consumer that trims while others append loses nothing: in either order the same entries stay.
pub async fn trimming_beside_appends(context: &Context) {
    let scope = context.scope();
    let (events, recent) = (EVENTS.key(1), RECENT.key(1));
    append(&scope, EVENTS.key(1), numbered_texts(1..=10)).await.expect("a transaction");
    for round in 0..50 {
        let first = round * 5 + 1;
        let (trimmed, appended) = tokio::join!(scope.log_trim(&events, first + 4), async {
            for n in 0..5 {
                append(&scope, EVENTS.key(1), vec![format!("e{}", first + 10 + n)]).await?;
            }
            Ok::<_, Error>(())
        });
        trimmed.and(appended).expect("both transactions");
        let log = page(&scope, EVENTS.key(1), first + 4, 100).await;
        assert_eq!((sequences(&log), log.missed), ((first + 5..=first + 14).collect(), 0), "round {round}");
    }
    append(&scope, RECENT.key(1), numbered_texts(1..=4)).await.expect("a transaction");
    for round in 0..50 {
        let last = scope.log_last(&RECENT.key(1)).await.expect("a log").sequence;
        // The log is full: the append drops the oldest, which the trim was going to remove anyway.
        let (appended, trimmed) = tokio::join!(
            append(&scope, RECENT.key(1), vec!["full".into()]),
            scope.log_trim(&recent, last - 2)
        );
        appended.and(trimmed).expect("both transactions");
        let log = page(&scope, RECENT.key(1), last - 2, 100).await;
        assert_eq!(
            (sequences(&log), log.missed),
            ((last - 1..=last + 1).collect(), 0),
            "full, round {round}"
        );
        append(&scope, RECENT.key(1), vec!["fill".into()]).await.expect("the log is full again");
    }
}

async fn end_of<F: Family<Partition = World>>(context: &Context, log: Key<F>) -> Reply {
    context.read(&context.raw(&log), Read::ExpireTime).await
}

/// A log of a `given` family ends when its last entry says, whether or not that was numbered.
pub async fn a_log_with_a_given_end(context: &Context) {
    let (scope, until) = (context.scope(), context.far(0).await);
    let log = || ROOM_LOG.key(1);
    let numbered = scope.transact(move |tx| tx.append_numbered_until(&log(), &"e1".to_owned(), until)).await;
    assert_eq!((numbered, end_of(context, log()).await), (Ok(1), Reply::Int(until)));
    let blind = scope.transact(move |tx| tx.append_until(&log(), &"e2".to_owned(), until + 1)).await;
    assert_eq!((blind, end_of(context, log()).await), (Ok(()), Reply::Int(until + 1)));
    scope.transact(move |tx| tx.expire_at(&log(), until + 2)).await.expect("a transaction");
    assert_eq!(end_of(context, log()).await, Reply::Int(until + 2));
    for n in 3..=9 {
        let numbered =
            scope.transact(move |tx| tx.append_numbered_until(&log(), &format!("e{n}"), until)).await;
        assert_eq!(numbered, Ok(n));
    }
    let page = page(&scope, log(), 0, 100).await;
    assert_eq!((texts(&page), page.last, page.missed), (numbered_texts(6..=9), 9, 5));
    assert_eq!(end_of(context, log()).await, Reply::Int(until));
    context.past(context.now().await).await;
    let over = context.now().await + 20;
    scope.transact(move |tx| tx.append_until(&log(), &"last".to_owned(), over)).await.expect("a transaction");
    context.past(over).await;
    assert_eq!(scope.log_last(&log()).await, Ok(LogPosition::START), "the log has ended");
    scope.transact(move |tx| tx.append_until(&log(), &"e1".to_owned(), until)).await.expect("a transaction");
    assert_eq!(scope.log_last(&log()).await.map(|last| last.sequence), Ok(1), "and begins anew");
}

/// The TTL of the family counts: from the first entry, or from the last one.
pub async fn logs_with_a_declared_life(context: &Context) {
    let scope = context.scope();
    assert_eq!(end_of(context, EVENTS.key(1)).await, Reply::Int(-2));
    append(&scope, EVENTS.key(1), vec!["e1".into()]).await.expect("a transaction");
    assert_eq!(end_of(context, EVENTS.key(1)).await, Reply::Int(-1));
    let mut ends = Vec::new();
    for n in 0..3 {
        append(&scope, FIXED_LOG.key(1), vec![format!("e{n}")]).await.expect("a transaction");
        append(&scope, REFRESHED_LOG.key(1), vec![format!("e{n}")]).await.expect("a transaction");
        ends.push((end_of(context, FIXED_LOG.key(1)).await, end_of(context, REFRESHED_LOG.key(1)).await));
        context.past(context.now().await + 2).await;
    }
    let [(Reply::Int(fixed), Reply::Int(first)), .., (_, Reply::Int(last))] = ends[..] else {
        panic!("{ends:?}")
    };
    assert!(ends.iter().all(|(end, _)| *end == Reply::Int(fixed)), "{ends:?}");
    assert!(first < last, "{ends:?}");
    let numbered = scope.transact(|tx| tx.append_numbered(&FIXED_LOG.key(1), &"e4".to_owned())).await;
    assert_eq!((numbered, end_of(context, FIXED_LOG.key(1)).await), (Ok(4), Reply::Int(fixed)));
}

/// A log that is begun again has nothing of the one before, and one that was deleted leaves no key. A reader
/// of the old one learns of it, also when the new one is as long.
pub async fn a_log_begins_again(context: &Context) {
    let scope = context.scope();
    append(&scope, EVENTS.key(1), numbered_texts(1..=3)).await.expect("a transaction");
    let before = page(&scope, EVENTS.key(1), 0, 10).await.entries[1].position();
    let begin = |tx: &mut Tx<'_, World>| {
        tx.del(&EVENTS.key(1))?;
        tx.append(&EVENTS.key(1), &"new".to_owned())
    };
    scope.transact(begin).await.expect("a transaction");
    let log = page(&scope, EVENTS.key(1), 0, 10).await;
    assert_eq!((sequences(&log), texts(&log)), (vec![1], vec!["new".to_owned()]));
    assert!(page(&scope, EVENTS.key(1), before.sequence, 10).await.is_reset, "it ends before the position");
    append(&scope, EVENTS.key(1), numbered_texts(2..=5)).await.expect("a transaction");
    let log = scope.log_after(&EVENTS.key(1), before, 10).await.expect("a page");
    assert_eq!((log.is_reset, log.entries.len()), (true, 0), "another entry stands at the position");
    let without_mark = page(&scope, EVENTS.key(1), before.sequence, 10).await;
    assert_eq!((without_mark.is_reset, sequences(&without_mark)), (false, vec![3, 4, 5]));
    scope.transact(|tx| tx.del(&EVENTS.key(1))).await.expect("a transaction");
    assert_eq!(page(&scope, EVENTS.key(1), 0, 10).await, LogPage::default());
    assert!(page(&scope, EVENTS.key(1), 1, 10).await.is_reset);
    assert_eq!(end_of(context, EVENTS.key(1)).await, Reply::Int(-2));
}

/// A transaction sees what it appends with a number, together with what else it writes.
pub async fn a_transaction_sees_its_own_log(context: &Context) {
    append(&context.scope(), EVENTS.key(1), numbered_texts(1..=3)).await.expect("a transaction");
    let transaction = move |tx: &mut Tx<'_, World>| {
        let before = tx.log_last(&EVENTS.key(1))?.sequence;
        tx.del(&EVENTS.key(1))?;
        tx.append_numbered(&EVENTS.key(1), &"a".to_owned())?;
        let second = tx.append_numbered(&EVENTS.key(1), &"b".to_owned())?;
        let last = tx.log_last(&EVENTS.key(1))?.sequence;
        Ok::<_, Error>((before, second, last, tx.log_after(&EVENTS.key(1), 1, 10)?))
    };
    let (before, second, last, log) = context.scope().transact(transaction).await.expect("a transaction");
    assert_eq!((before, second, last), (3, 2, 2));
    assert_eq!((sequences(&log), texts(&log), log.missed), (vec![2], vec!["b".to_owned()], 0));
    let aborted: Result<()> = context
        .transaction(move |tx| {
            tx.del(&EVENTS.key(1))?;
            Err(Error::Closed)
        })
        .await;
    assert_eq!(aborted, Err(Error::Closed));
    append(&context.scope(), OUTBOX.key(1), numbered_texts(1..=OUTBOX_MAX as u64))
        .await
        .expect("a transaction");
    let room = |tx: &mut Tx<'_, World>| {
        tx.log_trim(&OUTBOX.key(1), OUTBOX_MAX as u64)?;
        tx.append(&OUTBOX.key(1), &"room again".to_owned())
    };
    context.transaction(room).await.expect("a transaction that trims has room for its own entry");
    let mixed = |tx: &mut Tx<'_, World>| {
        tx.append(&EVENTS.key(1), &"d".to_owned())?;
        let numbered = tx.append_numbered(&EVENTS.key(1), &"c".to_owned())?;
        Ok::<_, Error>((numbered, tx.log_last(&EVENTS.key(1))?.sequence))
    };
    assert_eq!(
        context.transaction(mixed).await,
        Ok((3, 3)),
        "what is appended blindly comes with the commit"
    );
    let log = page(&context.scope(), EVENTS.key(1), 0, 10).await;
    assert_eq!(texts(&log), ["a", "b", "c", "d"]);
}

/// Blind and numbered entries at once, of two processes: a log that refuses has every entry that was answered.
pub async fn a_log_that_refuses_drops_nothing(context: &Context) {
    let tasks = (0..12).map(|n| {
        let scope = if n % 2 == 0 { context.scope() } else { context.other_scope() };
        tokio::spawn(async move {
            scope
                .transact(move |tx| match n % 3 {
                    0 => tx.append_numbered(&OUTBOX.key(3), &"numbered".to_owned()).map(|_| ()),
                    _ => tx.append(&OUTBOX.key(3), &"blind".to_owned()),
                })
                .await
        })
    });
    let mut answered = 0;
    for task in tasks.collect::<Vec<_>>() {
        match task.await.expect("no panic") {
            Ok(()) => answered += 1,
            Err(error) => assert!(matches!(error, Error::LogFull { .. }), "{error:?}"),
        }
    }
    assert_eq!(answered, OUTBOX_MAX);
    assert_eq!(sequences(&page(&context.scope(), OUTBOX.key(3), 0, 10).await), [1, 2, 3]);
    let both = |tx: &mut Tx<'_, World>| {
        tx.append(&OUTBOX.key(4), &"blind".to_owned())?;
        (0..OUTBOX_MAX)
            .try_for_each(|_| tx.append_numbered(&OUTBOX.key(4), &"numbered".to_owned()).map(|_| ()))
    };
    let refused = context.transaction(both).await;
    assert!(matches!(refused, Err(Error::LogFull { .. })), "{refused:?}");
}

/// A deadline that has passed would remove the whole log: it is refused, as that of any write.
pub async fn a_passed_deadline_of_an_entry_is_refused(context: &Context) {
    let entry = |tx: &mut Tx<'_, World>, after_ms: i64| {
        let until = tx.now() + after_ms;
        tx.append_until(&ROOM_LOG.key(3), &"event".to_owned(), until)
    };
    context.transaction(move |tx| entry(tx, 60_000)).await.expect("a transaction");
    let refused = context.transaction(move |tx| entry(tx, 0)).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "deadline", .. })), "{refused:?}");
    assert_eq!(page(&context.scope(), ROOM_LOG.key(3), 0, 10).await.last, 1);
}

/// Numbered appends of many transactions and two processes: each gets a sequence of its own, without gaps.
pub async fn numbered_appends_return_their_sequence(context: &Context) {
    let tasks = (0..8).map(|n| {
        let scope = if n % 2 == 0 { context.scope() } else { context.other_scope() };
        tokio::spawn(async move {
            let mut answer = Vec::new();
            for _ in 0..10 {
                let body = |tx: &mut Tx<'_, World>| tx.append_numbered(&RECENT.key(1), &"e".to_owned());
                answer.push(scope.transact(body).await.expect("appends settle"));
            }
            answer
        })
    });
    let mut all = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        all.extend(task.await.expect("no task panics"));
    }
    all.sort_unstable();
    assert_eq!(all, (1..=80).collect::<Vec<u64>>());
    assert_eq!(sequences(&page(&context.scope(), RECENT.key(1), 0, 10).await), [77, 78, 79, 80]);
}

/// What external clients write into a log: an event that does not decode stands alone, and so does an element at an end
/// that is not an entry; another type is named.
pub async fn corrupt_logs(context: &Context) {
    let scope = context.scope();
    let number = |tx: &mut Tx<'_, World>| (1..=3).try_for_each(|n| tx.append(&NUMBERS.key(1), &n));
    scope.transact(number).await.expect("a transaction");
    let raw = context.raw(&NUMBERS.key(1));
    context.plant(&NUMBERS.key(1), rpush(&["4:00000000:four"])).await;
    scope.transact(|tx| tx.append(&NUMBERS.key(1), &5)).await.expect("the last number is known");
    let log = scope.log_after(&NUMBERS.key(1), 2, 10).await.expect("a page");
    let events: Vec<_> = log.entries.iter().map(|entry| entry.event.clone().ok()).collect();
    assert_eq!((sequences(&log), events), (vec![3, 4, 5], vec![Some(3), None, Some(5)]));
    let error = log.entries[1].event.clone().expect_err("not a number").to_string();
    assert!(error.contains("(family NUMBERS)") && error.contains("log:c:"), "{error}");

    context.plant(&NUMBERS.key(1), rpush(&["6:00000000:6", "strange"])).await;
    let last = scope.log_last(&NUMBERS.key(1)).await.expect("the last number is known");
    assert_eq!((last.sequence, last.mark), (7, None));
    assert_eq!(readable(context, 1, 5).await, [(6, true), (7, false)]);
    scope.transact(|tx| tx.append(&NUMBERS.key(1), &8)).await.expect("the last number is known");
    context.plant(&NUMBERS.key(1), rpush(&["9:0000000z:9"])).await;
    let numbered = scope.transact(|tx| tx.append_numbered(&NUMBERS.key(1), &10)).await;
    assert_eq!(numbered, Ok(10));
    let expected = [(6, true), (7, false), (8, true), (9, false), (10, true)];
    assert_eq!(readable(context, 1, 5).await, expected);

    context.put(&raw, Write::Del).await;
    context.put(&raw, set("text")).await;
    for refused in [
        scope.transact(|tx| tx.append(&NUMBERS.key(1), &1)).await,
        scope.transact(|tx| tx.append_numbered(&NUMBERS.key(1), &1)).await.map(|_| ()),
        scope.log_after(&NUMBERS.key(1), 0, 10).await.map(|_| ()),
    ] {
        let Err(Error::WrongType { key, .. }) = &refused else { panic!("{refused:?}") };
        assert!(key.contains("(family NUMBERS)"), "{key}");
    }
}

/// Entries after a sequence, and whether each can be read.
async fn readable(context: &Context, log: u32, after: u64) -> Vec<(u64, bool)> {
    let (mut found, mut after) = (Vec::new(), after);
    loop {
        let page = context.scope().log_after(&NUMBERS.key(log), after, 10).await.expect("a page");
        found.extend(page.entries.iter().map(|entry| (entry.sequence, entry.event.is_ok())));
        match page.entries.last().filter(|last| last.sequence < page.last) {
            Some(last) => after = last.sequence,
            None => return found,
        }
    }
}

/// An external client overwrote elements at the ends of a log: it is read, trimmed and appended to all the same.
pub async fn overwritten_ends(context: &Context) {
    let scope = context.scope();
    let log = || NUMBERS.key(1);
    scope.transact(move |tx| (1..=6).try_for_each(|n| tx.append(&log(), &n))).await.expect("a transaction");
    let before = scope.log_after(&log(), 0, 10).await.expect("a page");
    for place in [0, -1] {
        context.plant(&log(), Write::LSet(place, "odd".into())).await;
    }
    let all = [(1, false), (2, true), (3, true), (4, true), (5, true), (6, false)];
    assert_eq!(readable(context, 1, 0).await, all);
    let page = scope.log_after(&log(), before.entries[3].position(), 1).await.expect("a page");
    assert_eq!((sequences(&page), page.last, page.missed, page.is_reset), (vec![5], 6, 0, false));
    let raw = scope.log_after_encoded(&log(), 5, 10).await.expect("a page");
    assert_eq!((raw.entries[0].mark, raw.entries[0].event.clone()), (None, Ok("odd".into())));
    scope.log_trim(&log(), before.entries[2].position()).await.expect("a trim");
    assert_eq!(readable(context, 1, 0).await, all[2..]);
    // Both ends again, and elements beside them; no reply holds the last one.
    for place in [0, -1] {
        context.plant(&log(), Write::LSet(place, "odd".into())).await;
    }
    context.plant(&log(), rpush(&["odder", &"x".repeat(2_000_000)])).await;
    context.plant(&log(), Write::LPush(vec!["odd".into()])).await;
    assert_eq!(scope.log_last(&log()).await.map(|last| last.sequence), Ok(8));
    scope.transact(move |tx| tx.append(&log(), &9)).await.expect("a transaction");
    let expected =
        [(2, false), (3, false), (4, true), (5, true), (6, false), (7, false), (8, false), (9, true)];
    assert_eq!(readable(context, 1, 0).await, expected);
    scope.log_trim(&log(), before.entries[4].position()).await.expect("a trim");
    assert_eq!(readable(context, 1, 0).await, expected[3..]);
    assert_eq!(scope.transact(move |tx| tx.append_numbered(&log(), &10)).await, Ok(10));
    let last = scope.log_last(&log()).await.expect("a number");
    scope.log_trim(&log(), last).await.expect("a trim");
    assert_eq!(readable(context, 1, 0).await, [(10, true)]);
}

/// No element of a log is an entry any more: its numbers are lost, and those of new entries are greater all the same.
pub async fn overwritten_logs(context: &Context) {
    let scope = context.scope();
    for (number, count) in [(1, 1), (2, 120)] {
        let log = move || NUMBERS.key(number);
        scope.transact(move |tx| (1..=count).try_for_each(|n| tx.append(&log(), &n))).await.expect("entries");
        for place in 0..count {
            context.plant(&log(), Write::LSet(place, "odd".into())).await;
        }
        let page = scope.log_after(&log(), count as u64, 10).await.expect("a page");
        assert_eq!((page.entries.len(), page.last, page.is_reset), (0, 0, true));
        assert_eq!(scope.log_last(&log()).await, Ok(LogPosition::START));
        scope.log_trim(&log(), 1).await.expect("nothing to trim");
        scope.transact(move |tx| tx.append(&log(), &7)).await.expect("a transaction");
        let last = scope.log_last(&log()).await.expect("a number").sequence;
        assert!(last > count as u64 + 1, "{last}");
        assert_eq!(scope.transact(move |tx| tx.append_numbered(&log(), &8)).await, Ok(last + 1));
        let found = readable(context, number, last - 2).await;
        assert_eq!(found, [(last - 1, false), (last, true), (last + 1, true)]);
        let page = scope.log_after(&log(), 0, 1).await.expect("a page");
        assert_eq!((page.entries[0].sequence, page.last), (last - count as u64, last + 1));
        scope.log_trim(&log(), last).await.expect("a trim");
        assert_eq!(readable(context, number, 0).await, [(last, true), (last + 1, true)]);
    }
    // In one transaction with a trim, where entries are numbered as they are read.
    let log = || NUMBERS.key(1);
    for place in [0, 1] {
        context.plant(&log(), Write::LSet(place, "odd".into())).await;
    }
    let body = move |tx: &mut Tx<'_, World>| {
        tx.append(&log(), &9)?;
        tx.log_trim(&log(), u64::MAX >> 1)?;
        tx.append(&log(), &10)
    };
    scope.transact(body).await.expect("a transaction");
    let page = scope.log_after(&log(), 0, 10).await.expect("a page");
    let events: Vec<_> = page.entries.iter().map(|entry| entry.event.clone().ok()).collect();
    assert_eq!(events, [Some(9), Some(10)]);
}

/// Transactions that append beside one that removes the log and the state: a later one finds no state
/// and appends nothing, so that nothing is left; and a reader never sees a state without the entry that
/// speaks of it.
pub async fn a_removal_beside_appends_leaves_nothing(context: &Context) {
    for round in 0..20 {
        let (key, until) = (context.fresh(), context.far(0).await);
        let log = move || ROOM_LOG.key(round);
        let begun = key.clone();
        let begin = move |tx: &mut Tx<'_, World>| {
            tx.raw_write(begun.clone(), set_at("1", until))?;
            tx.append_until(&log(), &"1".to_owned(), until)
        };
        context.transaction(begin).await.expect("a transaction");
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let scope = if n % 2 == 0 { context.scope() } else { context.other_scope() };
                let key = key.clone();
                tokio::spawn(async move {
                    for _ in 0..4 {
                        let (key, reader) = (key.clone(), n == 7);
                        let transaction = move |tx: &mut Tx<'_, World>| {
                            let Reply::Blob(count) = tx.raw_read(&key, Read::Get)? else { return Ok(()) };
                            let count: u64 = std::str::from_utf8(&count).unwrap_or("").parse().unwrap_or(0);
                            let last = tx.log_last(&log())?.sequence;
                            if last != count {
                                let problem = format!("{last} entries of {count}");
                                return Err(Error::Invalid { what: "log", problem });
                            }
                            if !reader {
                                let next = (count + 1).to_string();
                                tx.raw_write(key.clone(), set_at(&next, until))?;
                                tx.append_numbered_until(&log(), &next, until)?;
                            }
                            Ok::<_, Error>(())
                        };
                        scope.transact(transaction).await.expect("state and log agree");
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        let dropped = key.clone();
        let drop_all = move |tx: &mut Tx<'_, World>| {
            tx.raw_write(dropped.clone(), Write::Del)?;
            tx.del(&log())
        };
        tokio::task::yield_now().await;
        context.transaction(drop_all).await.expect("a transaction");
        for task in tasks {
            task.await.expect("no task panics");
        }
        assert_eq!(page(&context.scope(), log(), 0, 10).await, LogPage::default());
        assert_eq!(end_of(context, log()).await, Reply::Int(-2));
    }
}
