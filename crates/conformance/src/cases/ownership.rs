//! Scopes that act as a service: what they may write, what is refused, and that a refusal writes nothing.

use crate::context::Context;
use crate::families::*;
use emberkeep_hot::command::{Read, Reply, Write};
use emberkeep_hot::store::LogPosition;
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::{Family, service};
use std::time::Duration;

service! {
    /// The owner of every family of the suite.
    pub SUITE = "suite" {}
}
service! {
    /// A service that owns nothing.
    pub GUEST = "guest" {
        /// Leaves a note, and gold.
        VISIT = "visit": [NOTE, COUNT, SHEET["gold", "gifts"], SEEN_FIELDS["gold"]],
        /// Tidies up.
        CLEAN = "clean": all,
    }
}
service! {
    /// A service with a grant of its own.
    pub RIVAL = "rival" {
        /// Takes notes.
        SPY = "spy": [TOKEN, MONSTER],
    }
}

/// Something that a body writes.
type Verb = fn(&mut Tx<'_, World>) -> Result<()>;

/// Every operation of [`Tx`] that writes to a key of a family. None of these families is granted to a visit as a
/// whole.
const VERBS: &[(&str, Verb)] = &[
    ("put", |tx| tx.put(&RATE.key(1), &1.5)),
    // Of a family whose key expires: the deadline is a write of its own.
    ("put_if_greater", |tx| tx.put_if_greater(&LEASE.key(1), &1)),
    ("put_for", |tx| tx.put_for(&TOKEN.key(1), &text("t"), Duration::from_secs(60))),
    ("put_until", |tx| {
        let until = tx.now() + 60_000;
        tx.put_until(&TOKEN.key(1), &text("t"), until)
    }),
    ("put_keep_ttl", |tx| tx.put_keep_ttl(&SEEN.key(1), &1)),
    ("incr_by", |tx| tx.incr_by(&LEASE.key(1), 1)),
    ("update", |tx| {
        // Made in the same body, so that there is something to update; the guest may write this one.
        tx.put(&COUNT.key(1), &1)?;
        tx.update(&COUNT.key(1), |count| *count += 1)?;
        tx.put(&OPEN.key(1), &true)
    }),
    ("del", |tx| tx.del(&RATE.key(1))),
    ("touch", |tx| tx.touch(&SEEN.key(1))),
    ("expire_at", |tx| {
        let until = tx.now() + 60_000;
        tx.expire_at(&TOKEN.key(1), until)
    }),
    ("hset", |tx| tx.hset(&SHEET.key(1), &text("level"), &2)),
    ("hset_many", |tx| tx.hset_many(&SHEET.key(1), [(&text("gold"), &1), (&text("level"), &2)])),
    ("hset_until", |tx| {
        let until = tx.now() + 60_000;
        tx.hset_until(&PLEDGE.key(1), &text("gold"), &1, until)
    }),
    ("hincr_by", |tx| tx.hincr_by(&SHEET.key(1), &text("level"), 1)),
    ("hdel", |tx| tx.hdel(&SHEET.key(1), &text("level"))),
    ("hdel_many", |tx| tx.hdel_many(&SHEET.key(1), [&text("gold"), &text("level")])),
    ("hdel_raw", |tx| tx.hdel_raw(&SHEET.key(1), "level")),
    ("sadd", |tx| tx.sadd(&CREW.key(1), &1)),
    ("sadd_many", |tx| tx.sadd_many(&CREW.key(1), &[1, 2])),
    ("sadd_until", |tx| {
        let until = tx.now() + 60_000;
        tx.sadd_until(&PARTY.key(1), &1, until)
    }),
    ("srem", |tx| tx.srem(&CREW.key(1), &1)),
    ("srem_many", |tx| tx.srem_many(&CREW.key(1), &[1, 2])),
    ("srem_raw", |tx| tx.srem_raw(&CREW.key(1), "1")),
    ("zadd", |tx| tx.zadd(&BOARD.key(1), &text("m"), 1.0)),
    ("zadd_many", |tx| tx.zadd_many(&BOARD.key(1), [(&text("m"), 1.0)])),
    ("zincr_by", |tx| tx.zincr_by(&BOARD.key(1), &text("m"), 1.0)),
    ("zrem", |tx| tx.zrem(&BOARD.key(1), &text("m"))),
    ("zrem_many", |tx| tx.zrem_many(&BOARD.key(1), [&text("m")])),
    ("zrem_raw", |tx| tx.zrem_raw(&BOARD.key(1), "m")),
    ("lpush", |tx| tx.lpush(&QUEUE.key(1), &text("e"))),
    ("rpush", |tx| tx.rpush(&QUEUE.key(1), &text("e"))),
    ("rpush_many", |tx| tx.rpush_many(&QUEUE.key(1), [&text("e")])),
    // Those of an absent element write nothing, so the list has one.
    ("lset", |tx| tx.lset(&QUEUE.key(9), 0, &text("e")).map(drop)),
    ("lpop", |tx| tx.lpop(&QUEUE.key(9)).map(drop)),
    ("rpop", |tx| tx.rpop(&QUEUE.key(9)).map(drop)),
    ("ltrim", |tx| tx.ltrim(&QUEUE.key(9), 1, -1)),
    ("append", |tx| tx.append(&EVENTS.key(1), &text("e"))),
    ("append_until", |tx| {
        let until = tx.now() + 60_000;
        tx.append_until(&ROOM_LOG.key(1), &text("e"), until)
    }),
    ("append_numbered", |tx| tx.append_numbered(&OUTBOX.key(1), &text("e")).map(drop)),
    ("append_numbered_until", |tx| {
        let until = tx.now() + 60_000;
        tx.append_numbered_until(&ROOM_LOG.key(1), &text("e"), until).map(drop)
    }),
    ("log_trim", |tx| tx.log_trim(&EVENTS.key(1), LogPosition::START)),
    ("publish", |tx| tx.publish(&NEWS.key(1), &text("n"))),
    ("raw_write_of", |tx| {
        let raw = tx.raw_name(&CREW.key(1));
        tx.raw_write_of(CREW::DECLARATION, raw, Write::Del)
    }),
];

fn text(text: &str) -> String {
    text.to_owned()
}

fn visit(context: &Context) -> Scope<World> {
    context.scope().acting_as(&GUEST).for_operation(&VISIT)
}

fn run<T, F>(scope: &Scope<World>, body: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Tx<'_, World>) -> Result<T> + Send + 'static,
{
    let scope = scope.clone();
    async move { scope.transact(body).await }
}

/// Whatever a body does to a family of another service is refused by the operation itself, and nothing of the
/// body is written.
pub async fn every_write_of_another_service_is_refused(context: &Context) {
    run(&context.scope(), |tx| tx.rpush(&QUEUE.key(9), &text("first"))).await.expect("no service is set");
    for (name, verb) in VERBS {
        let refused = run(&visit(context), move |tx| {
            tx.put(&NOTE.key(1), &text("granted"))?;
            verb(tx)
        });
        match refused.await {
            Err(Error::Forbidden { service: "guest", owner: "suite", .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(context.scope().get(&NOTE.key(1)).await, Ok(None), "{name}");
    }
    assert_eq!(context.scope().lrange(&QUEUE.key(9), 0, -1).await, Ok(vec![text("first")]));
}

/// The owner makes all of these writes, and so does a scope without a service.
pub async fn the_owner_writes_what_it_owns(context: &Context) {
    for (number, scope) in [context.scope(), context.scope().acting_as(&SUITE)].into_iter().enumerate() {
        let queued = run(&scope, |tx| tx.rpush_many(&QUEUE.key(9), [&text("a"), &text("b"), &text("c")]));
        queued.await.expect("a list of its own");
        for (name, verb) in VERBS {
            run(&scope, *verb).await.unwrap_or_else(|error| panic!("{name}, scope {number}: {error}"));
        }
    }
}

/// An error names service, family, owner and field.
pub async fn a_refusal_names_what_is_wrong(context: &Context) {
    let guest = context.scope().acting_as(&GUEST);
    let refused = guest.put(&NOTE.key(1), text("n")).await.expect_err("it is not the owner");
    let (service, owner) = ("guest", "suite");
    assert_eq!(refused, Error::Forbidden { service, family: "NOTE", owner, field: None });
    assert_eq!(
        refused.to_string(),
        "forbidden: the service guest may not write NOTE, which suite owns; nothing was written; \
         let suite do it, or run the operation with a grant (`Scope::for_operation`)"
    );
    let refused = run(&visit(context), |tx| tx.hset(&SHEET.key(1), &text("level"), &1)).await;
    let field = Some("level".into());
    assert_eq!(refused, Err(Error::Forbidden { service, family: "SHEET", owner, field }));
    assert!(!refused.expect_err("it was refused").is_transient(), "a retry is refused as well");
}

/// A grant counts in its operation only, and only for the service that has it.
pub async fn a_grant_is_of_one_operation(context: &Context) {
    let guest = context.scope().acting_as(&GUEST);
    let put = |tx: &mut Tx<'_, World>| tx.put(&NOTE.key(1), &text("n"));
    run(&guest, put).await.expect_err("no operation");
    run(&guest.clone().for_operation(&SPY), put).await.expect_err("the operation of another service");
    run(&guest.clone().for_operation(&VISIT), put).await.expect("the operation");
    // A function that names grants of several services does not take that of its caller away.
    run(&visit(context).for_operation(&SPY), put).await.expect("still the operation");
    let rival = visit(context).acting_as(&RIVAL);
    run(&rival, put).await.expect_err("a grant of the guest, and the rival acts");
    let spied = run(&rival.for_operation(&SPY), |tx| tx.put_until(&TOKEN.key(1), &text("t"), i64::MAX >> 20));
    spied.await.expect("its own operation");
    // The last one counts: a scope runs one operation.
    let cleaning = visit(context).for_operation(&CLEAN);
    for (name, verb) in VERBS {
        run(&cleaning, *verb).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    run(&cleaning.for_operation(&VISIT), |tx| tx.sadd(&CREW.key(1), &1))
        .await
        .expect_err("no longer cleaning");
}

/// A grant of fields covers these fields and nothing else of the key; the family's deadline comes with them.
pub async fn granted_fields_are_written_alone(context: &Context) {
    let (sheet, gold, gifts) = (SHEET.key(1), text("gold"), text("gifts"));
    run(&context.scope(), |tx| tx.hset(&SHEET.key(1), &text("level"), &9)).await.expect("no service is set");
    let granted = run(&visit(context), move |tx| {
        tx.hset(&sheet, &gold, &5)?;
        tx.hincr_by(&sheet, &gold, 2)?;
        tx.hset_many(&sheet, [(&gifts, &1)])?;
        tx.hdel(&sheet, &gifts)?;
        tx.hset(&SEEN_FIELDS.key(1), &gold, &1)
    });
    granted.await.expect("granted fields");
    let stored = context.scope().hgetall(&SHEET.key(1)).await;
    assert_eq!(stored, Ok(vec![(text("gold"), 7), (text("level"), 9)]));
    let verbs: [Verb; 3] = [
        |tx| tx.del(&SHEET.key(1)),
        |tx| tx.touch(&SEEN_FIELDS.key(1)),
        |tx| tx.hset_many(&SHEET.key(1), [(&text("gold"), &1), (&text("level"), &1)]),
    ];
    for verb in verbs {
        let refused = run(&visit(context), verb).await;
        assert!(matches!(refused, Err(Error::Forbidden { .. })), "{refused:?}");
    }
    let deadline = context.read(&context.raw(&SEEN_FIELDS.key(1)), Read::ExpireTime).await;
    assert!(matches!(deadline, Reply::Int(at) if at > 0), "{deadline:?}");
}

/// Plain writes of a scope are transactions of their own, and reads are not refused.
pub async fn plain_writes_are_checked_and_reads_are_not(context: &Context) {
    context.scope().put(&RATE.key(1), 1.5).await.expect("no service is set");
    let store = context.store().clone().acting_as(&GUEST);
    assert_eq!(store.service().map(|service| service.name), Some("guest"));
    let guest = store.scope(context.scope().partition().clone());
    guest.put(&RATE.key(1), 2.5).await.expect_err("a write");
    guest.del(&RATE.key(1)).await.expect_err("a removal");
    let minute = Duration::from_secs(60);
    guest.put_for(&TOKEN.key(1), text("t"), minute).await.expect_err("a write with a life");
    let refused = guest.put_each_if_greater([(LEASE.key(1), 7)]).await;
    assert!(matches!(refused, Err(Error::Forbidden { family: "LEASE", .. })), "{refused:?}");
    assert_eq!(guest.get(&LEASE.key(1)).await, Ok(None));
    assert_eq!(guest.get(&RATE.key(1)).await, Ok(Some(1.5)));
    assert_eq!(guest.read(|tx| tx.get(&RATE.key(1))).await, Ok(Some(1.5)));
    assert_eq!(guest.log_last(&EVENTS.key(1)).await, Ok(LogPosition::START));
}

/// A body can ask before it tidies up. A key without its family is refused.
pub async fn a_body_asks_what_it_may_write(context: &Context) {
    let ask = |tx: &mut Tx<'_, World>| {
        Ok((tx.may_write(&NOTE.key(1)), tx.may_write(&SHEET.key(1)), tx.may_write(&CREW.key(1))))
    };
    assert_eq!(run(&context.scope(), ask).await, Ok((true, true, true)));
    assert_eq!(run(&context.scope().acting_as(&SUITE), ask).await, Ok((true, true, true)));
    assert_eq!(
        run(&visit(context), ask).await,
        Ok((true, false, false)),
        "of a sheet only fields are granted"
    );
    let raw = context.raw(&NOTE.key(1));
    let refused = run(&visit(context), move |tx| tx.raw_write(raw.clone(), Write::Del)).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "raw write", .. })), "{refused:?}");
    let raw = context.raw(&NOTE.key(1));
    run(&visit(context), move |tx| tx.raw_write_of(NOTE::DECLARATION, raw.clone(), Write::Del))
        .await
        .expect("a key of a granted family");
}

/// A part that is refused can be undone like any other error of an attempt: the error ends the attempt, and a body
/// that goes on keeps what came before it.
pub async fn a_refusal_inside_an_attempt(context: &Context) {
    let body = |tx: &mut Tx<'_, World>| {
        tx.put(&NOTE.key(1), &text("before"))?;
        let attempt = tx.attempt(|tx| {
            tx.put(&COUNT.key(1), &1)?;
            tx.sadd(&CREW.key(1), &1)?;
            Ok(Ok::<_, ()>(()))
        });
        assert!(matches!(attempt, Err(Error::Forbidden { family: "CREW", .. })));
        Ok(())
    };
    run(&visit(context), body).await.expect("the body goes on");
    let stored = (context.scope().get(&NOTE.key(1)).await, context.scope().get(&COUNT.key(1)).await);
    assert_eq!(stored, (Ok(Some(text("before"))), Ok(None)));
}

