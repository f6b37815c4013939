//! Servers that refuse: memory, rights, passwords. Errors are typed and give advice, credentials are never in
//! them, nothing is half-written, and transactions that share a commit with a refused one do not suffer.

mod fault_harness;

use emberkeep_hot::Error;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{Channel, Log, RefuseAbove, Set, Text, Utf8, family};
use emberkeep_testkit::{Flavor, RedisOptions, RedisServer, Resp, report, require};
use fault_harness::*;
use std::time::{Duration, Instant};

family! {
    /// Members of an arena.
    pub MEMBERS = "members:{arena}" { kind: Set<Utf8>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// A log that refuses.
    pub OUTBOX = "log:outbox:{arena}" {
        kind: Log<Utf8, RefuseAbove<10>>, partition: Arena, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// Something large.
    pub LOAD = "load:{arena}:{n}" { kind: Text<Utf8>, partition: Arena, parts: (n: u32), ttl: persistent, owner: "test" }
}
family! {
    /// A channel for news.
    pub NEWS = "news:{arena}" { kind: Channel<Utf8>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}

const SECRET: &str = "s3cr3t-pass";

/// Both servers, where they can be had: scripts and rights differ between them.
fn servers(options: RedisOptions) -> Vec<RedisServer> {
    let start = |flavor| require(options.clone().flavor(flavor).start());
    [Flavor::Redis, Flavor::Valkey].into_iter().filter_map(start).collect()
}

/// All keys but receipts and leases.
fn keys(client: &mut Resp) -> Vec<String> {
    let keys = client.call(&["KEYS", "*"]);
    let names = keys.items().iter().map(|key| key.text());
    names.filter(|name| !name.starts_with("ember:r:") && !name.starts_with("ember:turn:")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn out_of_memory_is_said_and_deletes_and_reads_still_work() {
    for server in servers(RedisServer::options()) {
        out_of_memory(server).await;
    }
}

async fn out_of_memory(server: RedisServer) {
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("full"));
    for n in 0..4 {
        scope.put(&LOAD.key(n), "x".repeat(100_000)).await.expect("there is room");
    }
    scope.transact(|tx| tx.sadd(&MEMBERS.key(), &"one".to_owned())).await.expect("there is room");
    let mut client = server.client();
    assert!(client.call(&["CONFIG", "SET", "maxmemory", "1"]).is_ok());
    let before = keys(&mut client);

    let (mut refused, mut read, mut removed) = (0, 0, 0);
    for round in 0..20 {
        // Together, so that they may share a commit.
        let key = LOAD.key(100 + round);
        let writer = scope.put(&key, "more".into());
        let adder = scope.transact(|tx| {
            tx.incr_by(&COUNT.key(), 1)?;
            tx.append(&HIT_LOG.key(), &"entry".to_owned())
        });
        let reader = scope.transact(|tx| Ok::<_, Error>((tx.get(&LOAD.key(3))?, tx.scard(&MEMBERS.key())?)));
        let remover = scope.transact(move |tx| tx.raw_write("nothing-there".into(), Write::Del));
        let (writer, adder, reader, remover) = tokio::join!(writer, adder, reader, remover);
        for error in [writer.expect_err("no memory"), adder.expect_err("no memory")] {
            assert!(matches!(&error, Error::OutOfMemory { .. }), "{error}");
            assert!(error.to_string().contains("delete keys or raise the limit"), "{error}");
            refused += 1;
        }
        reader.expect("reading needs no memory");
        read += 1;
        remover.expect("deleting frees memory");
        removed += 1;
    }
    assert_eq!(keys(&mut client), before, "nothing was written");
    assert_eq!(scope.del(&LOAD.key(0)).await, Ok(true), "a delete works without memory");
    scope
        .transact(|tx| tx.srem(&MEMBERS.key(), &"one".to_owned()))
        .await
        .expect("a removal works without memory");
    assert!(client.call(&["CONFIG", "SET", "maxmemory", "0"]).is_ok());
    scope.put(&LOAD.key(0), "again".into()).await.expect("there is room again");
    report!(
        "out of memory, {:?}: {refused} writes refused, {read} reads and {removed} deletes served, nothing written",
        server.flavor(),
    );
}

/// Users of different rights.
fn with_users() -> RedisOptions {
    RedisServer::options()
        .acl("user default on nopass ~* &* +@all")
        .acl(&format!("user all on >{SECRET} ~* &* +@all"))
        .acl(&format!("user noset on >{SECRET} ~* &* +@all -sadd"))
        .acl(&format!("user nopublish on >{SECRET} ~* &other +@all"))
        .acl(&format!("user noscript on >{SECRET} ~* &* +@all -eval -evalsha"))
        .acl(&format!("user noread on >{SECRET} ~* &* +@all -scard"))
        .acl(&format!("user noinfo on >{SECRET} ~* &* +@all -info -config"))
        .acl(&format!("user keys on >{SECRET} ~*mine* ~ember:* &* +@all"))
}

fn assert_denied(error: &Error) {
    let text = error.to_string();
    assert!(matches!(error, Error::Denied { .. }), "{text}");
    assert!(!text.contains(SECRET) && !text.contains("wrong-one"), "{text}");
    assert!(!text.contains("noread") && !text.contains("noset") && !text.contains("nobody"), "{text}");
    assert!(text.contains("grant the user") || text.contains("put the right user"), "no advice in: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_rights_are_found_before_the_first_write() {
    for server in servers(with_users()) {
        missing_rights(server).await;
    }
}

async fn missing_rights(server: RedisServer) {
    let mut client = server.client();
    let url = |user: &str| format!("redis://{user}:{SECRET}@{}", server.address());
    let mut denied = 0;

    // A command is missing, and it is not the first one of the transaction.
    let scope = store_on(&url("noset")).await.scope(arena("mine"));
    for _ in 0..2 {
        let transaction = scope.transact(|tx| {
            tx.incr_by(&COUNT.key(), 1)?;
            tx.append(&HIT_LOG.key(), &"entry".to_owned())?;
            tx.sadd(&MEMBERS.key(), &"m".to_owned())
        });
        assert_denied(&transaction.await.expect_err("SADD is forbidden"));
        denied += 1;
    }
    scope.transact(|tx| tx.incr_by(&COUNT.key(), 0)).await.expect("other transactions go on");
    client.call(&["DEL", "count:mine"]);

    // A channel is missing; messages come last.
    let scope = store_on(&url("nopublish")).await.scope(arena("mine"));
    let transaction = scope.transact(|tx| {
        tx.incr_by(&COUNT.key(), 1)?;
        tx.publish(&NEWS.key(), &"hello".to_owned())
    });
    assert_denied(&transaction.await.expect_err("PUBLISH to this channel is forbidden"));
    let append = scope.transact(|tx| tx.append(&HIT_LOG.key(), &"e".to_owned()));
    append.await.expect("the wake-up of followers may be forbidden");
    client.call(&["DEL", "log:hits:mine"]);

    // A read is missing, inside a transaction and outside.
    let scope = store_on(&url("noread")).await.scope(arena("mine"));
    assert_denied(&scope.transact(|tx| tx.scard(&MEMBERS.key())).await.expect_err("SCARD is forbidden"));

    // A key is missing.
    let store = store_on(&url("keys")).await;
    let (allowed, forbidden) = (store.scope(arena("mine")), store.scope(arena("other")));
    allowed.transact(|tx| tx.incr_by(&COUNT.key(), 0)).await.expect("this key is allowed");
    client.call(&["DEL", "count:mine"]);
    let transaction = forbidden.transact(|tx| tx.incr_by(&COUNT.key(), 1));
    assert_denied(&transaction.await.expect_err("this key is forbidden"));
    assert_denied(&forbidden.get(&SUM.key()).await.expect_err("this key is forbidden"));

    // Scripts are missing.
    let scope = store_on(&url("noscript")).await.scope(arena("mine"));
    assert_denied(&scope.transact(|tx| tx.incr_by(&COUNT.key(), 1)).await.expect_err("EVALSHA is forbidden"));

    // What is only nice to know is not needed.
    let scope = store_on(&url("noinfo")).await.scope(arena("mine"));
    scope.transact(|tx| tx.incr_by(&COUNT.key(), 0)).await.expect("INFO is not needed");
    client.call(&["DEL", "count:mine"]);
    denied += 6;
    assert_eq!(keys(&mut client), Vec::<String>::new(), "nothing was half-written");
    report!("rights, {:?}: {denied} transactions denied with advice, 0 half-written", server.flavor());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_key_does_not_deny_its_neighbours() {
    let Some(server) = require(with_users().start()) else { return };
    let store = store_on(&format!("redis://keys:{SECRET}@{}", server.address())).await;
    // One partition, so that they share commits; only names with "mine" are allowed.
    let scope = store.scope(arena("both"));
    let mut tasks = Vec::new();
    for task in 0..16 {
        let scope = scope.clone();
        tasks.push(tokio::spawn(async move {
            let key = if task % 4 == 0 { "forbidden" } else { "mine" };
            let mut denied = 0;
            for _ in 0..20 {
                let transaction = scope.transact(move |tx| tx.raw_write(key.into(), Write::IncrBy(1)));
                match transaction.await {
                    Ok(()) => assert_ne!(task % 4, 0),
                    Err(error) => {
                        assert_denied(&error);
                        assert_eq!(task % 4, 0, "a neighbour was denied");
                        denied += 1;
                    }
                }
            }
            denied
        }));
    }
    let mut denied = 0;
    for task in tasks {
        denied += task.await.expect("a task ends");
    }
    assert_eq!(server.client().call(&["GET", "mine"]).text(), "240");
    report!("rights combined: 240 done, {denied} denied, 0 neighbours denied");
}

#[tokio::test]
async fn wrong_and_missing_passwords_are_said_without_repeating_them() {
    let Some(server) = require(RedisServer::options().password(SECRET).start()) else { return };
    for url in [
        format!("redis://{}", server.address()),
        format!("redis://:wrong-one@{}", server.address()),
        format!("redis://nobody:wrong-one@{}", server.address()),
    ] {
        let error = RedisEngine::connect(&url).await.err().expect("the password is wrong");
        assert_denied(&error);
    }
    // The password changes while we are connected: new connections are refused. The first transaction may
    // have been sent on the connection that was killed; then no receipt can be asked.
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("locked"));
    scope.put(&SUM.key(), 1).await.expect("the password is right");
    let mut client = server.client();
    client.call(&["CONFIG", "SET", "requirepass", "another-one"]);
    client.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let first = scope.put(&SUM.key(), 2).await.expect_err("the password has changed");
    assert!(matches!(first, Error::Denied { .. } | Error::OutcomeUnknown { .. }), "{first}");
    let started = Instant::now();
    let error = scope.put(&SUM.key(), 2).await.expect_err("the password has changed");
    assert_denied(&error);
    assert!(!error.to_string().contains("another-one"));
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(client.call(&["GET", "sum:locked"]).text(), "1");
    report!("passwords: 4 refusals typed, with advice, without credentials");
}

/// The bound of a log that refuses holds also when many transactions share a commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_refuses_never_drops() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("log"));
    let mut tasks = Vec::new();
    for task in 0..40_u32 {
        let scope = scope.clone();
        tasks.push(tokio::spawn(async move {
            let transaction = scope.transact(move |tx| {
                // Each on a key of its own: they share no group, but the log.
                tx.put(&LOAD.key(task), &"x".to_owned())?;
                tx.append(&OUTBOX.key(), &format!("e{task}"))
            });
            (task, transaction.await)
        }));
    }
    let (mut done, mut full) = (Vec::new(), 0);
    for task in tasks {
        match task.await.expect("a task ends") {
            (task, Ok(())) => done.push(format!("e{task}")),
            (_, Err(Error::LogFull { .. })) => full += 1,
            (_, Err(other)) => panic!("{other}"),
        }
    }
    let page = scope.log_after(&OUTBOX.key(), 0, 100).await.expect("a page");
    let mut logged: Vec<String> =
        page.entries.into_iter().map(|entry| entry.event.expect("a text")).collect();
    report!("log that refuses: {} appended, {full} refused, {} dropped", done.len(), page.missed);
    logged.sort();
    done.sort();
    assert_eq!(logged, done, "every entry that was confirmed is there");
    assert_eq!((done.len(), full, page.missed), (10, 30, 0));
}

/// Numbers that INCRBY would refuse after other writes were made.
#[tokio::test]
async fn an_increment_that_cannot_work_is_found_before_the_first_write() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("numbers"));
    let mut client = server.client();
    let big = 1_i64 << 53;

    // Text of the same transaction, then a number.
    let transaction = scope.transact(|tx| {
        tx.raw_write("other".into(), Write::Set("written".into(), Expiry::Never))?;
        tx.raw_write("n".into(), Write::Set("no number".into(), Expiry::Never))?;
        tx.raw_write("n".into(), Write::IncrBy(1))
    });
    assert!(matches!(transaction.await, Err(Error::WrongType { .. })));
    // A sum beyond 64 bits, from nothing and from something.
    for start in ["", "999999999999999999"] {
        if !start.is_empty() {
            client.call(&["SET", "n", start]);
        }
        let transaction = scope.transact(move |tx| {
            tx.raw_write("other".into(), Write::Set("written".into(), Expiry::Never))?;
            (0..1_100).try_for_each(|_| tx.raw_write("n".into(), Write::IncrBy(big)))
        });
        let result: Result<(), Error> = transaction.await;
        assert!(matches!(result, Err(Error::Overflow { by: 1.., .. })), "{result:?}");
        assert_eq!(client.call(&["EXISTS", "other"]).int(), 0, "nothing was half-written");
    }
    // What fits, works.
    client.call(&["SET", "n", "9223372036854775000"]);
    let transaction = scope.transact(|tx| tx.raw_write("n".into(), Write::IncrBy(-5)));
    transaction.await.expect("a number of 19 digits is a number");
    assert_eq!(client.call(&["GET", "n"]).text(), "9223372036854774995");
    report!("increments: 3 that cannot work refused, 0 half-written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_clients_is_a_matter_of_time() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("crowded")).deadline(Duration::from_millis(500));
    let mut client = server.client();
    client.call(&["CONFIG", "SET", "maxclients", "1"]);
    client.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let mut reported = Vec::new();
    for _ in 0..2 {
        reported.push(scope.put(&SUM.key(), 1).await.expect_err("no connection is left"));
    }
    assert!(matches!(&reported[1], Error::Unavailable { .. }), "{}", reported[1]);
    let waiting = tokio::spawn({
        let scope = scope.deadline(Duration::from_secs(10));
        async move { scope.put(&SUM.key(), 2).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.call(&["CONFIG", "SET", "maxclients", "100"]);
    waiting.await.expect("the task ends").expect("there is room again");
    report!("too many clients: {}", reported[1]);
}

/// Every error must also be explained in the store's own words.
#[tokio::test]
async fn a_server_that_is_not_there_is_said_at_once() {
    let url = format!("redis://joe:{SECRET}@127.0.0.1:{}", emberkeep_testkit::free_port());
    let started = Instant::now();
    let error = RedisEngine::connect(&url).await.err().expect("no server listens");
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(!error.to_string().contains(SECRET) && !error.to_string().contains("joe"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2));
    report!("no server: {error}");
}
