//! Steps on a real Redis: the first things that must hold.

use emberkeep_hot::{Error, Store};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{Name, Number, Set, Text, Utf8, family, partition};

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
    let stats = store.stats();
    assert_eq!(stats.committed, 64 * 200);
    assert!(stats.combined_commits > 0, "{stats:?}");
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
                let step = scope.transact(move |tx| {
                    let n = tx.get(&key)?.unwrap_or(0);
                    tx.sadd(&MEMBERS.key(), &format!("m{}", n % 10))?;
                    tx.put(&key, &(n + 1))
                });
                step.await.expect("no conflict lasts");
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
async fn a_foreign_type_is_named_and_nothing_is_written() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let store = Store::new(RedisEngine::connect(&url).await.expect("connects"));
    let mut foreign = server.client_of(&url);
    foreign.call(&["SET", "members:odd", "text"]);
    let scope = store.scope(room("odd"));
    let step = scope.transact(|tx| {
        tx.put(&COUNT.key(1), &1)?;
        tx.sadd(&MEMBERS.key(), &"m".to_owned())
    });
    let error = step.await.expect_err("a string stands where a set belongs");
    assert!(matches!(&error, Error::WrongType { key, .. } if key.contains("members:odd")), "{error}");
    assert_eq!(scope.get(&COUNT.key(1)).await, Ok(None), "nothing of the step was written");
}
