//! How long `serve` takes to be ready on a folder of 100,000 sessions.

use super::server_process::ServerProcess;
use crate::hot::recovery::write_journal;
use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::Result;
use std::time::Instant;

const SESSIONS: u64 = 100_000;
const SECONDS_MAX: f64 = 1.0;

/// Seconds from the start of the process to the moment in which it listens on a loaded store.
pub(crate) fn start(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let folder = bench.folder("serve");
    write_journal(&folder, SESSIONS)?;
    let (mut ours, mut limit) = (Samples::default(), Samples::default());
    for round in 1..=bench.rounds {
        let started = Instant::now();
        let server = ServerProcess::start(None, Some(&folder))?;
        let took = started.elapsed().as_secs_f64();
        drop(server);
        say(&format!("{name}  round {round}/{}  {took:.2} s", bench.rounds));
        ours.push(took);
        limit.push(SECONDS_MAX);
    }
    let row = Row::new(name, "s until ready", &ours, &limit, Goal::AtMost(SECONDS_MAX));
    Ok(vec![row.beside("the limit").note(format!("{SESSIONS} sessions in the journal"))])
}
