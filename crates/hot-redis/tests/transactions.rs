//! Transactions on a real Redis: the first things that must hold.

use emberkeep_hot::command::Read;
use emberkeep_hot::{Error, Store, Tx};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{List, Name, Number, Set, Text, Utf8, family, partition};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

partition! {
    /// A room of the test.
    pub struct Room(Name) as "room";
}
family! {
    /// A counter.
    pub COUNT = "count:{room}:{id}" { kind: Text<Number<i64>>, partition: Room, parts: (id: u32), ttl: persistent, owner: "test" }
}
family! {
    /// Members.
    pub MEMBERS = "members:{room}" { kind: Set<Utf8>, partition: Room, parts: (), ttl: refresh(60_000), owner: "test" }
}

family! {
    /// A queue.
    pub QUEUE = "queue:{room}" { kind: List<Number<i64>>, partition: Room, parts: (), ttl: persistent, owner: "test" }
}

async fn store() -> Option<Store> {
    let server = emberkeep_testkit::shared_redis()?;
    let engine = RedisEngine::connect(&server.fresh_db()).await.expect("the server is there");
    Some(Store::new(engine))
}

fn room(name: &str) -> Room {
    Room(Name::new(name).expect("a good name"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_on_one_key_lose_no_update() {
    let Some(store) = store().await else { return };
    let scope = store.scope(room("hot"));
    let mut tasks = Vec::new();
    for _ in 0..64 {
        let scope = scope.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..200 {
                scope
                    .transact(|tx| {
                        let n = tx.get(&COUNT.key(1))?.unwrap_or(0);
                        tx.put(&COUNT.key(1), &(n + 1))
                    })
                    .await
                    .expect("no conflict lasts");
            }
        }));
    }
    for task in tasks {
        task.await.expect("the task ends");
    }
    assert_eq!(scope.get(&COUNT.key(1)).await, Ok(Some(64 * 200)));
    let stats = store.stats().unwrap();
    assert_eq!(stats.committed, 64 * 200);
    assert!(stats.combined_commits > 0, "{stats:?}");
}

/// Calls for transactions so far.
fn calls(store: &Store) -> u64 {
    let stats = store.stats().unwrap();
    stats.commit_calls + stats.read_calls
}

#[tokio::test]
async fn transactions_that_each_take_the_next_of_a_list_share_their_calls() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let scope = Store::new(RedisEngine::connect(&url).await.expect("connects")).scope(room("queue"));
    let fill = |tx: &mut Tx<'_, Room>| (0..96).try_for_each(|n| tx.rpush(&QUEUE.key(), &n));
    scope.transact(fill).await.expect("a plain transaction");
    let fresh = Store::new(RedisEngine::connect(&url).await.expect("connects"));
    let scope = fresh.scope(room("queue")).prefetch(&QUEUE.key(), Read::LRange(0, 95));
    let takes = (0..64).map(|_| scope.transact(|tx| tx.lpop(&QUEUE.key())));
    let taken = futures_util::future::join_all(takes).await;
    let taken: Vec<i64> =
        taken.into_iter().map(|n| n.expect("a plain transaction").expect("one is left")).collect();
    assert_eq!(taken, (0..64).collect::<Vec<_>>(), "in the order of the callers, each once");
    assert!(calls(&fresh) <= 4, "{:?}", fresh.stats().unwrap());
    assert_eq!(scope.transact(|tx| tx.lrange(&QUEUE.key(), 0, 0)).await, Ok(vec![64]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_settles_beside_steady_writes_of_its_own_process() {
    const PRODUCERS: i64 = 64;
    let Some(store) = store().await else { return };
    let scope = store.scope(room("steady"));
    let done = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (scope, done) = (scope.clone(), done.clone());
            tokio::spawn(async move {
                let mut pushed = vec![];
                while pushed.len() < 30_000 && !done.load(Ordering::Relaxed) {
                    let n = producer + PRODUCERS * pushed.len() as i64;
                    let push = scope.transact(move |tx| {
                        tx.sadd(&MEMBERS.key(), &n.to_string())?;
                        tx.rpush(&QUEUE.key(), &n)
                    });
                    push.await.expect("there is no conflict");
                    pushed.push(n);
                }
                pushed
            })
        })
        .collect();
    let mut taken = vec![];
    while taken.len() < 200 {
        let take = scope.transact(|tx| Ok::<_, Error>((tx.scard(&MEMBERS.key())?, tx.lpop(&QUEUE.key())?)));
        let (members, first) = take.await.expect("it settles while others write");
        assert!(members >= taken.len(), "{members} members, {} were taken", taken.len());
        taken.extend(first);
    }
    done.store(true, Ordering::Relaxed);
    let mut pushed = vec![];
    for producer in producers {
        pushed.extend(producer.await.expect("the task ends"));
    }
    let left = |tx: &mut Tx<'_, Room>| {
        let left = tx.lrange(&QUEUE.key(), 0, 499)?;
        tx.ltrim(&QUEUE.key(), 500, -1)?;
        Ok::<_, Error>(left)
    };
    loop {
        match scope.transact(left).await.expect("a plain transaction") {
            none if none.is_empty() => break,
            some => taken.extend(some),
        }
    }
    taken.sort_unstable();
    pushed.sort_unstable();
    assert_eq!(taken, pushed, "each comes once");
}

