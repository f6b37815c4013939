//! Routing, migration and failover of a real cluster.

use std::time::{Duration, Instant};

use emberkeep_testkit::{Flavor, RedisCluster, key_slot, require, shared_cluster};

#[test]
fn keys_are_served_where_their_slot_is() {
    let Some(cluster) = shared_cluster() else { return };
    let mut served = [0; 3];
    for i in 0..60 {
        let key = format!("routed:{i}");
        let home = cluster.primary_of_key(&key);
        assert!(cluster.nodes()[home].client().call(&["SET", &key, "v"]).is_ok());
        let elsewhere = cluster.nodes()[(home + 1) % 3].client().call(&["GET", &key]).text();
        let moved = format!("MOVED {} 127.0.0.1:{}", key_slot(key.as_bytes()), cluster.ports()[home]);
        assert_eq!(elsewhere, moved);
        served[home] += 1;
    }
    assert!(served.iter().all(|n| *n > 0), "{served:?}");
}

#[test]
fn our_slots_are_the_servers_slots() {
    let Some(cluster) = shared_cluster() else { return };
    let mut client = cluster.nodes()[0].client();
    for key in ["", "a", "{", "{}", "a{}b", "{x}", "a{x}b{y}", "{{x}}", "}x{", "foo{bar"] {
        let theirs = client.call(&["CLUSTER", "KEYSLOT", key]).int();
        assert_eq!(theirs, i64::from(key_slot(key.as_bytes())), "{key:?}");
    }
}

#[test]
fn a_slot_between_two_nodes_answers_ask_and_tryagain() {
    let Some(cluster) = shared_cluster() else { return };
    let (here, there) = ("{migrating}:here", "{migrating}:there");
    let home = cluster.primary_of_key(here);
    let target = (home + 1) % 3;
    let mut source = cluster.nodes()[home].client();
    assert!(source.call(&["MSET", here, "1", there, "2"]).is_ok());

    let migration = cluster.begin_migration(key_slot(here.as_bytes()), target);
    assert_eq!((migration.from(), migration.to()), (home, target));
    assert_eq!(source.call(&["GET", here]).text(), "1");
    assert!(migration.move_key(there));
    assert!(!migration.move_key(there), "it is no longer at the source");
    assert!(source.call(&["GET", there]).is_error("ASK"));
    assert!(source.call(&["MGET", here, there]).is_error("TRYAGAIN"));
    let mut importing = cluster.nodes()[target].client();
    assert!(importing.call(&["GET", there]).is_error("MOVED"));
    assert!(importing.call(&["ASKING"]).is_ok());
    assert_eq!(importing.call(&["GET", there]).text(), "2");

    migration.finish();
    assert_eq!(cluster.primary_of_key(here), target);
    assert!(source.call(&["GET", here]).is_error("MOVED"));
    assert_eq!(importing.call(&["MGET", here, there]).items().len(), 2);
}

#[test]
fn primaries_fail_over_in_order_by_force_and_by_themselves() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 1) else { return };
    assert_eq!(cluster.failover(0), 3, "node 3 is the replica of range 0");
    assert_eq!(cluster.primary_of_range(0), 3);

    assert_eq!(cluster.kill9_primary(1), 1);
    assert_eq!(cluster.failover(1), 4);
    cluster.wait_ready().unwrap();

    assert_eq!(cluster.kill9_primary(2), 2);
    cluster.await_owner(16_383, 5);
    cluster.wait_ready().unwrap();
    let key = (0..).map(|i| format!("k{i}")).find(|k| key_slot(k.as_bytes()) > 10_923).unwrap();
    assert!(cluster.client_of_key(&key).call(&["SET", &key, "v"]).is_ok());

    cluster.nodes()[2].restart().unwrap();
    cluster.wait_ready().unwrap();
    assert_eq!(cluster.primary_of_range(2), 5, "who comes back is a replica");
}

#[test]
fn valkey_forms_a_cluster_too() {
    let Some(cluster) = require(RedisCluster::start_flavor(Flavor::Valkey, 3, 0)) else { return };
    let key = "hello";
    assert!(cluster.client_of_key(key).call(&["SET", key, "v"]).is_ok());
}

#[test]
fn a_cluster_is_up_within_seconds() {
    let started = Instant::now();
    let Some(cluster) = emberkeep_testkit::cluster(3, 1) else { return };
    assert_eq!(cluster.urls().len(), 6);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
