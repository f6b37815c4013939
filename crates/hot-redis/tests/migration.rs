//! A slot that moves to another server under load, and how long transactions wait for it.

mod fault_harness;

use emberkeep_hot::Error;
use emberkeep_testkit::{Flavor, RedisCluster, SlotMigration, key_slot, report};
use fault_harness::*;
use std::time::{Duration, Instant};

on_both_servers! {
    a_slot_on_its_way,
    a_crowded_slot_moved_by_the_usual_tool,
    a_slot_that_stays_in_between,
}

/// Keys of the slot beside those that are hit.
const CROWD: usize = 2_000;
/// Keys that are moved at a time: what `redis-cli --cluster reshard` does.
const PIPELINE: usize = 10;

fn slot_of(name: &str) -> u16 {
    key_slot(format!("{{{name}}}").as_bytes())
}

fn begin<'a>(cluster: &'a RedisCluster, name: &str) -> SlotMigration<'a> {
    let slot = slot_of(name);
    let to = (cluster.primary_of_slot(slot) + 1) % 3;
    cluster.begin_migration(slot, to)
}

async fn a_slot_on_its_way(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 0) else { return };
    let load = Load::on(Deployment::Cluster(cluster), "", vec![arena("moving")], LONG).await;
    for _ in 0..3 {
        let migration = begin(load.deployment.cluster(), "moving");
        load.some_time(150).await;
        // Half of the keys here, half of them there.
        migration.move_keys(2);
        load.some_time(300).await;
        while migration.move_keys(100) > 0 {}
        load.some_time(150).await;
        migration.finish();
        load.some_time(150).await;
    }
    let outcome = load.end("a slot moved 3 times, held in between for 0.6 s").await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
}

/// A crowded slot, moved as an operator's tool does it. Prints how much of the load went on meanwhile.
async fn a_crowded_slot_moved_by_the_usual_tool(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 0) else { return };
    let mut client = cluster.client_of_key("{crowded}");
    let filler = ["DEBUG", "POPULATE", &CROWD.to_string(), "{crowded}filler", "100"];
    assert!(client.call(&filler).is_ok());
    let load = Load::on(Deployment::Cluster(cluster), "", vec![arena("crowded")], LONG).await;
    let begun = Instant::now();
    let migration = begin(load.deployment.cluster(), "crowded");
    while migration.move_keys(PIPELINE) > 0 {
        load.some_time(1).await;
    }
    migration.finish();
    let ended = Instant::now();
    let outcome = load.end(&format!("a slot of {CROWD} keys moved")).await;
    outcome.audit.assert_exact();
    outcome.assert_all_done();
    let meanwhile = |entry: &&Entry| entry.ended > begun && entry.ended < ended;
    let made = outcome.ledgers[0].entries.values().filter(meanwhile).count();
    report!("  {made} hits made in the {:?} that it took, slowest {:?}", ended - begun, outcome.slowest());
}

/// Plain reads go on while a slot is on its way, and a transaction that cannot fails at its deadline.
async fn a_slot_that_stays_in_between(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 0) else { return };
    let store = store_on(&cluster_url(&cluster.ports())).await;
    let scope = store.scope(arena("held")).deadline(Duration::from_millis(400));
    hit(&scope, "before".into(), 7).await.expect("the slot is at rest");
    let migration = begin(&cluster, "held");
    assert!(migration.move_key(SUM.key().to_text(store.key_layout(), scope.partition())));
    let error = hit(&scope, "between".into(), 1).await.expect_err("half of its keys are elsewhere");
    let retried = matches!(&error, Error::Unavailable { reason, .. } if reason.contains("TRYAGAIN"));
    assert!(retried, "{error}");
    assert_eq!(scope.get(&SUM.key()).await, Ok(Some(7)), "a read of one moved key is sent after it");
    assert_eq!(scope.get(&COUNT.key()).await, Ok(Some(1)), "a read of one key that has not moved");
    migration.finish();
    assert_eq!(hit(&scope, "after".into(), 1).await, Ok(8));
    report!("a slot held in between: {error}");
}
