//! The partition's log: in the same commit, without holes, bounded, paged, trimmed.

use crate::builders::*;
use crate::context::Context;
use crate::families::World;
use emberkeep_hot::command::{Overflow, Read, Reply, Write};
use emberkeep_hot::store::{LogPage, log_keys};
use emberkeep_hot::{Error, Result, Scope, Tx};

async fn record(scope: &Scope<World>, entry: String, max: usize, overflow: Overflow) -> Result<()> {
    scope.transact(move |tx| tx.record_bounded(entry.clone(), max, overflow)).await
}

async fn page(scope: &Scope<World>, after: u64, limit: usize) -> LogPage {
    scope.log_after(after, limit).await.expect("a log can be read")
}

fn sequences(page: &LogPage) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.sequence).collect()
}

fn texts(page: &LogPage) -> Vec<String> {
    page.entries.iter().map(|entry| String::from_utf8_lossy(&entry.entry).into_owned()).collect()
}

/// Entries are there exactly if their transaction committed, in the order of the body.
pub async fn entries_come_with_their_transaction(context: &Context) {
    let scope = context.scope();
    assert_eq!(page(&scope, 0, 10).await, LogPage::default());
    let key = context.fresh();
    let written = key.clone();
    let body = move |tx: &mut Tx<'_, World>| {
        tx.record("one")?;
        tx.raw_write(written.clone(), set("x"))?;
        tx.record("two: with: colons")?;
        tx.record(vec![0u8, 255, b'\n'])
    };
    context.transaction(body).await.expect("a transaction");
    let aborted: Result<()> = context
        .transaction(|tx| {
            tx.record("never")?;
            Err(Error::Closed)
        })
        .await;
    assert_eq!(aborted, Err(Error::Closed));
    record(&scope, "four".into(), 100, Overflow::Refuse).await.expect("a transaction");
    let log = page(&scope, 0, 10).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![1, 2, 3, 4], 4, 0));
    assert_eq!(log.entries[1].entry, "two: with: colons");
    assert_eq!(log.entries[2].entry, &b"\x00\xff\n"[..]);
    assert_eq!(log.entries[3].entry, "four");
    assert_eq!(page(&context.scope_beside("log"), 0, 10).await, LogPage::default(), "a log per partition");
}

/// A transaction whose writes are refused records nothing.
pub async fn refused_transactions_record_nothing(context: &Context) {
    let key = context.fresh();
    context.put(&key, set("text")).await;
    let body = move |tx: &mut Tx<'_, World>| {
        tx.record("never")?;
        tx.raw_write(key.clone(), sadd(&["a"]))
    };
    assert!(matches!(context.transaction(body).await, Err(Error::WrongType { .. })));
    assert_eq!(page(&context.scope(), 0, 10).await.last, 0);
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
                    tx.record(entry.clone())
                };
                scope.transact(body).await.expect("writers settle");
                tokio::task::yield_now().await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no writer panics");
    }
    let log = page(&context.scope(), 0, 1_000).await;
    assert_eq!(sequences(&log), (1..=(WRITERS * EACH) as u64).collect::<Vec<_>>());
    assert_eq!(context.read(&context.key("counted"), Read::Get).await, blob(&(WRITERS * EACH).to_string()));
    let texts = texts(&log);
    for writer in 0..WRITERS {
        let own: Vec<_> =
            texts.iter().filter(|text| text.starts_with(&format!("{writer}:"))).cloned().collect();
        assert_eq!(own, (0..EACH).map(|n| format!("{writer}:{n}")).collect::<Vec<_>>());
    }
}

