//! The same GET and SET in process, beside what one task of a service gets from Redis: one call after the other on
//! a pipelined connection.

use super::get_set::Both;
use crate::measure::{Counts, nanos_per_operation, per_second, scattered};
use crate::peer::{Peer, connect};
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::sessions::{SESSION_TTL, session, with_raw_key};
use crate::suite::Bench;
use anyhow::Result;
use redis::Cmd;
use std::hint::black_box;
use std::time::Duration;

const SESSIONS: u64 = 100_000;
const GOAL: Goal = Goal::RatioAtLeast(100.0);

/// Plain reads, as Redis answers them.
pub(crate) fn get(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Both::our_get, |player| {
        let mut command = redis::cmd("GET");
        with_raw_key(player, |key| {
            command.arg(key);
        });
        command
    })
}

/// SET with a deadline.
pub(crate) fn set(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let value = session(0);
    compare(bench, name, Both::our_set, move |player| set_command(player, &value))
}

/// `SET key value PX life`
pub(super) fn set_command(player: u64, value: &[u8]) -> Cmd {
    let mut command = redis::cmd("SET");
    with_raw_key(player, |key| {
        command.arg(key);
    });
    command.arg(value).arg("PX").arg(SESSION_TTL.as_millis() as u64);
    command
}

/// Stores sessions on a Redis.
pub(super) fn fill(peer: &Peer, sessions: u64) -> Result<()> {
    peer.call_each(sessions, |player, pipe| {
        pipe.add_command(set_command(player, &session(player)));
    })
}

fn compare(
    bench: &mut Bench,
    name: &str,
    ours: fn(&Both, Counts, Duration, u64) -> Result<f64>,
    command: impl Fn(u64) -> Cmd,
) -> Result<Vec<Row>> {
    let both = Both::empty()?;
    both.fill(0..SESSIONS)?;
    let peer = bench.redis()?;
    fill(&peer, SESSIONS)?;
    let runtime = runtime()?;
    let mut connection = runtime.block_on(connect(peer.url()))?;
    let (ours, theirs) = bench.take_turns(
        name,
        "ops/s",
        || ours(&both, Counts::Wall, bench.sample, SESSIONS).map(per_second),
        || {
            let nanos = runtime.block_on(nanos_per_operation(Counts::Wall, bench.sample, async |number| {
                let command = command(scattered(number) % SESSIONS);
                black_box(command.query_async::<redis::Value>(&mut connection).await?);
                Ok(())
            }));
            nanos.map(per_second)
        },
    )?;
    peer.call_each(SESSIONS, |player, pipe| {
        with_raw_key(player, |key| {
            pipe.cmd("UNLINK").arg(key);
        });
    })?;
    let beside = format!("{}, one task, one call after the other", peer.name());
    Ok(vec![Row::new(name, "ops/s", &ours, &theirs, GOAL).beside(beside)])
}
