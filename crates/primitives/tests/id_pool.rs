//! The id pool's behaviours on the embedded engine.

mod id_pool_cases;

use emberkeep_hot::{Store, embedded::Embedded};
use std::sync::Arc;

macro_rules! on_embedded {
    ($($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            id_pool_cases::$case(Store::new(Arc::new(Embedded::in_memory()))).await;
        }
    )* };
}

for_each_case!(on_embedded);
