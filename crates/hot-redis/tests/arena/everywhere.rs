//! One fault, every place.

/// Makes two tests of each fault, an async function of a [`Place`](super::Place): on one server and on a Cluster of
/// three, both started with the options behind it.
#[macro_export]
macro_rules! everywhere {
    ($($fault:ident: $options:expr),* $(,)?) => {
        mod standalone {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fault() {
                    let Some(place) = Place::alone($options) else { return };
                    super::$fault(place).await;
                }
            )*
        }
        mod cluster {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fault() {
                    let Some(place) = Place::three($options) else { return };
                    super::$fault(place).await;
                }
            )*
        }
    };
}
