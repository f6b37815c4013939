//! The runners of cases: async functions of a `Store`, or of two, each of which brings a partition of its
//! own.

/// Runs cases on the embedded engine (a test each), then on one that checks their closures, on a real Redis and
/// on a real Redis Cluster (one test for all of them, which says how many there are and names those that
/// fail).
///
/// `on_every_engine!(mod ballots = cases::ballot { one_vote_each, a_late_vote });` runs
/// `cases::ballot::one_vote_each` and the other one. The calling crate needs `emberkeep-hot`,
/// `emberkeep-hot-redis` and `tokio`: this one depends on nothing it helps to test.
#[macro_export]
macro_rules! on_every_engine {
    (mod $suite:ident = $($cases:ident)::+ { $($case:ident),* $(,)? }) => {
        mod $suite {
            use super::$($cases)::+ as cases;
            use emberkeep_hot::{Store, embedded::Embedded};
            use std::io::Write as _;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    cases::$case(Store::new(std::sync::Arc::new(Embedded::in_memory()))).await;
                }
            )*

            async fn on_server(url: &str) -> Store {
                let engine = emberkeep_hot_redis::RedisEngine::connect(url).await;
                Store::new(engine.expect("the server of the test is up"))
            }

            /// Runs every case, one after another, on one store.
            async fn run_all(engine: &str, store: Store) {
                let started = std::time::Instant::now();
                let (mut count, mut failed) = (0, Vec::new());
                $(
                    count += 1;
                    // A task of its own catches the panic: one run shows everything that is wrong.
                    if tokio::spawn(cases::$case(store.clone())).await.is_err() {
                        failed.push(stringify!($case));
                    }
                )*
                let (suite, took) = (stringify!($suite), started.elapsed());
                // Straight to the descriptor: the test harness would swallow what the print macros write.
                let line = format!("{suite}: {count} cases on {engine}, {} failed, {took:.1?}", failed.len());
                let _ = writeln!(std::io::stderr(), "{line}");
                assert!(failed.is_empty(), "failed on {engine}: {failed:#?}");
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn every_case_with_closures_checked() {
                let engine = Embedded::builder().check_closures(true).open().expect("nothing to fail");
                run_all("embedded, closures checked", Store::new(std::sync::Arc::new(engine))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn every_case_on_redis() {
                let Some(server) = $crate::shared_redis() else { return };
                run_all("redis", on_server(&server.fresh_db()).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn every_case_on_a_cluster() {
                let Some(cluster) = $crate::shared_cluster() else { return };
                let nodes: Vec<String> =
                    cluster.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
                let url = format!("redis+cluster://{}", nodes.join(","));
                run_all("cluster", on_server(&url).await).await;
            }
        }
    };
}

/// Runs cases of two stores on a real Redis and on a real Redis Cluster. Each store has an engine and
/// connections of its own, as two processes have: neither knows what the other one does.
///
/// `on_two_connections!(mod two_voters = cases::ballot { one_of_two_votes });` runs
/// `cases::ballot::one_of_two_votes` with two stores. On the Cluster, which has one database, the suite's
/// name is the prefix of its keys: cases beside it may sweep the whole store.
#[macro_export]
macro_rules! on_two_connections {
    (mod $suite:ident = $($cases:ident)::+ { $($case:ident),* $(,)? }) => {
        mod $suite {
            use super::$($cases)::+ as cases;
            use emberkeep_hot::Store;

            async fn connect(url: &str) -> Store {
                let engine = emberkeep_hot_redis::RedisEngine::connect(url).await;
                Store::new(engine.expect("the server of the test is up"))
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn every_case_on_redis() {
                let Some(server) = $crate::shared_redis() else { return };
                $(
                    let url = server.fresh_db();
                    cases::$case(connect(&url).await, connect(&url).await).await;
                )*
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn every_case_on_a_cluster() {
                let Some(cluster) = $crate::shared_cluster() else { return };
                let nodes: Vec<String> =
                    cluster.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
                let url = format!("redis+cluster://{}?prefix={}/", nodes.join(","), stringify!($suite));
                $(cases::$case(connect(&url).await, connect(&url).await).await;)*
            }
        }
    };
}
