//! Each drop was handed to one caller.
//!
//! A drop moves its timer's last drop to the moment of its transaction, and the next one is at least a period later. So had one
//! drop been handed out twice, two of one timer would stand closer together; and had one been lost, a timer
//! would contain a drop that no call reported.

use super::state::StoreState;
use crate::background::DROP_PERIOD;
use crate::ledger::{Ledger, TimerBook};
use std::collections::HashMap;

pub(super) fn violations(ledger: &Ledger, state: &StoreState) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut last_reported = HashMap::new();
    for ((tenant, id, number), book) in ledger.timers() {
        let name = format!("drop timer {number} of monster {id} of tenant {tenant}");
        let times = in_order(book);
        if book.since.is_none() {
            wrong.push(format!("{name} dropped, and no call reported its registration"));
        }
        let closer = |pair: &&[i64]| pair[1] - pair[0] < DROP_PERIOD.as_millis() as i64;
        for pair in times.windows(2).filter(closer) {
            let apart = pair[1] - pair[0];
            wrong.push(format!(
                "{name}: two drops were handed out {apart} ms apart, its period is {DROP_PERIOD:?}"
            ));
        }
        last_reported.insert((*tenant, *id, *number), times.last().copied());
    }
    for (tenant, id, timer) in &state.timers {
        let reported = last_reported.get(&(*tenant, *id, timer.weapon_attack)).copied().flatten();
        if reported != Some(timer.last_drop_at_ms) {
            let stored = timer.last_drop_at_ms;
            wrong.push(format!(
                "the drop timer of monster {id} of tenant {tenant} dropped last at {stored}, calls reported {reported:?}"
            ));
        }
    }
    wrong.sort();
    wrong
}

/// Registration and drops, by time.
fn in_order(book: &TimerBook) -> Vec<i64> {
    let mut times: Vec<i64> = book.since.iter().chain(&book.drops).copied().collect();
    times.sort();
    times
}
