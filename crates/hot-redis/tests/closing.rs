//! The end of an engine: whatever is asked of it afterwards is refused, also by a future that was made
//! before.

mod fault_harness;

use emberkeep_hot::Error;
use emberkeep_hot::command::Write;
use emberkeep_hot::engine::{Engine, TransactionRequest};
use emberkeep_hot::tx::{RawTx, Transaction};
use emberkeep_hot_redis::RedisEngine;
use fault_harness::*;
use std::time::Duration;

/// Counts at a key.
struct Count;

impl Transaction for Count {
    fn run(&mut self, mut tx: RawTx<'_>) -> bool {
        tx.write("counted".into(), Write::IncrBy(1)).is_ok()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

fn order(deadline: Duration) -> TransactionRequest {
    TransactionRequest {
        partition: "p".into(),
        prefetched: vec![],
        transaction: Box::new(Count),
        deadline,
        seed: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_future_made_before_the_end_is_refused_after_it() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let engine = RedisEngine::connect(&server.url()).await.expect("the server is there");
    engine.run(order(LONG)).await.map(drop).expect("the engine is open");
    let late = engine.run(order(LONG));
    engine.close().await.expect("nothing to fail");
    assert_eq!(late.await.map(drop).expect_err("the engine is closed"), Error::Closed);
    assert_eq!(server.client().call(&["GET", "counted"]).text(), "1");
}

/// An order of any length is taken, also by those who call the engine itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_may_wait_for_ever() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let engine = RedisEngine::connect(&server.url()).await.expect("the server is there");
    engine.run(order(Duration::MAX)).await.map(drop).expect("the engine is open");
}
