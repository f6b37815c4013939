//! An external type under any key of a transaction: the transaction fails with the key's name, and the
//! keyspace is as before.

use emberkeep_hot::{Error, Store};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{
    Hash, List, Log, Name, Newest, Number, Set, SortedSet, Text, Utf8, family, partition,
};
use emberkeep_testkit::{Reply, Resp, report};
use std::collections::BTreeMap;

partition! {
    /// A room of the test.
    pub struct Room(Name) as "room";
}
family! {
    /// A text that is read and written.
    pub TEXT = "text:{room}" { kind: Text<Number<i64>>, partition: Room, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// A number that is only added to.
    pub NUMBER = "number:{room}" { kind: Text<Number<i64>>, partition: Room, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// A hash.
    pub HASH = "hash:{room}" { kind: Hash<Utf8, Utf8>, partition: Room, parts: (), ttl: refresh(60_000), owner: "test" }
}
family! {
    /// A set.
    pub SET = "set:{room}" { kind: Set<Utf8>, partition: Room, parts: (), ttl: refresh(60_000), owner: "test" }
}
family! {
    /// A sorted set.
    pub ZSET = "zset:{room}" { kind: SortedSet<Utf8>, partition: Room, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// A list.
    pub LIST = "list:{room}" { kind: List<Utf8>, partition: Room, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// A log.
    pub LOG = "log:{room}" { kind: Log<Utf8, Newest<10>>, partition: Room, parts: (), ttl: refresh(60_000), owner: "test" }
}

/// How each external kind is written.
const KINDS: [(&str, &[&str], &[&str]); 6] = [
    ("string", &["SET"], &["not a number"]),
    ("hash", &["HSET"], &["f", "v"]),
    ("set", &["SADD"], &["m"]),
    ("zset", &["ZADD"], &["1", "m"]),
    ("list", &["RPUSH"], &["e"]),
    ("stream", &["XADD"], &["1-1", "f", "v"]),
];

/// Every key of the transaction, with the kind that belongs there.
fn keys(room: &str) -> Vec<(String, &'static str)> {
    let key = |name: &str| format!("{name}:{room}");
    vec![
        (key("text"), "string"),
        (key("number"), "string"),
        (key("hash"), "hash"),
        (key("set"), "set"),
        (key("zset"), "zset"),
        (key("list"), "list"),
        (format!("log:{room}"), "list"),
    ]
}

async fn transaction(store: &Store, room: &str, reads: bool) -> Result<(), Error> {
    let scope = store.scope(Room(Name::new(room).expect("a good name")));
    let transaction = scope.transact(move |tx| {
        if reads {
            let n = tx.get(&TEXT.key())?.unwrap_or(0);
            tx.put(&TEXT.key(), &(n + 1))?;
        }
        tx.incr_by(&NUMBER.key(), 5)?;
        tx.hset(&HASH.key(), &"field".to_owned(), &"value".to_owned())?;
        tx.sadd(&SET.key(), &"member".to_owned())?;
        tx.zadd(&ZSET.key(), &"member".to_owned(), 2.5)?;
        tx.rpush(&LIST.key(), &"element".to_owned())?;
        tx.append(&LOG.key(), &"entry".to_owned())
    });
    transaction.await
}

/// Everything that is stored, without receipts and leases. DUMP covers value and type, PEXPIRETIME the
/// deadline.
fn keyspace(client: &mut Resp) -> BTreeMap<String, (Vec<u8>, i64)> {
    let keys = client.call(&["KEYS", "*"]);
    let names = keys.items().iter().map(Reply::text);
    let ours = |name: &String| !name.starts_with("ember:r:") && !name.starts_with("ember:turn:");
    let names: Vec<String> = names.filter(ours).collect();
    let dump = |name: String| {
        let value = client.call(&["DUMP", &name]).bytes().to_vec();
        let deadline = client.call(&["PEXPIRETIME", &name]).int();
        (name, (value, deadline))
    };
    names.into_iter().map(dump).collect()
}

#[tokio::test]
async fn an_external_type_under_any_key_is_named_and_nothing_is_half_written() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let store = Store::new(RedisEngine::connect(&url).await.expect("connects"));
    let mut external = server.client_of(&url);
    let (mut cases, mut refused) = (0, 0);
    for (position, _) in keys("").iter().enumerate() {
        for (kind, command, arguments) in KINDS {
            for filled in [false, true] {
                let room = format!("r{position}-{kind}-{filled}");
                let (key, belongs) = keys(&room)[position].clone();
                if filled {
                    transaction(&store, &room, true).await.expect("a first transaction on clean keys");
                    external.call(&["DEL", &key]);
                }
                let words = [command, &[key.as_str()][..], arguments].concat();
                assert!(!matches!(external.call(&words), Reply::Error(_)), "{words:?}");
                let before = keyspace(&mut external);
                let result = transaction(&store, &room, true).await;
                cases += 1;
                // A log goes on behind elements that are not entries.
                if kind == belongs && kind != "string" {
                    assert_eq!(result, Ok(()), "{key} holds what belongs there");
                    continue;
                }
                refused += 1;
                let error = result.expect_err(&key);
                match &error {
                    Error::WrongType { key: named, .. } => {
                        let exact = named.split_whitespace().next() == Some(&key);
                        assert!(exact, "{error}, expected {key}");
                    }
                    // A text that is not a number, where the body reads one: corrupt, and left as it is.
                    Error::Corrupt { key: named, .. } if position == 0 => assert!(named.contains(&key)),
                    other => panic!("{key} with a {kind}: {other}"),
                }
                assert_eq!(keyspace(&mut external), before, "{key} with a {kind}: something was written");
            }
        }
    }
    report!("wrong types: {cases} cases, {refused} refused with the key's name, 0 half-written");
}

/// A transaction with an external type beside transactions without: combined or not, the others must not
/// suffer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_share_a_commit_do_not_suffer() {
    let Some(server) = emberkeep_testkit::shared_redis() else { return };
    let url = server.fresh_db();
    let store = Store::new(RedisEngine::connect(&url).await.expect("connects"));
    let mut external = server.client_of(&url);
    external.call(&["XADD", "set:shared", "1-1", "f", "v"]);
    let scope = store.scope(Room(Name::new("shared").expect("a good name")));
    let mut tasks = Vec::new();
    for task in 0..32 {
        let scope = scope.clone();
        tasks.push(tokio::spawn(async move {
            let mut refused = 0;
            for _ in 0..20 {
                let transaction = scope.transact(move |tx| {
                    let n = tx.get(&TEXT.key())?.unwrap_or(0);
                    tx.put(&TEXT.key(), &(n + 1))?;
                    if task % 4 == 0 { tx.sadd(&SET.key(), &"m".to_owned()) } else { Ok(()) }
                });
                match transaction.await {
                    Ok(()) => assert_ne!(task % 4, 0, "a stream stands where the set belongs"),
                    Err(Error::WrongType { .. }) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            refused
        }));
    }
    let mut refused = 0;
    for task in tasks {
        refused += task.await.expect("a task ends");
    }
    assert_eq!(external.call(&["GET", "text:shared"]).text(), (24 * 20).to_string());
    assert_eq!(refused, 8 * 20);
    report!("wrong types combined: 480 done, {refused} refused, 0 innocent refused");
}
