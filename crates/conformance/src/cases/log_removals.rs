//! Entries and removals of a log in one transaction: they count in the order of the body.

use crate::context::Context;
use crate::families::*;
use emberkeep_hot::command::{Read, Reply};
use emberkeep_hot::{Error, Result, Tx};

const FULL: u64 = OUTBOX_MAX as u64;

/// One thing that a body does to the outbox.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append,
    Numbered,
    Trim,
    Del,
}

/// How many entries there are, what a body does, and the sequences that are left.
type Case = (u64, &'static [Step], Result<Vec<u64>>);

fn make(tx: &mut Tx<'_, World>, log: u32, steps: &[Step]) -> Result<()> {
    for step in steps {
        match step {
            Step::Append => tx.append(&OUTBOX.key(log), &"x".to_owned())?,
            Step::Numbered => tx.append_numbered(&OUTBOX.key(log), &"x".to_owned()).map(drop)?,
            Step::Trim => tx.log_trim(&OUTBOX.key(log), u64::MAX >> 1)?,
            Step::Del => tx.del(&OUTBOX.key(log))?,
        }
    }
    Ok(())
}

/// The sequences that are left, or the error.
async fn outcome(context: &Context, log: u32, entries: u64, steps: &'static [Step]) -> Result<Vec<u64>> {
    let scope = context.scope();
    let fill = move |tx: &mut Tx<'_, World>| {
        (0..entries).try_for_each(|_| tx.append(&OUTBOX.key(log), &"old".to_owned()))
    };
    scope.transact(fill).await.expect("there is room");
    scope.transact(move |tx| make(tx, log, steps)).await?;
    let page = scope.log_after(&OUTBOX.key(log), 0, 10).await.expect("a page");
    Ok(page.entries.iter().map(|entry| entry.sequence).collect())
}

/// What a log that refuses above its bound is left with.
pub async fn removals_and_entries_in_the_order_of_the_body(context: &Context) {
    use Step::*;
    let full = || Err(Error::LogFull { key: String::new(), max: OUTBOX_MAX });
    let cases: [Case; 17] = [
        // Of a log with room.
        (1, &[Append, Del], Ok(vec![])),
        (1, &[Numbered, Del], Ok(vec![])),
        (1, &[Append, Trim], Ok(vec![2])),
        (1, &[Append, Append, Trim, Append], Ok(vec![3, 4])),
        (1, &[Del, Append], Ok(vec![1])),
        (1, &[Append, Del, Append], Ok(vec![1])),
        (0, &[Append, Del], Ok(vec![])),
        (0, &[Append, Append, Append, Trim], Ok(vec![3])),
        // A full one refuses an entry, whatever would make room after it.
        (FULL, &[Append, Del], full()),
        (FULL, &[Append, Trim], full()),
        (FULL, &[Numbered, Del], full()),
        (FULL, &[Numbered, Trim], full()),
        (FULL - 1, &[Append, Append, Del], full()),
        // What makes room before it does.
        (FULL, &[Del, Append], Ok(vec![1])),
        (FULL, &[Trim, Append], Ok(vec![FULL, FULL + 1])),
        (FULL, &[Trim, Numbered, Append], Ok(vec![FULL, FULL + 1, FULL + 2])),
        (FULL, &[Trim, Append, Append, Append], full()),
    ];
    for (log, (entries, steps, expected)) in (1..).zip(cases) {
        let found = outcome(context, log, entries, steps).await;
        match (&found, &expected) {
            (Err(Error::LogFull { max, .. }), Err(Error::LogFull { max: expected, .. })) => {
                assert_eq!(max, expected, "{entries} entries, {steps:?}");
                let last = context.scope().log_last(&OUTBOX.key(log)).await.map(|last| last.sequence);
                assert_eq!(last, Ok(entries), "{steps:?}: nothing was written");
            }
            _ => assert_eq!(found, expected, "{entries} entries, {steps:?}"),
        }
    }
}

/// A part that is undone leaves the entries from before it, also if it removed their log.
pub async fn a_removal_that_is_undone_leaves_the_entries(context: &Context) {
    let body = |tx: &mut Tx<'_, World>| {
        tx.append(&OUTBOX.key(1), &"stays".to_owned())?;
        let undone: Result<(), ()> = tx.attempt(|tx| {
            tx.del(&OUTBOX.key(1))?;
            Ok(Err(()))
        })?;
        Ok::<_, Error>(undone)
    };
    assert_eq!(context.scope().transact(body).await, Ok(Err(())));
    let page = context.scope().log_after(&OUTBOX.key(1), 0, 10).await.expect("a page");
    let texts: Vec<_> = page.entries.iter().map(|entry| entry.event.clone()).collect();
    assert_eq!(texts, [Ok("stays".to_owned())]);
}

/// A log that drops its oldest entries, and the deadline of one that is begun again.
pub async fn removals_of_a_log_that_drops(context: &Context) {
    let until = context.far(0).await;
    let body = move |tx: &mut Tx<'_, World>| {
        for n in 0..RECENT_MAX + 2 {
            tx.append_until(&ROOM_LOG.key(1), &n.to_string(), until)?;
        }
        tx.log_trim(&ROOM_LOG.key(1), 4)
    };
    context.scope().transact(body).await.expect("a transaction");
    let page = context.scope().log_after(&ROOM_LOG.key(1), 0, 10).await.expect("a page");
    let sequences: Vec<u64> = page.entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequences, [4, 5, 6]);
    let deadline = move |tx: &mut Tx<'_, World>| {
        let key = tx.raw_name(&ROOM_LOG.key(1));
        tx.raw_read(&key, Read::ExpireTime)
    };
    assert_eq!(context.scope().transact(deadline).await, Ok(Reply::Int(until)));
}

/// A deadline that the body sets after an entry is the one that stays, also of a log that did not exist.
pub async fn a_deadline_after_an_entry(context: &Context) {
    let (soon, later) = (context.far(0).await, context.far(0).await + 60_000);
    let body = move |tx: &mut Tx<'_, World>| {
        tx.append_until(&ROOM_LOG.key(1), &"x".to_owned(), soon)?;
        tx.expire_at(&ROOM_LOG.key(1), later)
    };
    for _ in 0..2 {
        context.scope().transact(body).await.expect("a transaction");
        let deadline = context.scope().transact(|tx| tx.deadline(&ROOM_LOG.key(1))).await;
        assert_eq!(deadline, Ok(Some(later)));
    }
}
