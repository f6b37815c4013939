//! Idempotency.

use super::Realm;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::once::{Fingerprint, Receipt, RequestMismatch, once, once_matching};
use emberkeep_schema::{Json, Number, Text, family};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

family! {
    /// What every run of a body adds to.
    pub SUM = "once-test:{realm}:sum" {
        kind: Text<Number<i64>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// Answered requests.
    pub REQUEST = "once-test:{realm}:request:{id}" {
        kind: Text<Receipt<Json<Result<i64, String>>>>, partition: Realm, parts: (id: u32),
        ttl: refresh(60_000), owner: "test"
    }
}

/// What a call of these cases can fail with.
#[derive(Debug, PartialEq, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Mismatch(#[from] RequestMismatch),
    #[error("refused")]
    Refused,
}

fn add(tx: &mut Tx<'_, Realm>, gold: i64) -> Result<i64, Error> {
    let sum = tx.get(&SUM.key())?.unwrap_or(0) + gold;
    tx.put(&SUM.key(), &sum)?;
    Ok(sum)
}

/// Adds, once for each id.
async fn call(scope: &Scope<Realm>, id: u32, gold: i64) -> Result<i64, Failure> {
    let request = Fingerprint::of::<Number<i64>>(&gold)?;
    let answer = scope.transact(move |tx| {
        once_matching(tx, &REQUEST.key(id), request, |tx| Ok::<_, Failure>(Ok(add(tx, gold)?)))
    });
    Ok(answer.await?.expect("no refusal was stored"))
}

async fn sum(scope: &Scope<Realm>) -> i64 {
    scope.get(&SUM.key()).await.unwrap().unwrap_or(0)
}

pub async fn a_repeated_request_gets_the_first_answer(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!(call(&scope, 1, 5).await, Ok(5));
    assert_eq!(call(&scope, 2, 7).await, Ok(12));
    assert_eq!(call(&scope, 1, 5).await, Ok(5));
    assert_eq!(sum(&scope).await, 12);
    let left = scope.deadline_of(&REQUEST.key(1)).await.unwrap().expect("a deadline");
    assert!(left > store.now().await.unwrap(), "it is stored for the time that the family says");
}

pub async fn an_id_with_other_parameters_is_refused(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!(call(&scope, 1, 5).await, Ok(5));
    let refused = call(&scope, 1, 6).await.unwrap_err();
    assert!(matches!(&refused, Failure::Mismatch(RequestMismatch { key }) if key.ends_with("request:1")));
    assert!(refused.to_string().contains("a new request needs a new id"), "{refused}");
    assert_eq!(sum(&scope).await, 5);
    // Who does not compare gets the answer.
    let answer = scope.transact(|tx| once(tx, &REQUEST.key(1), |_| Ok::<_, Error>(Ok(99))));
    assert_eq!(answer.await, Ok(Ok(5)));
}

pub async fn a_refusal_is_stored_only_if_it_is_asked_for(store: Store) {
    let scope = store.scope(Realm::new());
    let fail = |id| {
        scope.transact(move |tx| {
            once(tx, &REQUEST.key(id), |tx| {
                add(tx, 100)?;
                Err::<Result<i64, String>, _>(Failure::Refused)
            })
        })
    };
    assert_eq!(fail(1).await, Err(Failure::Refused));
    assert_eq!((sum(&scope).await, call(&scope, 1, 5).await), (0, Ok(5)));
    let refuse = || {
        scope
            .transact(|tx| once(tx, &REQUEST.key(2), |_| Ok::<_, Error>(Err::<i64, _>("no gold".to_owned()))))
    };
    assert_eq!(refuse().await, Ok(Err("no gold".to_owned())));
    let repeated = scope.transact(|tx| once(tx, &REQUEST.key(2), |tx| Ok::<_, Error>(Ok(add(tx, 1)?))));
    assert_eq!((repeated.await, sum(&scope).await), (Ok(Err("no gold".to_owned())), 5));
}

pub async fn a_corrupt_receipt_stops_the_call(store: Store) {
    let scope = store.scope(Realm::new());
    let key = bytes::Bytes::from(REQUEST.key(1).to_text(store.key_layout(), scope.partition()));
    let corrupt = move |tx: &mut Tx<'_, Realm>| {
        tx.raw_write(key.clone(), Write::Set(bytes::Bytes::from_static(b"no receipt"), Expiry::Never))
    };
    scope.transact(corrupt).await.unwrap();
    let error = call(&scope, 1, 5).await.unwrap_err();
    assert!(matches!(&error, Failure::Store(Error::Corrupt { .. })), "{error}");
    assert_eq!(sum(&scope).await, 0, "it may have had its effect");
}

pub async fn of_many_calls_with_one_id_one_runs(store: Store) {
    let scope = store.scope(Realm::new());
    call_at_once(vec![scope; 64]).await;
}

pub async fn two_processes_repeat_a_request(one: Store, other: Store) {
    let realm = Realm::new();
    let scopes = [one.scope(realm), other.scope(realm)];
    call_at_once(scopes.into_iter().cycle().take(64).collect()).await;
}

/// Lets every caller send the same five requests.
async fn call_at_once(callers: Vec<Scope<Realm>>) {
    let scope = callers[0].clone();
    let callers: Vec<_> = callers
        .into_iter()
        .map(|scope| {
            tokio::spawn(async move {
                let mut answers = Vec::new();
                for id in 0..5 {
                    answers.push(call(&scope, id, 10 + i64::from(id)).await.unwrap());
                }
                answers
            })
        })
        .collect();
    let mut answers = Vec::new();
    for caller in callers {
        answers.push(caller.await.unwrap());
    }
    assert!(answers.iter().all(|each| *each == answers[0]), "{answers:?}");
    assert_eq!(sum(&scope).await, 10 + 11 + 12 + 13 + 14);
}

/// With a clock of the test's own: ids are forgotten to the millisecond, and a model agrees.
pub async fn calls_agree_with_a_model() {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    let runtime = tokio::runtime::Handle::current();
    let calls = proptest::collection::vec((0u32..4, 0i64..3, 0u64..40_000), 1..40);
    tokio::task::spawn_blocking(move || {
        proptest!(ProptestConfig::with_cases(128), |(calls in calls)| {
            let scope = store.scope(Realm::new());
            let (mut answered, mut total) = (HashMap::<u32, (i64, i64, i64)>::new(), 0);
            for (id, gold, passes) in calls {
                clock.advance(passes);
                let now = clock.now();
                answered.retain(|_, (_, _, until)| now <= *until);
                let answer = runtime.block_on(call(&scope, id, gold));
                match answered.get(&id) {
                    Some((first, answered, _)) if *first == gold => prop_assert_eq!(answer, Ok(*answered)),
                    Some(_) => prop_assert!(matches!(answer, Err(Failure::Mismatch(_)))),
                    None => {
                        total += gold;
                        prop_assert_eq!(answer, Ok(total));
                        answered.insert(id, (gold, total, now + 60_000));
                    }
                }
            }
            prop_assert_eq!(runtime.block_on(sum(&scope)), total);
        });
    })
    .await
    .unwrap();
}
