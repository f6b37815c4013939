//! Lost requests, lost replies and delays between us and a reachable server: every hit that was reported as
//! made is there once, every hit that was reported as not made is not there, and nothing is left unknown.

mod fault_harness;

use emberkeep_hot::Store;
use emberkeep_testkit::{FaultProxy, Flavor, RedisCluster, Resp, key_slot, report};
use fault_harness::*;
use std::time::Duration;

on_both_servers! {
    standalone_nothing_is_lost_and_nothing_is_made_twice,
    cut_at_any_moment,
    cluster_nothing_is_lost_and_nothing_is_made_twice,
}

const ARENAS: usize = 6;
const TASKS: usize = 4;

/// Random losses of commits, receipts and reads, at these rates.
fn disturb(proxy: &FaultProxy, seed: u64) {
    proxy.only_requests_with("EVALSHA");
    proxy.random_drops(seed, 0.06, 0.06);
    proxy.delay(Duration::from_micros(300), Duration::from_micros(300));
}

fn calm(proxy: &FaultProxy) {
    proxy.random_drops(0, 0.0, 0.0);
}

async fn attack_all(store: &Store, hits: usize) -> Vec<(Arena, Ledger)> {
    let mut running = Vec::new();
    for i in 0..ARENAS {
        let scope = store.scope(arena(format!("a{i}"))).deadline(Duration::from_secs(10));
        running.push(
            async move { (arena(format!("a{i}")), assault(scope, "t", TASKS, Until::Hits(hits)).await) },
        );
    }
    futures_util::future::join_all(running).await
}

/// Audits every arena and prints one line.
fn conclude(
    title: &str,
    store: &Store,
    proxies: &[FaultProxy],
    all: &[(Arena, Ledger)],
    mut client: impl FnMut(&Arena) -> Resp,
) {
    let mut total = Audit { consistent: true, ..Audit::default() };
    let (mut hits, mut unknown, mut refused, mut slowest) = (0, 0, 0, Duration::ZERO);
    for (arena, ledger) in all {
        total.merge(&audit(&mut client(arena), store.key_layout(), arena, ledger));
        hits += ledger.entries.len();
        unknown += ledger.unknown();
        refused += ledger.refused();
        slowest = slowest.max(ledger.slowest());
    }
    let lost = proxies
        .iter()
        .map(FaultProxy::counts)
        .fold((0, 0), |sum, counts| (sum.0 + counts.replies_dropped, sum.1 + counts.requests_dropped));
    report!(
        "faults {title}: {hits} hits, {} replies lost, {} requests lost, {} receipts asked, refused {refused}, outcome unknown {unknown}, slowest {slowest:?}; {total}",
        lost.0,
        lost.1,
        store.stats().unwrap().receipts_asked,
    );
    total.assert_exact();
    assert!(lost.0 > 20 && lost.1 > 20, "too few faults to prove anything: {lost:?}");
    assert_eq!(unknown, 0, "the server was reachable all the time");
    assert_eq!(refused, 0, "the deadline was long enough for every hit");
}

async fn standalone_nothing_is_lost_and_nothing_is_made_twice(flavor: Flavor) {
    let Some(server) = emberkeep_testkit::server_of(flavor) else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let store = store_on(&proxy.url()).await;
    disturb(&proxy, 0xE3BE);
    let all = attack_all(&store, 200).await;
    calm(&proxy);
    conclude("standalone", &store, &[proxy], &all, |_| server.client());
}

/// Everything in flight is cut at once, at any moment, and the server is gone for moments.
async fn cut_at_any_moment(flavor: Flavor) {
    let Some(server) = emberkeep_testkit::server_of(flavor) else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let store = store_on(&proxy.url()).await;
    proxy.delay(Duration::from_millis(2), Duration::from_millis(2));
    let stop = flag();
    let scope = store.scope(arena("cut")).deadline(Duration::from_secs(10));
    let load = tokio::spawn(assault(scope, "t", 8, Until::Flag(stop.clone())));
    for n in 0..100_u64 {
        // Long enough to connect, at ever other moments of a commit.
        tokio::time::sleep(Duration::from_micros(20_000 + n * 3_701 % 30_000)).await;
        match n % 5 {
            0 => proxy.refuse(),
            _ => proxy.cut_all(),
        }
        tokio::time::sleep(Duration::from_micros(500)).await;
        proxy.accept();
    }
    stop.store(true, std::sync::atomic::Ordering::Release);
    let ledger = load.await.expect("the load ends");
    let audit = audit(&mut server.client(), store.key_layout(), &arena("cut"), &ledger);
    report!(
        "faults cut: {} hits, {} cuts, {} refused connections, {} receipts asked, outcome unknown {}, slowest {:?}; {audit}",
        ledger.entries.len(),
        proxy.counts().cuts,
        proxy.counts().refused,
        store.stats().unwrap().receipts_asked,
        ledger.unknown(),
        ledger.slowest(),
    );
    audit.assert_exact();
    assert_eq!((ledger.unknown(), ledger.refused()), (0, 0), "{:?}", ledger.errors());
    assert!(store.stats().unwrap().receipts_asked > 20, "too few commits were cut to prove anything");
}

async fn cluster_nothing_is_lost_and_nothing_is_made_twice(flavor: Flavor) {
    let Some(cluster) = emberkeep_testkit::cluster_of(flavor, 3, 0) else { return };
    let homes: Vec<usize> = (0..ARENAS).map(|i| cluster.primary_of_slot(slot(i))).collect();
    let proxies = announce_proxies(&cluster);
    let ports: Vec<u16> = proxies.iter().map(FaultProxy::port).collect();
    let store = store_on(&cluster_url(&ports)).await;
    proxies.iter().enumerate().for_each(|(i, proxy)| disturb(proxy, 0xC105 + i as u64));
    let all = attack_all(&store, 200).await;
    proxies.iter().for_each(calm);
    let mut index = 0;
    conclude("cluster", &store, &proxies, &all, |_| {
        index += 1;
        cluster.nodes()[homes[index - 1]].client()
    });
}

fn slot(arena: usize) -> u16 {
    key_slot(format!("{{a{arena}}}").as_bytes())
}

/// A proxy before every node, and every node tells clients the port of its proxy.
fn announce_proxies(cluster: &RedisCluster) -> Vec<FaultProxy> {
    let start = |node: &emberkeep_testkit::RedisServer| {
        let proxy = FaultProxy::start(node.address()).expect("a port is free");
        let port = proxy.port().to_string();
        assert!(node.client().call(&["CONFIG", "SET", "cluster-announce-port", &port]).is_ok());
        proxy
    };
    let proxies: Vec<FaultProxy> = cluster.nodes().iter().map(start).collect();
    let ports: Vec<i64> = proxies.iter().map(|proxy| proxy.port().into()).collect();
    let reported = |node: &emberkeep_testkit::RedisServer| {
        let slots = node.client().call(&["CLUSTER", "SLOTS"]);
        slots.items().iter().all(|range| ports.contains(&range.items()[2].items()[1].int()))
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !cluster.nodes().iter().all(reported) {
        assert!(std::time::Instant::now() < deadline, "the nodes do not learn the announced ports");
        std::thread::sleep(Duration::from_millis(20));
    }
    proxies
}
