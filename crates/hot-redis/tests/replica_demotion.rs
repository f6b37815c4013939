//! A server that became a replica while we are connected: it would go on answering reads, with what was true
//! some time ago. It never returns old data, and its errors say why.

mod fault_harness;

use emberkeep_hot::{Error, Scope};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_schema::{Set, Utf8, family};
use emberkeep_testkit::{Flavor, RedisServer, Resp, report, require};
use fault_harness::*;
use std::time::{Duration, Instant};

on_both_servers! {
    no_read_is_answered_between_two_terms,
    what_hinders_writes_only_does_not_hinder_reads,
}

family! {
    /// Members of an arena: a kind that the short script does not serve.
    pub MEMBERS = "members:{arena}" { kind: Set<Utf8>, partition: Arena, parts: (), ttl: refresh(60_000), owner: "test" }
}

const DEADLINE: Duration = Duration::from_millis(300);

/// Both servers, where they can be had.
fn servers() -> Vec<RedisServer> {
    let start = |flavor| require(RedisServer::options().flavor(flavor).start());
    [Flavor::Redis, Flavor::Valkey].into_iter().filter_map(start).collect()
}

/// Makes it a replica of a server that does not exist: it keeps its data and its connections.
fn demote(client: &mut Resp) {
    let absent = emberkeep_testkit::free_port().to_string();
    assert!(client.call(&["REPLICAOF", "127.0.0.1", &absent]).is_ok());
}

fn promote(client: &mut Resp) {
    assert!(client.call(&["REPLICAOF", "NO", "ONE"]).is_ok());
}

/// Every way to learn something from the server, each with its name. `Ok` = it answered.
async fn ask_everything(scope: &Scope<Arena>) -> Vec<(&'static str, Result<(), Error>)> {
    let (sum, sums, log) = (SUM.key(), [SUM.key()], HIT_LOG.key());
    let judging = scope.transact(|tx| match tx.get(&SUM.key())? {
        Some(_) => Err(Error::Invalid { what: "hit", problem: "by a rule of the body".into() }),
        None => Ok(()),
    });
    // Together: a plain read is tried for its 2 s, and one such wait is enough.
    let (one, many, log, scan, string, set, judged, written) = tokio::join!(
        scope.get(&sum),
        scope.get_many(&sums),
        scope.log_last(&log),
        scope.store().engine().scan(None, b"*", 100),
        scope.transact(|tx| tx.get(&SUM.key())),
        scope.transact(|tx| tx.scard(&MEMBERS.key())),
        judging,
        hit(scope, "never".into(), 1),
    );
    vec![
        ("get", one.map(drop)),
        ("get_many", many.map(drop)),
        ("log", log.map(drop)),
        ("scan", scan.map(drop)),
        ("transaction that reads a string", string.map(drop)),
        ("transaction that reads a set", set.map(drop)),
        ("transaction that refuses by what it read", judged),
        ("transaction that writes", written.map(drop)),
    ]
}