#[tokio::test]
async fn what_the_transactions_behind_will_read_is_asked_for_at_once() {
    let Some(store) = store().await else { return };
    let scope = store.scope(room("numbers"));
    let take = |tx: &mut Tx<'_, Room>| {
        let next = tx.get(&COUNT.key(0))?.unwrap_or(0) as u32 + 1;
        match tx.exists(&COUNT.key(next)) {
            Ok(taken) => assert!(!taken, "no other process takes numbers"),
            Err(error) => {
                for later in 1..32 {
                    tx.prefetch(|tx| tx.exists(&COUNT.key(next + later)));
                }
                return Err(error);
            }
        }
        tx.put(&COUNT.key(next), &1)?;
        tx.put(&COUNT.key(0), &i64::from(next))?;
        Ok::<_, Error>(next)
    };
    let taken = futures_util::future::join_all((0..128).map(|_| scope.transact(take))).await;
    let taken: Vec<u32> = taken.into_iter().map(|n| n.expect("a plain transaction")).collect();
    assert_eq!(taken, (1..=128).collect::<Vec<_>>());
    assert!(calls(&store) <= 8, "{:?}", store.stats().unwrap());
}

#[tokio::test]
async fn transactions_whose_writes_cancel_to_nothing_are_answered() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let store = Store::new(RedisEngine::connect(&url).await.expect("connects"));
    let both = async |name: &str| {
        let scope = store.scope(room(name));
        let push = scope.transact(|tx| tx.lpush(&QUEUE.key(), &7));
        let pop = scope.transact(|tx| tx.lpop(&QUEUE.key()));
        tokio::join!(push, pop)
    };
    assert_eq!(both("nothing").await, (Ok(()), Ok(Some(7))));
    let mut external = server.client_of(&url);
    assert_eq!(external.call(&["EXISTS", "queue:nothing"]).int(), 0);
    assert_eq!(store.stats().unwrap().combined_transactions, 2, "{:?}", store.stats().unwrap());
    external.call(&["SET", "queue:odd", "text"]);
    let (push, pop) = both("odd").await;
    for error in [push.expect_err("no list"), pop.expect_err("no list")] {
        assert!(matches!(&error, Error::WrongType { .. }), "{error}");
    }
    assert_eq!(external.call(&["GET", "queue:odd"]).text(), "text");
}

#[tokio::test]
async fn two_processes_lose_no_update_and_both_go_on() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let (one, two) = (RedisEngine::connect(&url).await, RedisEngine::connect(&url).await);
    let stores = [Store::new(one.expect("connects")), Store::new(two.expect("connects"))];
    let mut tasks = Vec::new();
    for store in stores.iter().cycle().take(16) {
        let scope = store.scope(room("both"));
        tasks.push(tokio::spawn(async move {
            for _ in 0..100 {
                let key = COUNT.key(7);
                let transaction = scope.transact(move |tx| {
                    let n = tx.get(&key)?.unwrap_or(0);
                    tx.sadd(&MEMBERS.key(), &format!("m{}", n % 10))?;
                    tx.put(&key, &(n + 1))
                });
                transaction.await.expect("no conflict lasts");
            }
        }));
    }
    for task in tasks {
        task.await.expect("the task ends");
    }
    let scope = stores[0].scope(room("both"));
    assert_eq!(scope.get(&COUNT.key(7)).await, Ok(Some(1_600)));
    let members = scope.transact(|tx| tx.scard(&MEMBERS.key())).await;
    assert_eq!(members, Ok(10));
}

#[tokio::test]
async fn an_external_type_is_named_and_nothing_is_written() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let store = Store::new(RedisEngine::connect(&url).await.expect("connects"));
    let mut external = server.client_of(&url);
    external.call(&["SET", "members:odd", "text"]);
    let scope = store.scope(room("odd"));
    let transaction = scope.transact(|tx| {
        tx.put(&COUNT.key(1), &1)?;
        tx.sadd(&MEMBERS.key(), &"m".to_owned())
    });
    let error = transaction.await.expect_err("a string stands where a set belongs");
    assert!(matches!(&error, Error::WrongType { key, .. } if key.contains("members:odd")), "{error}");
    assert_eq!(scope.get(&COUNT.key(1)).await, Ok(None), "nothing of the transaction was written");
}
