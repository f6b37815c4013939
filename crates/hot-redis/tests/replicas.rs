//! Confirmations by replicas (`?wait=1`) beside a replica that hangs, one that lags, and a primary that
//! restarts: what was acknowledged is on the replica, and survives its promotion.

mod fault_harness;

use emberkeep_hot::{Error, Scope};
use emberkeep_testkit::{FaultProxy, Flavor, RedisServer, Resp, report, require};
use fault_harness::*;
use std::time::{Duration, Instant};

on_both_servers! {
    a_stopped_replica_confirms_nothing,
    a_lagging_replica_confirms_what_it_has,
    a_full_primary_waits_for_removals_too,
    a_primary_that_restarts_without_a_commit_confirms_nothing,
    a_primary_that_became_a_replica_is_left,
    another_servers_replicas_confirm_nothing,
    the_right_to_wait_is_asked_for_at_the_start,
}

/// Longer than any replica of these tests needs while it is well.
const PATIENCE: Duration = Duration::from_millis(600);

/// A primary, its replica, and the way between the two.
struct Pair {
    primary: RedisServer,
    replica: RedisServer,
    way: FaultProxy,
    scope: Scope<Arena>,
}

impl Pair {
    async fn start(flavor: Flavor) -> Option<Pair> {
        let options = || RedisServer::options().flavor(flavor).set("repl-diskless-sync-delay", "0");
        let (primary, replica) = (require(options().start())?, require(options().start())?);
        let way = FaultProxy::start(primary.address()).expect("a port is free");
        assert!(replica.client().call(&["REPLICAOF", "127.0.0.1", &way.port().to_string()]).is_ok());
        until(|| replica.client().call(&["INFO", "replication"]).text().contains("master_link_status:up"))
            .await;
        // The primary counts it only when the process that copied the data has ended.
        until(|| primary.client().call(&["INFO", "replication"]).text().contains("state=online")).await;
        let store = store_on(&format!("{}?wait=1", primary.url())).await;
        let scope = store.scope(arena("pair")).deadline(PATIENCE);
        Some(Pair { primary, replica, way, scope })
    }

    /// Hits one after the other; every one of them must end as unknown.
    async fn none_is_confirmed(&self, ledger: &mut Ledger, prefix: &str) {
        for n in 0..5 {
            let (id, damage, started) = (format!("{prefix}{n}"), damage_of(n), Instant::now());
            let result = hit(&self.scope, id.clone(), damage).await;
            let Err(Error::OutcomeUnknown { reason, .. }) = &result else { panic!("{id}: {result:?}") };
            assert!(reason.contains("committed on the primary, but only 0 of 1 replicas"), "{reason}");
            ledger.enter(id, damage, started, result);
        }
    }

    /// The primary dies and the replica takes its place: nothing that was acknowledged is gone.
    fn promote(self, ledger: &Ledger) -> Audit {
        self.primary.kill9();
        let mut client = self.replica.client();
        assert!(client.call(&["REPLICAOF", "NO", "ONE"]).is_ok());
        let found = audit(&mut client, self.scope.store().key_layout(), self.scope.partition(), ledger);
        found.assert_exact();
        found
    }
}

async fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come about");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn a_stopped_replica_confirms_nothing(flavor: Flavor) {
    let Some(pair) = Pair::start(flavor).await else { return };
    let mut ledger = assault(pair.scope.clone().deadline(LONG), "well", 4, Until::Hits(50)).await;
    assert_eq!((ledger.done(), ledger.unknown()), (200, 0), "{:?}", ledger.errors());
    pair.replica.pause();
    pair.none_is_confirmed(&mut ledger, "stopped").await;
    // What it was sent and has not read goes with the connection.
    pair.way.cut_all();
    pair.replica.resume();
    let found = pair.promote(&ledger);
    report!("?wait=1, {flavor:?}, replica stopped: 200 confirmed, 5 unknown; {found}");
}

async fn a_lagging_replica_confirms_what_it_has(flavor: Flavor) {
    let Some(pair) = Pair::start(flavor).await else { return };
    let late = Duration::from_millis(100);
    pair.way.delay(Duration::ZERO, late);
    let mut ledger = assault(pair.scope.clone().deadline(LONG), "late", 4, Until::Hits(3)).await;
    assert_eq!((ledger.done(), ledger.unknown()), (12, 0), "{:?}", ledger.errors());
    let hasty = ledger.entries.values().filter(|entry| entry.ended - entry.started < late).count();
    assert_eq!(hasty, 0, "acknowledged before the replica can have it");
    pair.way.delay(Duration::ZERO, Duration::from_secs(60));
    pair.none_is_confirmed(&mut ledger, "lost").await;
    let found = pair.promote(&ledger);
    assert_eq!(found.present, 12, "what lagged is gone");
    report!("?wait=1, {flavor:?}, replica lags: 12 confirmed, 5 unknown and gone; {found}");
}

/// A removal frees memory, so it is committed on a full server; its confirmation must not need memory either.
async fn a_full_primary_waits_for_removals_too(flavor: Flavor) {
    let Some(pair) = Pair::start(flavor).await else { return };
    let scope = pair.scope.clone().deadline(LONG);
    scope.put(&SUM.key(), 1).await.expect("a replica confirms");
    assert!(pair.primary.client().call(&["CONFIG", "SET", "maxmemory", "1"]).is_ok());
    assert_eq!(scope.del(&SUM.key()).await, Ok(true));
    assert_eq!(pair.replica.client().call(&["EXISTS", "sum:pair"]).int(), 0);
}

