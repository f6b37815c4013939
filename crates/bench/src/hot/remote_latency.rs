//! A process far from Redis (one millisecond more) beside a near one, all on one monster. A transaction of the far one has
//! to be of the moment when it arrives, or it is stale; the fairness lease keeps it from starving.

use super::redis_damage::{check, rate};
use crate::measure::Samples;
use crate::peer::Peer;
use crate::row::{Goal, Row, short};
use crate::suite::Bench;
use crate::worker::damage::{DamageArgs, Side, Tally};
use crate::worker_processes::{Child, together};
use anyhow::{Context, Result, ensure};
use std::cell::RefCell;

/// Added to each way of a request of the far process.
const WAY_MICROS: u32 = 500;
const NEAR_TASKS: u64 = 64;
const FAR_TASKS: u64 = 16;

/// Hits per second of the far process.
pub(crate) fn far(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let (_proxy, far_url) = proxy(&peer)?;
    let near_rates = [RefCell::new(Samples::default()), RefCell::new(Samples::default())];
    let sample = |side: Side| {
        let [near, far] = strike(&peer, &far_url, side, bench.sample.as_secs_f64())?;
        near_rates[side as usize].borrow_mut().push(rate(&[near]));
        Ok(rate(&[far]))
    };
    let (ours, theirs) = bench.take_turns(name, "hits/s", || sample(Side::Ours), || sample(Side::Lua))?;
    peer.remove_monsters(1)?;
    let [ours_near, theirs_near] = near_rates.map(|rates| short(rates.into_inner().median()));
    let note = format!("the near process had {ours_near} of ours and {theirs_near} of the peer's");
    let beside = format!("the document's Lua script, {}, as far away", peer.name());
    Ok(vec![Row::new(name, "hits/s", &ours, &theirs, Goal::RatioAtLeast(0.2)).beside(beside).note(note)])
}

/// A proxy in a process of its own, and the URL of the server behind it.
fn proxy(peer: &Peer) -> Result<(Child, String)> {
    let target = peer.url().strip_prefix("redis://").context("a proxy needs a plain redis:// address")?;
    ensure!(!target.contains('@'), "a proxy needs an address without a password");
    let mut proxy = Child::start(&["proxy".to_owned(), target.to_owned()])?;
    let address = proxy.hear()?;
    proxy.tell(&format!("delay {WAY_MICROS} {WAY_MICROS}"))?;
    ensure!(proxy.hear()? == "ok", "the proxy does not delay");
    Ok((proxy, format!("redis://{address}")))
}

fn strike(peer: &Peer, far_url: &str, side: Side, seconds: f64) -> Result<[Tally; 2]> {
    peer.place_monsters(1, 0)?;
    let args = |number, url: &str, tasks| DamageArgs {
        url: url.to_owned(),
        side,
        tenant: peer.tenant.0,
        keys: 1,
        tasks,
        seconds,
        keep: 0,
        number,
    };
    let near = args(0, peer.url(), NEAR_TASKS).words();
    let found: Vec<Tally> = together(&[near, args(1, far_url, FAR_TASKS).words()])?;
    check(peer, 1, &found)?;
    found.try_into().ok().context("two processes give two answers")
}
