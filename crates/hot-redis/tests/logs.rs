//! Event logs on Redis: appends share commits, followers survive restarts and notice a log that was set back.

mod fault_harness;

use emberkeep_hot::store::{Follower, LogItem, LogPosition};
use emberkeep_hot::{Scope, Store};
use emberkeep_schema::Utf8;
use emberkeep_testkit::{RedisServer, report, require};
use fault_harness::*;
use std::time::Duration;

/// An item that takes longer is lost.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

async fn next(follower: &mut Follower<HIT_LOG, Utf8>) -> LogItem<String> {
    let item = tokio::time::timeout(ARRIVAL_MAX, follower.next()).await.expect("an item comes");
    item.expect("the store is open").expect("the log can be read")
}

async fn next_event(follower: &mut Follower<HIT_LOG, Utf8>) -> (u64, String) {
    match next(follower).await {
        LogItem::Entry { position, event } => (position.sequence, event),
        other => panic!("{other:?}"),
    }
}

async fn append(scope: &Scope<Arena>, event: &str) {
    let event = event.to_owned();
    scope.transact(move |tx| tx.append(&HIT_LOG.key(), &event)).await.expect("a transaction");
}

/// Transactions that only append to the same log do not conflict, and many of them share a commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blind_appends_share_commits() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let (store, other) = (store_on(&server.url()).await, store_on(&server.url()).await);
    append(&store.scope(arena("blind")), "first").await;
    let before = store.stats().expect("outside a transaction");
    let tasks: Vec<_> = (0..400)
        .map(|n| {
            let scope = if n % 2 == 0 { store.scope(arena("blind")) } else { other.scope(arena("blind")) };
            tokio::spawn(async move { append(&scope, &format!("e{n}")).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("no task panics");
    }
    let (calls, conflicts) = (
        store.stats().expect("outside a transaction").commit_calls - before.commit_calls,
        store.stats().expect("outside a transaction").conflicts - before.conflicts,
    );
    assert_eq!(conflicts, 0);
    assert!(calls < 100, "{calls} commits of 200 transactions");
    let last = store.scope(arena("blind")).log_last(&HIT_LOG.key()).await.expect("a log").sequence;
    assert_eq!(last, 401);
    report!("blind appends: 200 transactions of one process in {calls} commits, 0 conflicts");
}

/// Numbered appends of one process share commits too: each runs on what those before it leave behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbered_appends_of_one_process_share_commits() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    append(&store.scope(arena("numbered")), "first").await;
    let before = store.stats().expect("outside a transaction");
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let scope = store.scope(arena("numbered")).prefetch_log(&HIT_LOG.key());
            tokio::spawn(async move {
                scope
                    .transact(|tx| tx.append_numbered(&HIT_LOG.key(), &"e".to_owned()))
                    .await
                    .expect("settles")
            })
        })
        .collect();
    let mut answer = Vec::new();
    for task in tasks {
        answer.push(task.await.expect("no task panics"));
    }
    answer.sort_unstable();
    assert_eq!(answer, (2..=201).collect::<Vec<_>>());
    let calls = store.stats().expect("outside a transaction").commit_calls - before.commit_calls;
    assert!(calls < 100, "{calls} commits of 200 transactions");
    report!("numbered appends: 200 transactions in {calls} commits");
}

/// A follower waits for a server that restarts. What the server lost is a reset, what it kept is not read twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_survives_restarts() {
    let Some(server) = require(RedisServer::options().start()) else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("restart")).deadline(LONG);
    let mut follower = scope.follow(&HIT_LOG.key(), 0).poll_every(Duration::from_millis(50));
    append(&scope, "one").await;
    append(&scope, "two").await;
    assert_eq!(next_event(&mut follower).await, (1, "one".into()));
    assert_eq!(next_event(&mut follower).await, (2, "two".into()));
    let position = follower.position();
    // Without persistence, so that a restart loses everything.
    server.restart().expect("it starts again");
    assert_eq!(next(&mut follower).await, LogItem::Reset);
    for event in ["new one", "new two", "new three"] {
        append(&scope, event).await;
    }
    assert_eq!(next_event(&mut follower).await, (1, "new one".into()));
    assert_eq!(next_event(&mut follower).await, (2, "new two".into()));
    assert_eq!(next_event(&mut follower).await, (3, "new three".into()));

    // A consumer that comes back after all of that: the numbers alone would tell it nothing.
    let mut consumer = scope.follow(&HIT_LOG.key(), position);
    assert_eq!(next(&mut consumer).await, LogItem::Reset);
    assert_eq!(next_event(&mut consumer).await, (1, "new one".into()));
    let mut unaware = scope.follow(&HIT_LOG.key(), LogPosition::from(position.sequence));
    assert_eq!(next_event(&mut unaware).await, (3, "new three".into()));
    report!("a follower over a restart: reset noticed, nothing missed, nothing twice");
}

/// Closing the store ends its followers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_ends_with_its_store() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store: Store = store_on(&server.url()).await;
    let mut follower =
        store.scope(arena("end")).follow(&HIT_LOG.key(), 0).poll_every(Duration::from_millis(20));
    let waiting = tokio::spawn(async move { follower.next().await });
    store.close().await.expect("it closes");
    let ended = tokio::time::timeout(ARRIVAL_MAX, waiting).await.expect("it ends").expect("no panic");
    assert_eq!(ended, None);
}
