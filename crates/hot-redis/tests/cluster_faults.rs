//! A Cluster that lacks something: confirmations of replicas, or a part of its slots.

mod fault_harness;

use emberkeep_hot::Error;
use emberkeep_testkit::{Flavor, RedisCluster, key_slot, report};
use fault_harness::*;
use std::time::{Duration, Instant};

on_both_servers! {
    replicas_that_do_not_confirm_are_counted_in_the_error,
    a_cluster_that_is_down,
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

async fn replicas_that_do_not_confirm_are_counted_in_the_error(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 1) else { return };
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
    // Reads and transactions without effects need no confirmation.
    scope.transact(|tx| tx.get(&SUM.key())).await.expect("a read");
    report!("confirmations: {rate:.0} hits/s with wait=1; {reason}; {greedy}");
}

async fn a_cluster_that_is_down(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 0) else { return };
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
    let mut reported = Vec::new();
    for name in names {
        let started = Instant::now();
        let scope = store.scope(arena(name)).deadline(Duration::from_millis(600));
        reported.push(hit(&scope, "down".into(), 1).await.expect_err("it is down"));
        assert!(started.elapsed() < Duration::from_millis(600 + 1_500), "{:?}", started.elapsed());
    }
    // A partition of the dead server may have had a commit on the connection that broke.
    let unknown = reported.iter().filter(|e| matches!(e, Error::OutcomeUnknown { .. })).count();
    let typed = reported.iter().filter(|e| matches!(e, Error::Unavailable { .. })).count();
    assert_eq!(unknown + typed, names.len(), "{reported:?}");
    assert!(reported.iter().any(|error| error.to_string().contains("CLUSTERDOWN")), "{reported:?}");
    cluster.nodes()[dead].restart().expect("it comes back");
    cluster.wait_ready().expect("all is well again");
    for name in names {
        hit(&store.scope(arena(name)).deadline(LONG), "after".into(), 1).await.expect("it is up again");
    }
    report!("a cluster that is down: {typed} unavailable, {unknown} unknown; {}", reported[names.len() - 1]);
}
