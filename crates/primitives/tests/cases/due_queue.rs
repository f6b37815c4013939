//! The due queue.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Score, Write};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::DueQueue;
use emberkeep_schema::{Id, SortedSet, family};
use std::collections::HashSet;

family! {
    /// What is due.
    pub DUE = "deadline-test:{realm}" {
        kind: SortedSet<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

/// A long time ago, and one that is far off.
const PAST: i64 = 1_000_000;
const FUTURE: i64 = 4_000_000_000_000;

async fn set(scope: &Scope<Realm>, what: u32, at: i64) {
    scope.transact(move |tx| DueQueue::new(DUE.key()).set(tx, &what, at)).await.unwrap();
}

async fn pop(scope: &Scope<Realm>, limit: usize) -> Vec<(u32, i64)> {
    scope.transact(move |tx| DueQueue::new(DUE.key()).pop_due(tx, limit)).await.unwrap()
}

pub async fn what_is_due_comes_first_and_once(store: Store) {
    let scope = store.scope(Realm::new());
    for (what, at) in [(1, PAST + 2), (2, FUTURE), (3, PAST + 1), (4, PAST + 3)] {
        set(&scope, what, at).await;
    }
    assert_eq!(pop(&scope, 2).await, [(3, PAST + 1), (1, PAST + 2)]);
    assert_eq!(pop(&scope, 10).await, [(4, PAST + 3)]);
    assert_eq!(pop(&scope, 10).await, []);
    let next = scope.transact(|tx| DueQueue::new(DUE.key()).next(tx)).await;
    assert_eq!(next, Ok(Some(FUTURE)));
}

pub async fn a_later_word_replaces_an_earlier_one(store: Store) {
    let scope = store.scope(Realm::new());
    set(&scope, 1, PAST).await;
    set(&scope, 1, FUTURE).await;
    assert_eq!(pop(&scope, 10).await, []);
    assert_eq!(scope.transact(|tx| DueQueue::new(DUE.key()).get(tx, &1)).await, Ok(Some(FUTURE)));
    let cancel = || scope.transact(|tx| DueQueue::new(DUE.key()).cancel(tx, &1));
    assert_eq!((cancel().await, cancel().await), (Ok(true), Ok(false)));
    assert_eq!(scope.transact(|tx| DueQueue::new(DUE.key()).get(tx, &1)).await, Ok(None));
}

pub async fn each_deadline_is_handed_to_one_caller(store: Store) {
    let scope = store.scope(Realm::new());
    share(vec![scope; 8]).await;
}

pub async fn two_processes_share_what_is_due(one: Store, other: Store) {
    let realm = Realm::new();
    let (one, other) = (one.scope(realm), other.scope(realm));
    share(vec![one.clone(), other.clone(), one, other]).await;
}

/// Lets callers pop as long as there is something, and sees that each deadline came to one of them.
async fn share(callers: Vec<Scope<Realm>>) {
    callers[0]
        .transact(|tx| (0..400).try_for_each(|what| DueQueue::new(DUE.key()).set(tx, &what, PAST)))
        .await
        .unwrap_or_else(|error: Error| panic!("{error}"));
    let callers: Vec<_> = callers
        .into_iter()
        .map(|scope| {
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let popped = pop(&scope, 7).await;
                    if popped.is_empty() {
                        return mine;
                    }
                    mine.extend(popped.into_iter().map(|(what, _)| what));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for caller in callers {
        all.extend(caller.await.unwrap());
    }
    let each: HashSet<u32> = all.iter().copied().collect();
    assert_eq!((all.len(), each.len()), (400, 400));
}

pub async fn what_is_no_member_is_dropped_when_its_time_comes(store: Store) {
    let scope = store.scope(Realm::new());
    let key = Bytes::from(DUE.key().to_text(store.key_layout(), scope.partition()));
    let rubbish = move |tx: &mut Tx<'_, Realm>| {
        let entry = (Bytes::from_static(b"no number"), Score::new(5.0)?);
        tx.raw_write(key.clone(), Write::ZAdd(vec![entry]))
    };
    scope.transact(rubbish).await.unwrap();
    set(&scope, 1, PAST).await;
    assert_eq!(pop(&scope, 10).await, [(1, PAST)]);
    assert_eq!(scope.exists(&DUE.key()).await, Ok(false));
}