/// Writers count and record in one transaction, readers compare the count with the log in one transaction:
/// it is one moment, whichever transactions share a commit.
pub async fn state_and_log_are_of_one_moment(context: &Context) {
    const PAIRS: usize = 8;
    const EACH: u64 = 40;
    let mut tasks = Vec::new();
    for _ in 0..PAIRS {
        let (scope, counter) = (context.scope(), context.key("told"));
        tasks.push(tokio::spawn(async move {
            for _ in 0..EACH {
                let counter = counter.clone();
                let body = move |tx: &mut Tx<'_, World>| {
                    tx.raw_write(counter.clone(), Write::IncrBy(1))?;
                    tx.record("told")
                };
                scope.transact(body).await.expect("writers settle");
            }
        }));
        let (scope, counter) = (context.scope(), context.key("told"));
        tasks.push(tokio::spawn(async move {
            for _ in 0..EACH {
                let counter = counter.clone();
                let body = move |tx: &mut Tx<'_, World>| {
                    let count = match tx.raw_read(&counter, Read::Get)? {
                        Reply::Blob(text) => String::from_utf8_lossy(&text).parse().unwrap_or(u64::MAX),
                        _ => 0,
                    };
                    Ok::<_, Error>((count, tx.log_last()?))
                };
                let (count, last) = scope.transact(body).await.expect("readers settle");
                assert_eq!(count, last, "the state and its log are of two moments");
            }
        }));
    }
    for task in tasks {
        task.await.expect("nobody panics");
    }
    assert_eq!(page(&context.scope(), 0, 1).await.last, PAIRS as u64 * EACH);
}

/// A full log drops its oldest entries, and who asks for them is told how many are missing.
pub async fn a_full_log_drops_and_tells(context: &Context) {
    let scope = context.scope();
    for n in 1..=10 {
        record(&scope, format!("e{n}"), 4, Overflow::DropOldest).await.expect("a transaction");
    }
    let log = page(&scope, 0, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![7, 8, 9, 10], 10, 6));
    let log = page(&scope, 3, 2).await;
    assert_eq!((texts(&log), log.last, log.missed), (vec!["e7".to_owned(), "e8".to_owned()], 10, 3));
    let log = page(&scope, 7, 100).await;
    assert_eq!((sequences(&log), log.missed), (vec![8, 9, 10], 0));
    let many = context.transaction(|tx| {
        (0..10).try_for_each(|n| tx.record_bounded(format!("m{n}"), 4, Overflow::DropOldest))
    });
    many.await.expect("a transaction");
    let log = page(&scope, 10, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![17, 18, 19, 20], 20, 6));
}

/// A bound of 0 is refused when the entry is made, and nothing is written.
pub async fn a_bound_of_zero_is_refused(context: &Context) {
    let scope = context.scope();
    for overflow in [Overflow::DropOldest, Overflow::Refuse] {
        let refused = record(&scope, "never".into(), 0, overflow).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "log bound", .. })), "{refused:?}");
    }
    let until = context.transaction(|tx| tx.record_until("never", 0, i64::from(u32::MAX) * 1_000)).await;
    assert!(matches!(until, Err(Error::Invalid { what: "log bound", .. })), "{until:?}");
    assert_eq!(page(&scope, 0, 10).await, LogPage::default());
}

/// A log that may drop nothing refuses the whole transaction when it is full, and takes it again when it was
/// drained.
pub async fn a_full_log_refuses(context: &Context) {
    let (scope, key) = (context.scope(), context.fresh());
    let transaction = |entries: usize| {
        let key = key.clone();
        context.transaction(move |tx| {
            tx.raw_write(key.clone(), Write::IncrBy(1))?;
            (0..entries).try_for_each(|n| tx.record_bounded(format!("{n}"), 3, Overflow::Refuse))
        })
    };
    transaction(2).await.expect("there is room");
    let told = transaction(2).await;
    assert!(matches!(told, Err(Error::LogFull { max: 3, .. })), "{told:?}");
    transaction(1).await.expect("there is room for one");
    assert!(matches!(transaction(1).await, Err(Error::LogFull { .. })));
    assert_eq!(context.read(&key, Read::Get).await, blob("2"), "refused transactions wrote nothing");
    assert_eq!(page(&scope, 0, 10).await.last, 3);
    scope.log_trim(2).await.expect("a transaction");
    transaction(2).await.expect("there is room again");
    let log = page(&scope, 2, 10).await;
    assert_eq!((sequences(&log), log.missed), (vec![3, 4, 5], 0));
}

/// Pages follow each other without overlap; places beyond the end are answered with nothing.
pub async fn pages(context: &Context) {
    let scope = context.scope();
    context
        .transaction(|tx| (1..=25).try_for_each(|n| tx.record(format!("e{n}"))))
        .await
        .expect("a transaction");
    let (mut place, mut all) = (0, Vec::new());
    loop {
        let log = page(&scope, place, 10).await;
        assert_eq!((log.last, log.missed), (25, 0));
        let Some(last) = log.entries.last() else { break };
        place = last.sequence;
        all.extend(texts(&log));
    }
    assert_eq!(all, (1..=25).map(|n| format!("e{n}")).collect::<Vec<_>>());
    for beyond in [25, 26, 1_000, u64::MAX - 1, u64::MAX] {
        let log = page(&scope, beyond, 10).await;
        assert_eq!(log, LogPage { entries: vec![], last: 25, missed: 0 }, "after {beyond}");
    }
    assert_eq!(sequences(&page(&scope, 24, 0).await), [25], "a page holds at least one");
    assert_eq!(page(&scope, 0, usize::MAX).await.entries.len(), 25);
}

