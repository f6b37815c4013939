//! Walks over all keys while servers restart, slots move and nodes come and go: every key that lives
//! throughout is returned, or the cursor is refused and the walk begins anew.

mod fault_harness;

use emberkeep_hot::engine::{Cursor, MemberCursor};
use emberkeep_hot::{Error, Store};
use emberkeep_schema::{Set, Utf8, family};
use emberkeep_testkit::{Flavor, RedisCluster, RedisServer, key_slot, report, require};
use fault_harness::*;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

family! {
    /// A large set.
    pub CROWD = "crowd:{arena}" { kind: Set<Utf8>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}

on_both_servers! {
    a_node_that_leaves_takes_no_key_with_it,
    a_slot_that_moves_takes_no_key_with_it,
    a_failover_takes_no_key_with_it,
    a_restart_takes_no_key_with_it,
}

const KEYS: usize = 1_500;
const PAGE: usize = 20;

/// Writes keys into partitions of these names by plain commands.
fn fill(cluster: &RedisCluster, tags: &[String]) -> BTreeSet<String> {
    let keys: BTreeSet<String> = (0..KEYS).map(|n| format!("{{{}}}key:{n}", tags[n % tags.len()])).collect();
    for tag in tags {
        let mut client = cluster.client_of_key(format!("{{{tag}}}"));
        for key in keys.iter().filter(|key| key.starts_with(&format!("{{{tag}}}"))) {
            assert!(client.call(&["SET", key, "x"]).is_ok());
        }
    }
    keys
}

/// Names whose slot lives in this range, of three.
fn tags(ranges: &[usize]) -> Vec<String> {
    let range_of = |tag: &String| key_slot(tag.as_bytes()) as usize * 3 / 16_384;
    (0..).map(|n| format!("t{n}")).filter(|tag| ranges.contains(&range_of(tag))).take(30).collect()
}

/// A walk, and the keys it has found since it last began.
struct Walk {
    store: Store,
    from: Option<Cursor>,
    found: BTreeSet<String>,
    begun: usize,
}

impl Walk {
    fn new(store: Store) -> Walk {
        Walk { store, from: None, found: BTreeSet::new(), begun: 1 }
    }

    /// One page; `false` after the last. A refused cursor begins the walk anew, an engine that cannot now is
    /// asked later.
    async fn page(&mut self) -> bool {
        match self.store.engine().scan(self.from, b"*", PAGE).await {
            Ok(page) => {
                self.found.extend(page.keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()));
                self.from = page.next;
                return self.from.is_some();
            }
            Err(Error::Invalid { what: "cursor", problem }) => {
                assert!(problem.contains("without a cursor"), "{problem}");
                self.found.clear();
                (self.from, self.begun) = (None, self.begun + 1);
            }
            Err(Error::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(other) => panic!("{other}"),
        }
        true
    }

    async fn pages(&mut self, count: usize) {
        for _ in 0..count {
            assert!(self.page().await, "the walk is not over");
        }
    }

    /// Walks on to the end; every key was returned.
    async fn end(mut self, keys: &BTreeSet<String>, title: &str) {
        let deadline = Instant::now() + LONG;
        while self.page().await {
            assert!(Instant::now() < deadline, "the walk does not end");
        }
        let missed = keys.difference(&self.found).count();
        report!("scan, {title}: {} keys, {missed} missed, begun {} times", keys.len(), self.begun);
        assert_eq!(missed, 0);
        assert!(self.begun < 10, "begun {} times", self.begun);
    }
}

async fn a_node_that_leaves_takes_no_key_with_it(flavor: Flavor) {
    for leaving in 0..3 {
        let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 0) else { return };
        let stays = (leaving + 1) % 3;
        let keys = fill(&cluster, &tags(&[stays, (leaving + 2) % 3]));
        let mut walk = Walk::new(store_on(&cluster_url(&cluster.ports())).await);
        walk.pages(KEYS / PAGE / 2).await;
        hand_over(&cluster, leaving, stays);
        cluster.nodes()[leaving].kill9();
        // Any traffic of its former slots finds the new map.
        let moved = walk.store.scope(arena(&tags(&[leaving])[0]));
        assert_eq!(moved.get(&SUM.key()).await, Ok(None));
        walk.end(&keys, &format!("{flavor:?}, node {leaving} of 3 leaves")).await;
    }
}