#[cfg(test)]
mod tests {
    use super::VERBS;
    use std::collections::BTreeSet;

    /// An operation that writes and is not tried above could have been forgotten in the check as well.
    #[test]
    fn every_operation_that_writes_is_tried() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hot/src/tx");
        let files =
            ["mod.rs", "combine.rs", "typed/hash.rs", "typed/list.rs", "typed/log.rs", "typed/set.rs"];
        let files = files.into_iter().chain(["typed/sorted_set.rs", "typed/text.rs"]);
        let mut written = BTreeSet::new();
        for file in files {
            let source = std::fs::read_to_string(format!("{folder}/{file}")).expect("a source file");
            for part in source.split("\nimpl").filter(|part| part.starts_with("<P: Partition> Tx<'_, P> {")) {
                let part = part.split("\n}\n").next().expect("the block");
                let names = part.split("    pub fn ").skip(1);
                written.extend(names.filter_map(|rest| rest.split(['<', '(']).next()).map(str::to_owned));
            }
        }
        // They take a body, or a key without its family, for which there is another case.
        for name in ["attempt", "prefetch", "raw_write"] {
            assert!(written.remove(name), "{name}");
        }
        assert_eq!(written, VERBS.iter().map(|(name, _)| (*name).to_owned()).collect());
    }
}
