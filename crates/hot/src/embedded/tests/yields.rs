//! A loop of transactions that never waits leaves its thread to other tasks by time, not by number.

use super::*;
use crate::limits::YIELD_EVERY;
use crate::store::Store;
use emberkeep_schema::{Number, Text, family, partition};
use std::sync::atomic::AtomicU32;
use std::time::Instant;

partition! {
    /// The one partition of this test.
    pub struct Everything = "everything";
}
family! {
    /// Transactions done.
    pub COUNT = "count" { kind: Text<Number<i64>>, partition: Everything, parts: (), ttl: persistent, owner: "test" }
}

#[tokio::test(flavor = "current_thread")]
async fn slow_transactions_alternate_with_another_task() {
    const TRANSACTIONS: u32 = 20;
    let scope = Store::new(Arc::new(Embedded::in_memory())).scope(Everything);
    let turns = Arc::new(AtomicU32::new(0));
    let counted = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..TRANSACTIONS {
        let slow = scope.transact(|tx| {
            let began = Instant::now();
            while began.elapsed() < YIELD_EVERY {
                std::hint::spin_loop();
            }
            tx.incr_by(&COUNT.key(), 1)
        });
        slow.await.unwrap();
    }
    // Each of them took the time after which a thread yields; the first one only starts its clock.
    let turns = turns.load(Ordering::Relaxed);
    assert!(turns >= TRANSACTIONS - 1, "{turns} turns of the other task in {TRANSACTIONS} transactions");
    other.abort();
}
