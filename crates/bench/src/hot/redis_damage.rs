//! Damage on Redis: our transactions beside the document's own Lua script by EVALSHA, on the same server, in the same shape.
//!
//! Both sides run in processes of their own, on one pipelined connection each. After every sample the health that
//! the monsters lost is compared with what calls reported: a hit that was lost or counted twice fails the run.

use crate::measure::Samples;
use crate::peer::Peer;
use crate::row::{Goal, Row};
use crate::suite::Bench;
use crate::targets::LONG_MEMORY;
use crate::worker::damage::{DamageArgs, Side, Tally};
use crate::worker_processes::together;
use anyhow::Result;
use std::cell::RefCell;

/// A shape of load.
#[derive(Clone, Copy)]
struct Shape {
    keys: u64,
    processes: u64,
    tasks: u64,
    /// Entries that monsters begin with and keep.
    entries: usize,
}

/// One caller, one monster.
pub(crate) fn sequential(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Shape { keys: 1, processes: 1, tasks: 1, entries: 0 }, Goal::RatioAtLeast(1.0))
}

/// A boss, and 64 players of one server.
pub(crate) fn hot(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Shape { keys: 1, processes: 1, tasks: 64, entries: 0 }, Goal::RatioAtLeast(8.0))
}

/// A boss, and players of four servers.
pub(crate) fn hot_processes(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Shape { keys: 1, processes: 4, tasks: 16, entries: 0 }, Goal::RatioAtLeast(1.5))
}

/// A crowd of monsters.
pub(crate) fn some_keys(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Shape { keys: 64, processes: 1, tasks: 64, entries: 0 }, Goal::RatioAtLeast(1.4))
}

/// A crowd of monsters, four servers.
pub(crate) fn some_keys_processes(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Shape { keys: 64, processes: 4, tasks: 16, entries: 0 }, Goal::RatioAtLeast(1.3))
}

/// Callers hardly ever hit the same monster.
pub(crate) fn many_keys(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Shape { keys: 1_000, processes: 1, tasks: 64, entries: 0 }, Goal::RatioAtLeast(1.2))
}

/// Long fights: records of 20 kB.
pub(crate) fn long_memory(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    compare(bench, name, Shape { keys: 64, processes: 1, tasks: 64, entries: LONG_MEMORY }, Goal::None)
}

fn compare(bench: &mut Bench, name: &str, shape: Shape, goal: Goal) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let tallies = [RefCell::new(Vec::new()), RefCell::new(Vec::new())];
    let sample = |side: Side| {
        let found = strike(&peer, side, shape, bench.sample.as_secs_f64())?;
        let rate = rate(&found);
        tallies[side as usize].borrow_mut().push(found);
        Ok(rate)
    };
    let (ours, theirs) = bench.take_turns(name, "hits/s", || sample(Side::Ours), || sample(Side::Lua))?;
    peer.remove_monsters(shape.keys)?;
    let [ours_latency, theirs_latency] = tallies.map(|tallies| latencies(&tallies.into_inner()));
    let note = format!("ours {ours_latency}; peer {theirs_latency}");
    let beside = format!("the document's Lua script, {}", peer.name());
    Ok(vec![Row::new(name, "hits/s", &ours, &theirs, goal).beside(beside).note(note)])
}

fn strike(peer: &Peer, side: Side, shape: Shape, seconds: f64) -> Result<Vec<Tally>> {
    peer.place_monsters(shape.keys, shape.entries)?;
    let args = |number| DamageArgs {
        url: peer.url().to_owned(),
        side,
        tenant: peer.tenant.0,
        keys: shape.keys,
        tasks: shape.tasks,
        seconds,
        keep: shape.entries,
        number,
    };
    let children: Vec<Vec<String>> = (0..shape.processes).map(|number| args(number).words()).collect();
    let found: Vec<Tally> = together(&children)?;
    check(peer, shape.keys, &found)?;
    Ok(found)
}

/// Fails if a hit was lost or counted twice.
pub(super) fn check(peer: &Peer, keys: u64, found: &[Tally]) -> Result<()> {
    let dealt = found.iter().map(|tally| tally.dealt).sum();
    let kills = found.iter().map(|tally| tally.kills).sum();
    peer.check_monsters(keys, dealt, kills)
}

/// Hits per second of all processes together.
pub(super) fn rate(found: &[Tally]) -> f64 {
    found.iter().map(|tally| tally.hits as f64 / tally.seconds).sum()
}

/// Median p99 and highest maximum of each process, and what a hit cost it on a core.
fn latencies(rounds: &[Vec<Tally>]) -> String {
    let processes = rounds.first().map_or(0, Vec::len);
    let of = |process: usize| {
        let p99: Samples = rounds.iter().map(|round| round[process].p99_us as f64 / 1e3).collect();
        let max = rounds.iter().map(|round| round[process].max_us).max().unwrap_or(0);
        format!("{:.1}/{:.0}", p99.median(), max as f64 / 1e3)
    };
    let list: Vec<String> = (0..processes).map(of).collect();
    let cores: Samples = rounds.iter().flatten().map(|tally| tally.core_us).collect();
    format!("p99/max ms {}, core µs a hit {:.1}", list.join(" "), cores.median())
}
