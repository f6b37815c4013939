//! From ten thousand to five million sessions: how much slower does an operation become, compared with how much
//! slower a bare map becomes? (Both leave the processor's caches.)

use super::get_set::Both;
use crate::measure::{Counts, Samples};
use crate::row::{Goal, Row, short};
use crate::suite::{Bench, say};
use anyhow::Result;

const FEW: u64 = 10_000;
const MANY: u64 = 5_000_000;
const MANY_QUICK: u64 = 500_000;

/// Nanoseconds of ours and of the map.
struct Times {
    get: (Samples, Samples),
    set: (Samples, Samples),
}

/// GET and SET at both sizes.
pub(crate) fn growth(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let many = if bench.quick { MANY_QUICK } else { MANY };
    let both = Both::empty()?;
    both.fill(0..FEW)?;
    let small = times(bench, &both, &format!("{name} {}", short(FEW as f64)), FEW)?;
    say(&format!("{name}  storing {} sessions twice", short(many as f64)));
    both.fill(FEW..many)?;
    let large = times(bench, &both, &format!("{name} {}", short(many as f64)), many)?;
    let row = |what: &str, small: &(Samples, Samples), large: &(Samples, Samples)| {
        let (ours, peer) = (large.0.over(&small.0), large.1.over(&small.1));
        let size = short(many as f64);
        let note = format!(
            "ours {} → {} ns, map {} → {} ns",
            short(small.0.median()),
            short(large.0.median()),
            short(small.1.median()),
            short(large.1.median())
        );
        Row::new(&format!("{name}-{what}"), "x slower", &ours, &peer, Goal::RatioAtMost(1.3))
            .beside(format!("the bare map's own growth from {} to {size} keys", short(FEW as f64)))
            .note(note)
    };
    Ok(vec![row("get", &small.get, &large.get), row("set", &small.set, &large.set)])
}

fn times(bench: &Bench, both: &Both, name: &str, sessions: u64) -> Result<Times> {
    let time = bench.sample;
    let get = bench.take_turns(
        &format!("{name} get"),
        "ns/op",
        || both.our_get(Counts::Core, time, sessions),
        || both.peer_get(Counts::Core, time, sessions),
    )?;
    let set = bench.take_turns(
        &format!("{name} set"),
        "ns/op",
        || both.our_set(Counts::Core, time, sessions),
        || both.peer_set(Counts::Core, time, sessions),
    )?;
    Ok(Times { get, set })
}