/// Trimming removes up to a sequence, twice as well as once, and the next entry goes on counting.
pub async fn trims(context: &Context) {
    let scope = context.scope();
    scope.log_trim(5).await.expect("nothing to trim");
    context
        .transaction(|tx| (1..=10).try_for_each(|n| tx.record(format!("e{n}"))))
        .await
        .expect("a transaction");
    for through in [0, 4, 2, 4] {
        scope.log_trim(through).await.expect("a transaction");
    }
    let log = page(&scope, 0, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), ((5..=10).collect(), 10, 4));
    for through in [u64::MAX, 10, 99] {
        scope.log_trim(through).await.expect("a transaction");
        let log = page(&scope, 8, 100).await;
        assert_eq!((sequences(&log), log.last, log.missed), (vec![], 10, 2), "trimmed through {through}");
    }
    record(&scope, "e11".into(), 10, Overflow::DropOldest).await.expect("a transaction");
    let log = page(&scope, 10, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![11], 11, 0));
}

/// Whoever drains a full log while others write to it loses nothing: in either order the same entries stay.
pub async fn trimming_beside_recorders(context: &Context) {
    let scope = context.scope();
    context
        .transaction(|tx| (1..=10).try_for_each(|n| tx.record(format!("e{n}"))))
        .await
        .expect("a transaction");
    for round in 0..50 {
        let first = round * 5 + 1;
        let (trimmed, recorded) = tokio::join!(scope.log_trim(first + 4), async {
            for n in 0..5 {
                record(&scope, format!("e{}", first + 10 + n), 100, Overflow::DropOldest).await?;
            }
            Ok::<_, emberkeep_hot::Error>(())
        });
        trimmed.and(recorded).expect("both transactions");
        let log = page(&scope, first + 4, 100).await;
        assert_eq!((sequences(&log), log.missed), ((first + 5..=first + 14).collect(), 0), "round {round}");
    }
    for round in 0..50 {
        let last = page(&scope, u64::MAX, 1).await.last;
        // The log is full: the record drops the oldest, which the trim was going to remove anyway.
        let (recorded, trimmed) =
            tokio::join!(record(&scope, "full".into(), 10, Overflow::DropOldest), scope.log_trim(last - 5));
        recorded.and(trimmed).expect("both transactions");
        let log = page(&scope, last - 5, 100).await;
        assert_eq!(
            (sequences(&log), log.missed),
            ((last - 4..=last + 1).collect(), 0),
            "full, round {round}"
        );
        context
            .transaction(|tx| (0..4).try_for_each(|_| tx.record("fill".to_owned())))
            .await
            .expect("the log is full again");
    }
}

/// The ends of a log's two keys.
async fn ends(context: &Context) -> (Reply, Reply) {
    let (list, counter) = log_keys(context.store().key_layout(), context.partition().as_bytes());
    (context.read(&list, Read::ExpireTime).await, context.read(&counter, Read::ExpireTime).await)
}

/// A log that was begun with an end keeps it through every entry, and moves it as a whole.
pub async fn a_log_with_an_end(context: &Context) {
    let (scope, until) = (context.scope(), context.far(0).await);
    scope.transact(move |tx| tx.begin_log("e1", until)).await.expect("a transaction");
    assert_eq!(ends(context).await, (Reply::Int(until), Reply::Int(until)));
    let recorded = scope.transact(move |tx| tx.record_until("e2", 10, until + 1)).await;
    assert_eq!(recorded, Ok(2));
    assert_eq!(ends(context).await, (Reply::Int(until + 1), Reply::Int(until + 1)));
    record(&scope, "e3".into(), 10, Overflow::DropOldest).await.expect("a transaction");
    assert_eq!(ends(context).await, (Reply::Int(until + 1), Reply::Int(until + 1)), "a plain entry keeps it");
    scope.transact(move |tx| tx.log_expire_at(until + 2)).await.expect("a transaction");
    assert_eq!(ends(context).await, (Reply::Int(until + 2), Reply::Int(until + 2)));
    let log = page(&scope, 0, 10).await;
    assert_eq!(
        (sequences(&log), log.last, texts(&log)),
        (vec![1, 2, 3], 3, vec!["e1".into(), "e2".into(), "e3".into()])
    );
}

