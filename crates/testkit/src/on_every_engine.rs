//! The runners of cases: async functions of a `Store`, or of two, each of which brings a partition of its
//! own.

/// Runs cases on the embedded engine (a test each), then on one that checks their closures, on a real Redis and
/// on a real Redis Cluster (one test for all of them, which says how many there are and names those that
/// fail).
///
/// `on_every_engine!(mod ballots = cases::ballot { one_vote_each, a_late_vote });` runs
/// `cases::ballot::one_vote_each` and the other one. The calling crate needs `emberkeep-hot` and
/// `emberkeep-hot-redis`: this one depends on nothing it helps to test. `@in [hot] [redis]` before `mod` names them
/// by other paths.
#[macro_export]
macro_rules! on_every_engine {
    (mod $($suite:tt)+) => {
        $crate::on_every_engine! { @in [::emberkeep_hot] [::emberkeep_hot_redis] mod $($suite)+ }
    };
    (@in [$($hot:tt)+] [$($redis:tt)+] mod $suite:ident = $($cases:ident)::+ { $($case:ident),* $(,)? }) => {
        mod $suite {
            use super::$($cases)::+ as cases;
            use $($hot)+::{Store, embedded::Embedded};
            use std::io::Write as _;

            $(
                #[test]
                fn $case() {
                    $crate::block_on(async {
                        cases::$case(Store::new(std::sync::Arc::new(Embedded::in_memory()))).await;
                    });
                }
            )*

            async fn on_server(url: &str) -> Store {
                let engine = $($redis)+::RedisEngine::connect(url).await;
                Store::new(engine.expect("the server of the test is up"))
            }

            /// Runs every case, one after another, on one store.
            async fn run_all(engine: &str, store: Store) {
                let started = std::time::Instant::now();
                let (mut count, mut failed) = (0, Vec::new());
                $(
                    count += 1;
                    // A task of its own catches the panic: one run shows everything that is wrong.
                    if $crate::tokio::spawn(cases::$case(store.clone())).await.is_err() {
                        failed.push(stringify!($case));
                    }
                )*
                let (suite, took) = (stringify!($suite), started.elapsed());
                // Straight to the descriptor: the test harness would swallow what the print macros write.
                let line = format!("{suite}: {count} cases on {engine}, {} failed, {took:.1?}", failed.len());
                let _ = writeln!(std::io::stderr(), "{line}");
                assert!(failed.is_empty(), "failed on {engine}: {failed:#?}");
            }

            #[test]
            fn every_case_with_closures_checked() {
                let engine = Embedded::builder().check_closures(true).open().expect("nothing to fail");
                $crate::block_on(run_all("embedded, closures checked", Store::new(std::sync::Arc::new(engine))));
            }

            #[test]
            fn every_case_on_redis() {
                let Some(server) = $crate::shared_redis() else { return };
                $crate::block_on(async { run_all("redis", on_server(&server.fresh_db()).await).await });
            }

            #[test]
            fn every_case_on_a_cluster() {
                let Some(cluster) = $crate::shared_cluster() else { return };
                $crate::block_on(async { run_all("cluster", on_server(&cluster.url()).await).await });
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
    (mod $($suite:tt)+) => {
        $crate::on_two_connections! { @in [::emberkeep_hot] [::emberkeep_hot_redis] mod $($suite)+ }
    };
    (@in [$($hot:tt)+] [$($redis:tt)+] mod $suite:ident = $($cases:ident)::+ { $($case:ident),* $(,)? }) => {
        mod $suite {
            use super::$($cases)::+ as cases;
            use $($hot)+::Store;

            async fn connect(url: &str) -> Store {
                let engine = $($redis)+::RedisEngine::connect(url).await;
                Store::new(engine.expect("the server of the test is up"))
            }

            #[test]
            fn every_case_on_redis() {
                let Some(server) = $crate::shared_redis() else { return };
                $crate::block_on(async {
                    $(
                        let url = server.fresh_db();
                        cases::$case(connect(&url).await, connect(&url).await).await;
                    )*
                });
            }

            #[test]
            fn every_case_on_a_cluster() {
                let Some(cluster) = $crate::shared_cluster() else { return };
                let url = format!("{}?prefix={}/", cluster.url(), stringify!($suite));
                $crate::block_on(async {
                    $(cases::$case(connect(&url).await, connect(&url).await).await;)*
                });
            }
        }
    };
}

/// Runs a test on a runtime of two threads.
///
/// # Panics
/// When the future panics.
pub fn block_on<F: Future>(test: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("threads for a test");
    runtime.block_on(test)
}
