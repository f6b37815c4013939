//! Loads sessions into an embedded engine and tells how the process grew.

use super::super::children::wait_for_go;
use super::super::sessions::{scope, session, session_key};
use super::super::suite::runtime;
use anyhow::{Context, Result};
use emberkeep::hot::embedded::Embedded;
use serde::{Deserialize, Serialize};

/// Resident bytes of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) struct Grown {
    pub(in super::super) before_bytes: u64,
    pub(in super::super) after_bytes: u64,
}

pub(super) fn run(sessions: u64) -> Result<()> {
    let scope = scope(Embedded::in_memory());
    wait_for_go()?;
    let before_bytes = resident_bytes()?;
    runtime()?.block_on(async {
        for player in 0..sessions {
            scope.put(&session_key(player), session(player)).await?;
        }
        anyhow::Ok(())
    })?;
    let grown = Grown { before_bytes, after_bytes: resident_bytes()? };
    crate::output::show(format_args!("{}\n", serde_json::to_string(&grown)?))?;
    Ok(())
}

pub(super) fn resident_bytes() -> Result<u64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("resident memory is read from /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    Ok(kib.context("/proc/self/status has no VmRSS")? * 1024)
}