/// A log that is begun again has nothing of the one before, and one that was dropped leaves no key.
pub async fn a_log_begins_again(context: &Context) {
    let (scope, until) = (context.scope(), context.far(0).await);
    context
        .transaction(|tx| (1..=3).try_for_each(|n| tx.record(format!("old{n}"))))
        .await
        .expect("a transaction");
    scope.transact(move |tx| tx.begin_log("new", until)).await.expect("a transaction");
    let log = page(&scope, 0, 10).await;
    assert_eq!((sequences(&log), texts(&log)), (vec![1], vec!["new".to_owned()]));
    scope.transact(|tx| tx.drop_log()).await.expect("a transaction");
    assert_eq!(page(&scope, 0, 10).await, LogPage::default());
    assert_eq!(ends(context).await, (Reply::Int(-2), Reply::Int(-2)));
    assert_eq!(scope.transact(move |tx| tx.record_until("first", 10, until)).await, Ok(1));
}

/// A transaction sees what it records with an end, together with what else it writes.
pub async fn a_transaction_sees_its_own_log(context: &Context) {
    let until = context.far(0).await;
    let transaction = move |tx: &mut Tx<'_, World>| {
        let before = tx.log_last()?;
        tx.begin_log("a", until)?;
        let second = tx.record_until("b", 10, until)?;
        Ok::<_, Error>((before, second, tx.log_last()?, tx.log_after(1, 10)?))
    };
    let (before, second, last, log) = context.scope().transact(transaction).await.expect("a transaction");
    assert_eq!((before, second, last), (0, 2, 2));
    assert_eq!((sequences(&log), texts(&log), log.missed), (vec![2], vec!["b".to_owned()], 0));
    let aborted: Result<()> = context
        .transaction(move |tx| {
            tx.drop_log()?;
            Err(Error::Closed)
        })
        .await;
    assert_eq!(aborted, Err(Error::Closed));
    assert_eq!(page(&context.scope(), 0, 10).await.last, 2, "a refused transaction drops nothing");
}

/// Beyond its bound a log with an end drops its oldest entries and goes on counting.
pub async fn lasting_logs_drop_the_oldest(context: &Context) {
    let (scope, until) = (context.scope(), context.far(0).await);
    for n in 1..=9 {
        let sequence = scope.transact(move |tx| tx.record_until(format!("e{n}"), 4, until)).await;
        assert_eq!(sequence, Ok(n));
    }
    let log = page(&scope, 0, 100).await;
    assert_eq!((sequences(&log), log.last, log.missed), (vec![6, 7, 8, 9], 9, 5));
    assert_eq!(ends(context).await.0, Reply::Int(until));
}

/// Transactions that record beside one that drops the log and the state: a later one finds no state
/// and records nothing, so that nothing is left; and a reader never sees a state without the entry that
/// speaks of it.
pub async fn a_drop_beside_recorders_leaves_nothing(context: &Context) {
    for _ in 0..20 {
        let (key, until) = (context.fresh(), context.far(0).await);
        let begun = key.clone();
        let begin = move |tx: &mut Tx<'_, World>| {
            tx.raw_write(begun.clone(), set_at("1", until))?;
            tx.begin_log("1", until)
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
                            let last = tx.log_last()?;
                            if last != count {
                                let problem = format!("{last} entries of {count}");
                                return Err(Error::Invalid { what: "log", problem });
                            }
                            if !reader {
                                let next = (count + 1).to_string();
                                tx.raw_write(key.clone(), set_at(&next, until))?;
                                tx.record_until(next, 100, until)?;
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
            tx.drop_log()
        };
        tokio::task::yield_now().await;
        context.transaction(drop_all).await.expect("a transaction");
        for task in tasks {
            task.await.expect("no recorder panics");
        }
        assert_eq!(page(&context.scope(), 0, 10).await, LogPage::default());
        assert_eq!(ends(context).await, (Reply::Int(-2), Reply::Int(-2)));
    }
}