fn is_of_a_replica(error: &Error) -> bool {
    let Error::Unavailable { reason, .. } = error else { return false };
    reason.contains("READONLY") || reason.contains("is a replica")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_server_returns_no_old_data() {
    for server in servers() {
        let mut client = server.client();
        let scope = store_on(&server.url()).await.scope(arena("demoted")).deadline(DEADLINE);
        scope.transact(|tx| tx.sadd(&MEMBERS.key(), &"m".to_owned())).await.expect("a primary");
        hit(&scope, "first".into(), 1).await.expect("a primary");
        demote(&mut client);
        for (what, reported) in ask_everything(&scope).await {
            let error = reported.expect_err(what);
            assert!(is_of_a_replica(&error), "{what}: {error}");
        }
        promote(&mut client);
        for (what, reported) in ask_everything(&scope).await {
            let by_the_body = matches!(reported, Err(Error::Invalid { .. }));
            assert!(reported.is_ok() || by_the_body, "{what} works on a primary: {reported:?}");
        }
        // Nothing was written by the probes, and lives are what they were.
        assert_eq!(client.call(&["LRANGE", "hits:demoted", "0", "-1"]).items().len(), 2);
        assert!(client.call(&["PTTL", "members:demoted"]).int() > 0);
        assert_eq!(client.call(&["PTTL", "sum:demoted"]).int(), -1);
        report!(
            "demoted, {:?}: 8 answers asked of a replica, 0 given; 8 of 8 given again by a primary",
            server.flavor()
        );
    }
}

/// The role changes again and again: nothing is read of the replica, and the primary of the next moment
/// answers.
async fn no_read_is_answered_between_two_terms(flavor: Flavor) {
    let Some(old) = emberkeep_testkit::server_of(flavor) else { return };
    let scope = store_on(&old.url()).await.scope(arena("term")).deadline(DEADLINE);
    let mut client = old.client();
    let (mut answered, mut asked) = (0, 0);
    for term in 1..=20_i64 {
        scope.put(&SUM.key(), term).await.expect("a primary");
        demote(&mut client);
        let (key, patience) = (SUM.key(), DEADLINE / 3);
        let transaction = scope.clone().deadline(patience);
        let (read, transaction) = tokio::join!(
            tokio::time::timeout(patience, scope.get(&key)),
            transaction.transact(|tx| tx.get(&SUM.key()))
        );
        answered += usize::from(matches!(read, Ok(Ok(_)))) + usize::from(transaction.is_ok());
        asked += 2;
        promote(&mut client);
        let fresh = scope.get(&SUM.key()).await;
        assert_eq!(fresh, Ok(Some(term)), "the primary of that moment");
    }
    report!("demoted 20 times: {asked} reads asked of the replica, {answered} answered");
    assert_eq!(answered, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_refused_at_the_start() {
    for server in servers() {
        demote(&mut server.client());
        let started = Instant::now();
        let error = RedisEngine::connect(&server.url()).await.err().expect("it is a replica");
        assert!(is_of_a_replica(&error), "{error}");
        assert!(error.to_string().contains("name its primary"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(3));
        report!("replica at the start, {:?}: {error}", server.flavor());
    }
}

/// What hinders writes only does not hinder reads: too few replicas, a user who may not write.
async fn what_hinders_writes_only_does_not_hinder_reads(flavor: Flavor) {
    let reader = "user reader on >secret ~* &* +@read +eval +evalsha +time +script";
    let options = RedisServer::options().acl("user default on nopass ~* &* +@all").acl(reader);
    let Some(server) = require(options.flavor(flavor).start()) else { return };
    let scope = store_on(&server.url()).await.scope(arena("reads")).deadline(DEADLINE);
    hit(&scope, "one".into(), 1).await.expect("nothing hinders");
    let mut client = server.client();
    assert!(client.call(&["CONFIG", "SET", "min-replicas-to-write", "1"]).is_ok());
    assert_eq!(scope.get(&SUM.key()).await, Ok(Some(1)));
    assert_eq!(scope.transact(|tx| tx.llen(&HITS.key())).await, Ok(1));
    // Whenever the deadline strikes, between two commits or between a read and its commit: the reason is the
    // same.
    let patient = (0..40).map(|n| {
        let scope = scope.clone().deadline(DEADLINE / 2 + Duration::from_millis(3 * n));
        tokio::spawn(async move { hit(&scope, format!("two-{n}"), 1).await })
    });
    for hit in patient.collect::<Vec<_>>() {
        let error = hit.await.unwrap().expect_err("it lacks replicas");
        assert!(error.to_string().contains("NOREPLICAS"), "{error}");
    }
    assert!(client.call(&["CONFIG", "SET", "min-replicas-to-write", "0"]).is_ok());
    let url = format!("redis://reader:secret@{}", server.address());
    let reader = store_on(&url).await.scope(arena("reads")).deadline(DEADLINE);
    assert_eq!(reader.get(&SUM.key()).await, Ok(Some(1)));
    assert_eq!(reader.transact(|tx| tx.llen(&HITS.key())).await, Ok(1));
    report!("reads where writes are refused: 2 served without replicas, 2 for a user who may only read");
}
