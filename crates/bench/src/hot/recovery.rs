//! A start on a journal of a million sessions: our engine beside redis-server, which loads the same files.

use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::sessions::{scope, session, session_key};
use crate::suite::{Bench, say};
use anyhow::{Context, Result, ensure};
use emberkeep::hot::embedded::Embedded;
use emberkeep_testkit::RedisServer;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SESSIONS: u64 = 1_000_000;
const SESSIONS_QUICK: u64 = 200_000;
/// Starts are slow: this many are enough.
const ROUNDS_MAX: usize = 3;

/// Sessions per second of a start.
pub(crate) fn recovery(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let sessions = if bench.quick { SESSIONS_QUICK } else { SESSIONS };
    let folder = bench.folder("recovery");
    say(&format!("{name}  writing a journal of {sessions} sessions"));
    write_journal(&folder, sessions)?;
    let bytes: u64 = files(&folder)?.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    let redis =
        files(&folder)?.iter().fold(RedisServer::options(), |options, file| options.load(file)).start()?;
    let empty = RedisServer::options().appendonly().start()?;
    let rounds = bench.rounds;
    bench.rounds = rounds.min(ROUNDS_MAX);
    let mut empty_starts = Samples::default();
    for _ in 0..ROUNDS_MAX {
        empty_starts.push(start(&empty)?);
    }
    let taken = bench.take_turns(
        name,
        "sessions/s",
        || Ok(sessions as f64 / open(&folder, sessions)?),
        || Ok(sessions as f64 / (start(&redis)? - empty_starts.median())),
    );
    bench.rounds = rounds;
    let (ours, peer) = taken?;
    let _ = std::fs::remove_dir_all(&folder);
    let row = Row::new(name, "sessions/s", &ours, &peer, Goal::RatioAtLeast(1.0));
    let note =
        format!("{sessions} sessions, {} MB; an empty start of the peer is not counted", bytes / 1_000_000);
    Ok(vec![row.beside("redis-server --appendonly yes on the same files").note(note)])
}

pub(crate) fn write_journal(folder: &Path, sessions: u64) -> Result<()> {
    // Without a rewrite: every session is a transaction of its own, as a crash would leave it.
    let engine = Embedded::builder().data(folder).rewrite_bytes_min(u64::MAX).open()?;
    let scope = scope(engine);
    runtime()?.block_on(async {
        for player in 0..sessions {
            scope.put(&session_key(player), session(player)).await?;
        }
        Ok(scope.store().close().await?)
    })
}

/// The journal's files with commands in them, in the order of the manifest.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let parts = folder.join("appendonlydir");
    let manifest = std::fs::read_to_string(parts.join("appendonly.aof.manifest"))?;
    let names = manifest.lines().filter_map(|line| line.strip_prefix("file ")?.split(' ').next());
    Ok(names.map(|name| parts.join(name)).collect())
}

/// Seconds until our engine is open.
fn open(folder: &Path, sessions: u64) -> Result<f64> {
    let started = Instant::now();
    let engine = Embedded::builder().data(folder).rewrite_bytes_min(u64::MAX).open()?;
    let took = started.elapsed();
    ensure!(engine.len() as u64 == sessions, "{} sessions came back, expected {sessions}", engine.len());
    Ok(took.as_secs_f64())
}

/// Seconds until a server that was stopped is ready again.
fn start(server: &RedisServer) -> Result<f64> {
    server.kill9();
    let started = Instant::now();
    server.restart().ok().context("redis-server does not start on the journal")?;
    Ok(started.elapsed().as_secs_f64())
}
