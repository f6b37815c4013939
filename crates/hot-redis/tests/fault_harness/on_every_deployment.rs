//! One fault, every place: Redis and Valkey, one server and a Cluster.

/// Makes four tests of each fault, an async function of a [`Deployment`](super::Deployment): on one server
/// and on a Cluster of three, of Redis and of Valkey, all started with the options behind it.
#[macro_export]
macro_rules! on_every_deployment {
    ($($fault:ident: $options:expr),* $(,)?) => {
        on_every_deployment!(@deployment standalone, single, Redis, $($fault: $options),*);
        on_every_deployment!(@deployment cluster, cluster_of_three, Redis, $($fault: $options),*);
        on_every_deployment!(@deployment valkey_standalone, single, Valkey, $($fault: $options),*);
        on_every_deployment!(@deployment valkey_cluster, cluster_of_three, Valkey, $($fault: $options),*);
    };
    (@deployment $deployment:ident, $start:ident, $flavor:ident, $($fault:ident: $options:expr),*) => {
        mod $deployment {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fault() {
                    let options = $options.flavor(emberkeep_testkit::Flavor::$flavor);
                    let Some(deployment) = Deployment::$start(options) else { return };
                    super::$fault(deployment).await;
                }
            )*
        }
    };
}

/// Makes two tests of each async function of a [`Flavor`](emberkeep_testkit::Flavor): on Redis and on Valkey.
#[macro_export]
macro_rules! on_both_servers {
    ($($fault:ident),* $(,)?) => {
        on_both_servers!(@flavor redis, Redis, $($fault),*);
        on_both_servers!(@flavor valkey, Valkey, $($fault),*);
    };
    (@flavor $deployment:ident, $flavor:ident, $($fault:ident),*) => {
        mod $deployment {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fault() {
                    super::$fault(emberkeep_testkit::Flavor::$flavor).await;
                }
            )*
        }
    };
}
