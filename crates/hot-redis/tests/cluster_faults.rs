//! A Cluster that changes under load: slots on their way, primaries that die, confirmations of replicas.

mod arena;

use arena::*;
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_testkit::{RedisCluster, key_slot};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

struct Battle {
    store: Store,
    scope: Scope<Arena>,
    stop: Arc<AtomicBool>,
    running: tokio::task::JoinHandle<Ledger>,
}

impl Battle {
    async fn begin(url: &str, name: &str) -> Battle {
        let store = store_on(url).await;
        let scope = store.scope(arena(name)).deadline(LONG);
        let stop = flag();
        let running = tokio::spawn({
            let (scope, until) = (scope.clone(), Until::Flag(stop.clone()));
            async move { assault(scope, "t", 8, until).await }
        });
        pause(200).await;
        Battle { store, scope, stop, running }
    }

    async fn end(self, title: &str, cluster: &RedisCluster) -> (Ledger, Audit) {
        pause(300).await;
        self.stop.store(true, Ordering::Release);
        let ledger = self.running.await.expect("the tasks end");
        let arena = self.scope.partition();
        let mut client = cluster.client_of_key(SUM.key().to_text(self.store.naming(), arena));
        let audit = audit(&mut client, self.store.naming(), arena, &ledger);
        println!(
            "{title}: {} hits, {} done, {} refused, {} unknown, receipts asked {}, slowest {:?}; {audit}",
            ledger.entries.len(),
            ledger.done(),
            ledger.refused(),
            ledger.unknown(),
            self.store.stats().receipts_asked,
            ledger.slowest(),
        );
        ledger.errors().iter().for_each(|(error, times)| println!("  {times} x {error}"));
        (ledger, audit)
    }
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

fn url_of(cluster: &RedisCluster) -> String {
    cluster_url(&cluster.ports())
}

fn slot_of(name: &str) -> u16 {
    key_slot(format!("{{{name}}}").as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_on_its_way() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 0) else { return };
    let battle = Battle::begin(&url_of(&cluster), "moving").await;
    let slot = slot_of("moving");
    for _ in 0..3 {
        let to = (cluster.primary_of_slot(slot) + 1) % 3;
        let migration = cluster.begin_migration(slot, to);
        pause(150).await;
        // Half of the keys here, half of them there.
        migration.move_keys(2);
        pause(300).await;
        while migration.move_keys(100) > 0 {}
        pause(150).await;
        migration.finish();
        pause(150).await;
    }
    let (ledger, audit) = battle.end("a slot moved 3 times, held in between", &cluster).await;
    audit.assert_exact();
    assert_eq!((ledger.refused(), ledger.unknown()), (0, 0));
    assert!(ledger.done() > 100);
}

/// Plain reads go on while a slot is on its way, and a step that cannot is told so by its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_stays_in_between() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 0) else { return };
    let store = store_on(&url_of(&cluster)).await;
    let scope = store.scope(arena("held")).deadline(Duration::from_millis(400));
    hit(&scope, "before".into(), 7).await.expect("the slot is at rest");
    let slot = slot_of("held");
    let to = (cluster.primary_of_slot(slot) + 1) % 3;
    let migration = cluster.begin_migration(slot, to);
    assert!(migration.move_key(SUM.key().to_text(store.naming(), scope.partition())));
    let error = hit(&scope, "between".into(), 1).await.expect_err("half of its keys are elsewhere");
    let retried = matches!(&error, Error::Unavailable { reason, .. } if reason.contains("TRYAGAIN"));
    assert!(retried, "{error}");
    assert_eq!(scope.get(&SUM.key()).await, Ok(Some(7)), "a read of one moved key is sent after it");
    assert_eq!(scope.get(&COUNT.key()).await, Ok(Some(1)), "a read of one key that has not moved");
    migration.finish();
    assert_eq!(hit(&scope, "after".into(), 1).await, Ok(8));
    println!("a slot held in between: {error}");
}

/// A failover in good order. Redis gives it up without a word when the replica loses its primary in the middle of
/// it, so it is asked for until it has happened.
async fn change_places(cluster: &RedisCluster, range: usize) {
    let old = cluster.primary_of_range(range);
    let follows = format!("master_port:{}\r", cluster.ports()[old]);
    let deadline = Instant::now() + Duration::from_secs(25);
    while cluster.primary_of_range(range) == old {
        assert!(Instant::now() < deadline, "the replica does not take over");
        for node in cluster.nodes() {
            if node.client().call(&["INFO", "replication"]).text().contains(&follows) {
                node.client().call(&["CLUSTER", "FAILOVER"]);
            }
        }
        pause(500).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn primaries_change_places_in_good_order() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 1) else { return };
    let battle = Battle::begin(&url_of(&cluster), "swap").await;
    let range = (slot_of("swap") as usize * 3) / 16_384;
    for _ in 0..3 {
        change_places(&cluster, range).await;
        cluster.wait_ready().expect("the old primary follows");
        pause(300).await;
    }
    let (ledger, audit) = battle.end("3 failovers in good order", &cluster).await;
    // In good order nothing is lost: the old primary stops writing until the new one has everything.
    audit.assert_exact();
    assert_eq!(ledger.refused(), 0);
}

