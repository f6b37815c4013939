//! Resident memory per session with a deadline: a process of ours beside a Redis of its own.

use super::vs_redis::fill;
use crate::peer::Peer;
use crate::row::{Goal, Row};
use crate::suite::Bench;
use crate::worker::memory::Grown;
use crate::worker_processes::together;
use anyhow::{Context, Result};
use std::time::Duration;

const SESSIONS: u64 = 1_000_000;
const SESSIONS_QUICK: u64 = 200_000;
/// Redis looks at its own memory every 100 ms.
const REDIS_LOOKS: Duration = Duration::from_millis(400);

/// Bytes per session. One round: the figure hardly varies.
pub(crate) fn memory(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let sessions = if bench.quick { SESSIONS_QUICK } else { SESSIONS };
    let arguments = ["memory", "--sessions", &sessions.to_string()].map(str::to_owned);
    let ours = || {
        let found: Vec<Grown> = together(&[arguments.to_vec()])?;
        let grown = found.first().context("one process gives one answer")?;
        Ok((grown.after_bytes - grown.before_bytes) as f64 / sessions as f64)
    };
    let rounds = std::mem::replace(&mut bench.rounds, 1);
    let taken = bench.take_turns(name, "bytes", ours, || redis_bytes(sessions));
    bench.rounds = rounds;
    let (ours, peer) = taken?;
    let row = Row::new(name, "bytes", &ours, &peer, Goal::RatioAtMost(1.0));
    let note = format!("{sessions} sessions of 220 bytes under keys of 21 to 26 bytes");
    Ok(vec![row.beside("used_memory_rss of a Redis with the same keys and PX").note(note)])
}

fn redis_bytes(sessions: u64) -> Result<f64> {
    let redis = Peer::start(None)?;
    let before = redis.rss_bytes()?;
    fill(&redis, sessions)?;
    std::thread::sleep(REDIS_LOOKS);
    Ok(redis.rss_bytes()?.saturating_sub(before) as f64 / sessions as f64)
}
