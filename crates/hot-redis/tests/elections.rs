//! Primaries of a Cluster that change places or die under load: in good order, by force, and by the Cluster's
//! own election. Every result that a caller got is true afterwards, of the history that survived.

mod fault_harness;

use emberkeep_testkit::{Flavor, RedisCluster, key_slot, report};
use fault_harness::*;
use std::time::{Duration, Instant};

on_both_servers! {
    primaries_change_places_in_good_order,
    a_dead_primary_is_replaced_by_force,
    a_dead_primary_is_replaced_by_an_election,
}

/// The arena of those who die.
const NAME: &str = "dies";

fn slot_of(name: &str) -> u16 {
    key_slot(format!("{{{name}}}").as_bytes())
}

/// The range of slots that an arena lives in, of three.
fn range_of(name: &str) -> usize {
    (slot_of(name) as usize * 3) / 16_384
}

/// A failover in good order. Redis gives it up without a word when the replica loses its primary in the
/// middle of it, so it is asked for until it has happened.
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
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn primaries_change_places_in_good_order(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 1) else { return };
    let load = Load::on(Deployment::Cluster(cluster), "", vec![arena("swap")], LONG).await;
    for _ in 0..3 {
        change_places(load.deployment.cluster(), range_of("swap")).await;
        load.wait_ready();
        load.some_time(300).await;
    }
    let outcome = load.end("3 failovers in good order").await;
    // In good order nothing is lost: the old primary stops writing until the new one has everything.
    outcome.audit.assert_exact();
    assert_eq!(outcome.refused(), 0);
}

/// How the heir of a dead primary comes to power.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Heir {
    /// CLUSTER FAILOVER TAKEOVER, at once and without a vote.
    Forced,
    /// The other primaries notice and vote, by themselves.
    Elected,
}

async fn a_dead_primary_is_replaced_by_force(flavor: Flavor) {
    a_primary_dies(flavor, Heir::Forced).await;
}

async fn a_dead_primary_is_replaced_by_an_election(flavor: Flavor) {
    a_primary_dies(flavor, Heir::Elected).await;
}

/// The replica is cut off first, so that the dead primary takes acknowledged hits with it. With ?wait=1 none
/// of those was acknowledged; everything else holds in either case.
async fn a_primary_dies(flavor: Flavor, heir: Heir) {
    for options in ["", "?wait=1"] {
        let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 1) else { return };
        let load = Load::on(Deployment::Cluster(cluster), options, vec![arena(NAME)], LONG).await;
        let cluster = load.deployment.cluster();
        let (primary, replica) = (cluster.primary_of_range(range_of(NAME)), 3 + range_of(NAME));
        let cut_off_at = Instant::now();
        // Stopped, so that it does not connect again; what it was sent before is not taken from it.
        cluster.nodes()[replica].pause();
        cluster.nodes()[primary].client().call(&["CLIENT", "KILL", "TYPE", "replica"]);
        load.some_time(50).await;
        cluster.nodes()[primary].kill9();
        cluster.nodes()[replica].resume();
        let vacancy = tokio::task::block_in_place(|| succeed(cluster, replica, heir));
        // With ?wait=1 no replica is left that could confirm, until the dead one comes back as a replica.
        load.some_time(300).await;
        cluster.nodes()[primary].restart().expect("it comes back");
        load.wait_ready();
        let well_at = Instant::now();
        let back = load.until_more(200).await;
        let waits = if options.is_empty() { "without waiting" } else { "with ?wait=1" };
        let title = format!("a primary died, heir {heir:?} after {vacancy:?}, {waits}");
        let outcome = load.end(&title).await;
        judge(&outcome, cut_off_at, well_at, options);
        report!("  200 more hits within {back:?} after all was well again");
    }
}

/// Waits until the replica is the heir; returns how long there was none.
fn succeed(cluster: &RedisCluster, replica: usize, heir: Heir) -> Duration {
    let since = Instant::now();
    match heir {
        Heir::Forced => assert_eq!(cluster.failover(range_of(NAME)), replica),
        Heir::Elected => cluster.await_owner(slot_of(NAME), replica),
    }
    since.elapsed()
}

/// Compares the callers' results with the history that survived.
fn judge(outcome: &LoadReport, cut_off_at: Instant, well_at: Instant, options: &str) {
    outcome.audit.assert_nothing_wrong();
    let ledger = &outcome.ledgers[0];
    assert_eq!(ledger.refused(), 0, "the deadline outlasts the vacancy: {:?}", ledger.errors());
    for (id, entry) in &ledger.entries {
        if let CallResult::Unknown(error) = &entry.result {
            assert!(entry.ended >= cut_off_at, "{id}: {error}, but all was well");
            assert!(entry.started <= well_at, "{id}: {error}, but all was well again");
        }
    }
    let (lost, of_late) = (outcome.audit.missing, gone_since(outcome, cut_off_at));
    report!(
        "  {lost} acknowledged hits gone with the dead primary, {} of them older than the cut",
        lost - of_late
    );
    assert_eq!(lost, of_late, "a hit is gone that the replica should have had");
    match options {
        "" => assert!(lost > 0, "nothing was under way: this proves nothing"),
        _ => assert_eq!(lost, 0, "a replica had confirmed them"),
    }
}

/// Acknowledged hits that are gone and were answered after the replica was cut off, or shortly before:
/// replication does not wait.
fn gone_since(outcome: &LoadReport, cut_off_at: Instant) -> usize {
    let key = format!("{{{NAME}}}hits:{NAME}");
    let list = outcome.deployment.cluster().client_of_key(&key).call(&["LRANGE", &key, "0", "-1"]);
    let present: std::collections::HashSet<String> = list.items().iter().map(|id| id.text()).collect();
    let shortly = Duration::from_millis(100);
    let gone = |id: &String, entry: &Entry| {
        entry.result == CallResult::Done && !present.contains(id) && entry.ended + shortly >= cut_off_at
    };
    outcome.ledgers[0].entries.iter().filter(|(id, entry)| gone(id, entry)).count()
}