/// The primary answers a commit, then restarts empty before replicas are asked: a new connection counts the
/// replicas of a server that does not have the commit.
async fn a_primary_that_restarts_without_a_commit_confirms_nothing(flavor: Flavor) {
    let Some(pair) = Pair::start(flavor).await else { return };
    let door = FaultProxy::start(pair.primary.address()).expect("a port is free");
    let store = store_on(&format!("{}?wait=1", door.url())).await;
    let scope = store.scope(arena("pair")).deadline(LONG);
    // The answer of the commit is on its way for a second; the server is another one when it arrives.
    door.delay(Duration::ZERO, Duration::from_millis(500));
    let commit = tokio::spawn(async move { scope.put(&SUM.key(), 1).await });
    until(|| pair.primary.client().call(&["EXISTS", "sum:pair"]).int() == 1).await;
    restart(&pair);
    door.delay(Duration::ZERO, Duration::ZERO);
    let reported = commit.await.expect("the task ends");
    assert!(matches!(reported, Err(Error::OutcomeUnknown { .. })), "{reported:?}");
    report!("?wait=1, {flavor:?}, primary restarted empty: {}", reported.expect_err("unknown"));
}

async fn replicate(replica: &RedisServer, primary: &RedisServer) {
    let port = primary.port().to_string();
    assert!(replica.client().call(&["REPLICAOF", "127.0.0.1", &port]).is_ok());
    until(|| replica.client().call(&["INFO", "replication"]).text().contains("master_link_status:up")).await;
}

/// A host name follows the primary, and the old one lives on as a replica: it ends no connection, so both
/// must be left.
async fn a_primary_that_became_a_replica_is_left(flavor: Flavor) {
    let options = || RedisServer::options().flavor(flavor).set("repl-diskless-sync-delay", "0");
    let (Some(old), Some(new)) = (require(options().start()), require(options().start())) else { return };
    replicate(&new, &old).await;
    let door = FaultProxy::start(old.address()).expect("a port is free");
    let scope = store_on(&format!("{}?wait=1", door.url())).await.scope(arena("pair")).deadline(LONG);
    hit(&scope, "before".into(), 1).await.expect("a replica confirms");
    assert!(new.client().call(&["REPLICAOF", "NO", "ONE"]).is_ok());
    door.retarget(new.address()).expect("an address");
    replicate(&old, &new).await;
    let reported: Vec<_> =
        futures_util::future::join_all((0..10).map(|n| hit(&scope, format!("after{n}"), 1))).await;
    let last = hit(&scope, "last".into(), 1).await;
    assert!(last.is_ok(), "{last:?} after {reported:?}");
    report!(
        "?wait=1, {flavor:?}, primary demoted: {} of 10 confirmed by the new one's replica at once",
        reported.iter().flatten().count()
    );
}

/// The connection for commits leads to one server and that for WAIT to another, which has a replica, but not
/// the commit.
async fn another_servers_replicas_confirm_nothing(flavor: Flavor) {
    let Some(pair) = Pair::start(flavor).await else { return };
    let Some(lonely) = require(RedisServer::options().flavor(flavor).start()) else { return };
    let door = FaultProxy::start(lonely.address()).expect("a port is free");
    let store = store_on(&format!("{}?wait=1", door.url())).await;
    let scope = store.scope(arena("door")).deadline(LONG);
    door.retarget(pair.primary.address()).expect("an address");
    let reported = scope.put(&SUM.key(), 1).await;
    assert_eq!(lonely.client().call(&["EXISTS", "sum:door"]).int(), 1, "the commit is on the first server");
    assert!(matches!(reported, Err(Error::OutcomeUnknown { .. })), "{reported:?}");
    let second = scope.put(&SUM.key(), 2).await;
    assert!(second.is_ok(), "both connections follow the host name by now: {second:?}");
    report!("?wait=1, {flavor:?}, two servers behind one name: {}", reported.expect_err("unknown"));
}

fn restart(pair: &Pair) {
    pair.primary.restart().expect("it comes back");
    let deadline = Instant::now() + LONG;
    let connected = |client: &mut Resp| client.call(&["INFO", "replication"]).text().contains("state=online");
    while !connected(&mut pair.primary.client()) {
        assert!(Instant::now() < deadline, "the replica does not come back");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn the_right_to_wait_is_asked_for_at_the_start(flavor: Flavor) {
    let options = RedisServer::options().flavor(flavor).acl("user default on nopass ~* &* +@all");
    let options = options.acl("user wait on >secret ~* &* +@all -wait");
    let options = options.acl("user info on >secret ~* &* +@all -info");
    let Some(server) = require(options.start()) else { return };
    for user in ["wait", "info"] {
        let url = format!("redis://{user}:secret@{}", server.address());
        store_on(&url).await;
        let error = emberkeep_hot_redis::RedisEngine::connect(&format!("{url}?wait=1")).await.err();
        let error = error.expect("it is forbidden");
        assert!(matches!(error, Error::Denied { .. }) && error.to_string().contains("?wait="), "{error}");
    }
}