/// All slots of an empty node, at once.
fn hand_over(cluster: &RedisCluster, from: usize, to: usize) {
    let edge = |range: usize| (16_384 * range).div_ceil(3);
    let (first, last) = (edge(from).to_string(), (edge(from + 1) - 1).to_string());
    for node in cluster.nodes() {
        assert!(node.client().call(&["CLUSTER", "DELSLOTSRANGE", &first, &last]).is_ok());
    }
    assert!(cluster.nodes()[to].client().call(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).is_ok());
    cluster.await_owner(edge(from) as u16, to);
    cluster.wait_ready().expect("all slots are served");
}

/// From a node that is still to come to one that was walked already.
async fn a_slot_that_moves_takes_no_key_with_it(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 0) else { return };
    let keys = fill(&cluster, &tags(&[0, 1, 2]));
    let home = |key: &String| cluster.primary_of_key(key);
    let mut walk = Walk::new(store_on(&cluster_url(&cluster.ports())).await);
    while walk.found.iter().map(home).collect::<BTreeSet<_>>().len() < 2 {
        walk.pages(1).await;
    }
    let homes: BTreeSet<usize> = walk.found.iter().map(home).collect();
    let to_come = (0..3).find(|node| !homes.contains(node)).expect("a third node");
    let walked = *homes.first().expect("a node");
    let key = keys.iter().find(|key| home(key) == to_come).expect("keys on every node");
    let migration = cluster.begin_migration(key_slot(key.as_bytes()), walked);
    while migration.move_keys(100) > 0 {}
    // Everything has moved and no server says so: no walk may end now.
    let between = Instant::now();
    while between.elapsed() < Duration::from_secs(3) {
        assert!(walk.page().await, "the walk ended with a slot on its way");
    }
    migration.finish();
    walk.end(&keys, &format!("{flavor:?}, a slot moves to a node that was walked")).await;
}

async fn a_failover_takes_no_key_with_it(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 1) else { return };
    let keys = fill(&cluster, &tags(&[0, 1, 2]));
    for range in 0..3 {
        let mut walk = Walk::new(store_on(&cluster_url(&cluster.ports())).await);
        walk.pages(KEYS / PAGE / 6 * (1 + 2 * range)).await;
        cluster.failover(range);
        walk.end(&keys, &format!("{flavor:?}, a replica takes over range {range}")).await;
    }
}

/// Another process has another seed for its hash tables: its cursors count otherwise.
async fn a_restart_takes_no_key_with_it(flavor: Flavor) {
    let options = RedisServer::options().flavor(flavor).appendonly();
    let Some(server) = require(options.start()) else { return };
    let keys: BTreeSet<String> = (0..KEYS).map(|n| format!("key:{n}")).collect();
    let mut client = server.client();
    for key in &keys {
        assert!(client.call(&["SET", key, "x"]).is_ok());
        client.call(&["SADD", "crowd:c", key]);
    }
    let store = store_on(&server.url()).await;
    let mut walk = Walk::new(store.clone());
    walk.pages(KEYS / PAGE / 2).await;
    let crowd = store.scope(arena("c"));
    let (mut members, mut from): (BTreeSet<String>, Option<MemberCursor>) = Default::default();
    for page in 0.. {
        let found = crowd.members(&CROWD.key(), from.take(), PAGE).await.expect("a page");
        members.extend(found.members.into_iter().filter_map(|member| member.known()));
        from = found.next;
        if page == 20 {
            server.restart().expect("it comes back");
        }
        if from.is_none() {
            break;
        }
    }
    assert_eq!(keys.difference(&members).count(), 0, "members that were there throughout");
    walk.end(&keys, &format!("{flavor:?}, the server restarts")).await;
}