/// A primary dies. Acknowledged hits of the last moments may be gone, everything else holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_dies() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 1) else { return };
    for (title, options) in [("without waiting", ""), ("with ?wait=1", "?wait=1")] {
        let name = if options.is_empty() { "dies" } else { "dies-waited" };
        let battle = Battle::begin(&format!("{}{options}", url_of(&cluster)), name).await;
        let range = (slot_of(name) as usize * 3) / 16_384;
        let killed_at = Instant::now();
        let dead = cluster.kill9_primary(range);
        let heir = cluster.failover(range);
        pause(500).await;
        if !options.is_empty() {
            // Nobody is left who could confirm: the dead one comes back as a replica.
            cluster.nodes()[dead].restart().expect("it comes back");
            cluster.wait_ready().expect("it follows");
        }
        let (ledger, audit) = battle.end(&format!("a primary died, {title}"), &cluster).await;
        audit.assert_nothing_wrong();
        assert_ne!(dead, heir);
        let mut client = cluster.client_of_key(format!("{{{name}}}"));
        let list = client.call(&["LRANGE", &format!("{{{name}}}hits:{name}"), "0", "-1"]);
        let present: std::collections::HashSet<String> = list.items().iter().map(|id| id.text()).collect();
        let margin = Duration::from_millis(if options.is_empty() { 100 } else { 0 });
        let mut gone = 0;
        for (id, entry) in ledger.entries.iter().filter(|(_, entry)| entry.told == Told::Done) {
            let settled =
                !options.is_empty() || entry.ended + margin < killed_at || entry.started > killed_at + LONG;
            gone += usize::from(!present.contains(id));
            assert!(
                !settled || present.contains(id),
                "{id} was confirmed {:?} before the kill",
                killed_at - entry.ended
            );
        }
        println!("a primary died, {title}: {gone} acknowledged hits gone");
        if options.is_empty() {
            cluster.nodes()[dead].restart().expect("it comes back");
            cluster.wait_ready().expect("it follows");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_do_not_confirm_are_counted_in_the_error() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 1) else { return };
    let store = store_on(&format!("{}?wait=1", url_of(&cluster))).await;
    let scope = store.scope(arena("waited")).deadline(Duration::from_millis(700));
    assert_eq!(hit(&scope, "one".into(), 1).await, Ok(1), "the replica confirms");
    let started = Instant::now();
    let ledger = assault(scope.clone(), "many", 8, Until::Hits(50)).await;
    let rate = 400.0 / started.elapsed().as_secs_f64();
    assert_eq!((ledger.refused(), ledger.unknown()), (0, 0), "{:?}", ledger.errors());

    let range = (slot_of("waited") as usize * 3) / 16_384;
    let replica = &cluster.nodes()[3 + range];
    replica.pause();
    let started = Instant::now();
    let error = hit(&scope, "two".into(), 1).await.expect_err("the replica hangs");
    let took = started.elapsed();
    replica.resume();
    let Error::OutcomeUnknown { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("committed on the primary, but only 0 of 1 replicas confirmed"), "{reason}");
    assert!(took < Duration::from_millis(700 + 1_500), "{took:?}");

    let greedy = store_on(&format!("{}?wait=2", url_of(&cluster))).await.scope(arena("waited"));
    let error = hit(&greedy.deadline(Duration::from_millis(300)), "three".into(), 1).await;
    let Err(Error::OutcomeUnknown { reason: greedy, .. }) = &error else { panic!("{error:?}") };
    assert!(greedy.contains("only 1 of 2 replicas confirmed"), "{greedy}");
    // Reads and steps without effects need no confirmation.
    scope.transact(|tx| tx.get(&SUM.key())).await.expect("a read");
    println!("confirmations: {rate:.0} hits/s with wait=1; {reason}; {greedy}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_down() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 0) else { return };
    let store = store_on(&url_of(&cluster)).await;
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        hit(&store.scope(arena(name)), "before".into(), 1).await.expect("it is up");
    }
    let dead = cluster.kill9_primary(0);
    // The others notice after a while that a part of the slots has no server, and stop.
    let other = (dead + 1) % 3;
    let deadline = Instant::now() + Duration::from_secs(20);
    while !cluster.nodes()[other].client().call(&["CLUSTER", "INFO"]).text().contains("cluster_state:fail") {
        assert!(Instant::now() < deadline, "the cluster does not notice");
        pause(20).await;
    }
    let mut told = Vec::new();
    for name in names {
        let started = Instant::now();
        let scope = store.scope(arena(name)).deadline(Duration::from_millis(600));
        told.push(hit(&scope, "down".into(), 1).await.expect_err("it is down"));
        assert!(started.elapsed() < Duration::from_millis(600 + 1_500), "{:?}", started.elapsed());
    }
    // Whoever lived on the dead server may have had a commit on the connection that broke.
    let unknown = told.iter().filter(|e| matches!(e, Error::OutcomeUnknown { .. })).count();
    let typed = told.iter().filter(|e| matches!(e, Error::Unavailable { .. })).count();
    assert_eq!(unknown + typed, names.len(), "{told:?}");
    assert!(told.iter().any(|error| error.to_string().contains("CLUSTERDOWN")), "{told:?}");
    cluster.nodes()[dead].restart().expect("it comes back");
    cluster.wait_ready().expect("all is well again");
    for name in names {
        hit(&store.scope(arena(name)).deadline(LONG), "after".into(), 1).await.expect("it is up again");
    }
    println!("a cluster that is down: {typed} unavailable, {unknown} unknown; {}", told[names.len() - 1]);
}
