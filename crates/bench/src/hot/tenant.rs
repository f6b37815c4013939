//! A tenant with a million living monsters, in process: what they cost, and how fast they still are.

use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::suite::Bench;
use crate::worker::tenant::Found;
use crate::worker_processes::together;
use anyhow::{Context, Result};

const MONSTERS: u64 = 1_000_000;
const MONSTERS_QUICK: u64 = 100_000;
/// The tenant beside it.
const FEW: u64 = 1_000;

/// Rates and memory, beside a small tenant. One round: loading takes long.
pub(crate) fn tenant(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let many = if bench.quick { MONSTERS_QUICK } else { MONSTERS };
    let seconds = bench.sample.as_secs_f64();
    crate::suite::say(&format!("{name}  {many} monsters, then {FEW}"));
    let (large, small) = (measured(many, seconds)?, measured(FEW, seconds)?);
    let row = |what: &str, unit, of: fn(&Found) -> f64| {
        let one = |found: &Found| -> Samples { [of(found)].into_iter().collect() };
        let row = Row::new(&format!("{name}-{what}"), unit, &one(&large), &one(&small), Goal::None);
        row.beside(format!("a tenant of {FEW}")).note(format!("{many} living monsters, 200 to a field"))
    };
    Ok(vec![
        row("spawn", "spawns/s", |found| found.spawns_per_second),
        row("damage", "hits/s", |found| found.hits_per_second),
        row("field", "fields/s", |found| found.fields_per_second),
        row("memory", "bytes", |found| found.bytes_per_monster),
    ])
}

fn measured(monsters: u64, seconds: f64) -> Result<Found> {
    let words = ["tenant", "--monsters", &monsters.to_string(), "--seconds", &seconds.to_string()];
    let found: Vec<Found> = together(&[words.map(str::to_owned).to_vec()])?;
    found.into_iter().next().context("one process gives one answer")
}
