//! The monsters' behaviours on the embedded engine, a real Redis and a real Redis Cluster.

mod monsters_cases;

use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_testkit::{shared_cluster, shared_redis};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

macro_rules! on_embedded {
    ($($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            monsters_cases::$case(Store::new(Arc::new(Embedded::in_memory()))).await;
        }
    )* };
}

for_each_case!(on_embedded);

macro_rules! on_a_server {
    ($($case:ident)*) => {
        /// Runs every case, one after another, on the server of a URL.
        async fn run_all(engine: &str, url: &str) {
            let store = Store::new(RedisEngine::connect(url).await.expect("the server of the test is up"));
            let started = Instant::now();
            let (mut count, mut failed) = (0, Vec::new());
            $(
                count += 1;
                // A task of its own catches the panic: one run shows everything that is wrong.
                if tokio::spawn(monsters_cases::$case(store.clone())).await.is_err() {
                    failed.push(stringify!($case));
                }
            )*
            // Straight to the descriptor: the test harness would swallow what the print macros write.
            let line = format!("{count} cases on {engine}, {} failed, {:.1?}", failed.len(), started.elapsed());
            let _ = writeln!(std::io::stderr(), "{line}");
            assert!(failed.is_empty(), "failed on {engine}: {failed:#?}");
        }
    };
}

for_each_case!(on_a_server);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_on_redis() {
    let Some(server) = shared_redis() else { return };
    run_all("redis", &server.fresh_db()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_on_a_cluster() {
    let Some(cluster) = shared_cluster() else { return };
    let nodes: Vec<String> = cluster.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
    run_all("cluster", &format!("redis+cluster://{}", nodes.join(","))).await;
}
