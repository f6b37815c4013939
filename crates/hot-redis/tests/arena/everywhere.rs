//! One fault, every place: Redis and Valkey, one server and a Cluster.

/// Makes four tests of each fault, an async function of a [`Place`](super::Place): on one server and on a Cluster of
/// three, of Redis and of Valkey, all started with the options behind it.
#[macro_export]
macro_rules! everywhere {
    ($($fault:ident: $options:expr),* $(,)?) => {
        everywhere!(@place standalone, alone, Redis, $($fault: $options),*);
        everywhere!(@place cluster, three, Redis, $($fault: $options),*);
        everywhere!(@place valkey_standalone, alone, Valkey, $($fault: $options),*);
        everywhere!(@place valkey_cluster, three, Valkey, $($fault: $options),*);
    };
    (@place $place:ident, $start:ident, $flavor:ident, $($fault:ident: $options:expr),*) => {
        mod $place {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fault() {
                    let options = $options.flavor(emberkeep_testkit::Flavor::$flavor);
                    let Some(place) = Place::$start(options) else { return };
                    super::$fault(place).await;
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
    (@flavor $place:ident, $flavor:ident, $($fault:ident),*) => {
        mod $place {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fault() {
                    super::$fault(emberkeep_testkit::Flavor::$flavor).await;
                }
            )*
        }
    };
}
