//! Every case on the embedded engine.

use emberkeep_conformance::external::{External, TransactionsExternal};
use emberkeep_conformance::{Backend, Time, run_all};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_on_the_embedded_engine() {
    // 2026, so that deadlines look as they do in life.
    let clock = ManualClock::at(1_790_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().expect("nothing to fail");
    let store = Store::new(Arc::new(engine));
    let same = store.clone();
    let backend = Backend {
        name: "embedded",
        // One process owns the data: the second store is the same engine.
        other: store.clone(),
        store,
        external: Arc::new(move || Box::new(TransactionsExternal::new(&same)) as Box<dyn External>),
        time: Time::Manual(clock),
    };
    run_all(&backend).await;
}
