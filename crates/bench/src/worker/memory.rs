//! Loads sessions into an embedded engine and tells how the process grew.

use crate::runtime::runtime;
use crate::sessions::{scope, session, session_key};
use crate::worker_processes::{print_line, wait_for_go};
use anyhow::{Context, Result};
use emberkeep::hot::embedded::Embedded;
use serde::{Deserialize, Serialize};

/// Resident bytes of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Grown {
    pub(crate) before_bytes: u64,
    pub(crate) after_bytes: u64,
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
    print_line(serde_json::to_string(&grown)?)
}

pub(super) fn resident_bytes() -> Result<u64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("resident memory is read from /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    Ok(kib.context("/proc/self/status has no VmRSS")? * 1024)
}
