//! The targets of the storage document, one row each: what it asks for, what was measured, whether it is met.
//!
//! The document names a latency and a rate for each operation, of Redis for hot state and of ScyllaDB for history. Ours are
//! measured with both tiers in this process, and hot state on Redis as well. Callers wait for their replies, and the
//! latency is the 99th percentile of the calls of the same run.

mod hot;
mod tables;

pub(super) use hot::{hot, redis};
pub(super) use tables::history;

use crate::measure::{Samples, latencies};
use crate::row::{Goal, Row};
use crate::suite::say;
use anyhow::Result;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Callers at the same time.
const CALLERS: u64 = 16;

/// Calls in a second, and the 99th percentile of their milliseconds.
struct Found {
    rate: f64,
    p99_ms: f64,
}

/// What the document asks of an operation: below so many milliseconds, up to so many in a second.
struct Target {
    operation: &'static str,
    ms: f64,
    rate: f64,
}

/// Two rows: the latency and the rate.
fn rows(name: &str, target: &Target, found: &Found, note: &str) -> [Row; 2] {
    let of = |figure: f64| Samples::from_iter([figure]);
    let row = |what: &str, unit, ours, asked, goal| {
        let name = format!("{name}-{}{what}", target.operation);
        Row::new(&name, unit, &of(ours), &of(asked), goal).beside("the target of the document").note(note)
    };
    say(&format!("{name}  {}  {:.3} ms p99  {:.0}/s", target.operation, found.p99_ms, found.rate));
    [
        row("-p99", "ms", found.p99_ms, target.ms, Goal::AtMost(target.ms)),
        row("", "ops/s", found.rate, target.rate, Goal::AtLeast(target.rate)),
    ]
}

/// Calls of several callers, each behind its own last one, for the time.
fn measure<F>(
    runtime: &Runtime,
    time: Duration,
    callers: u64,
    call: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<Found>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    runtime.block_on(async {
        let (begun, mut all, mut micros) = (Instant::now(), JoinSet::new(), latencies());
        for caller in 0..callers {
            let call = call.clone();
            all.spawn(async move {
                let (mut number, mut micros) = (caller << 32, latencies());
                while begun.elapsed() < time {
                    let before = Instant::now();
                    call(number).await?;
                    micros.saturating_record(before.elapsed().as_micros() as u64);
                    number += 1;
                }
                anyhow::Ok(micros)
            });
        }
        while let Some(done) = all.join_next().await {
            micros += &done??;
        }
        let rate = micros.len() as f64 / begun.elapsed().as_secs_f64();
        Ok(Found { rate, p99_ms: micros.value_at_quantile(0.99) as f64 / 1e3 })
    })
}
