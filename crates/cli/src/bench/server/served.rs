//! A server in a process of its own.

use super::super::children::Child;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::Path;

/// A running `emberkeep serve`, killed on drop.
pub(super) struct Served {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Served {
    /// On a store: a URL, or a folder of the embedded engine.
    pub(super) fn start(hot: Option<&str>, data: Option<&Path>) -> Result<Served> {
        let mut arguments = vec!["serve".to_owned(), "--http".into(), "127.0.0.1:0".into()];
        // The bench is one address, and makes all its rooms at once.
        arguments.extend(["--log-level", "error", "--rooms-per-second", "0"].map(str::to_owned));
        if let Some(hot) = hot {
            arguments.extend(["--hot".to_owned(), hot.to_owned()]);
        }
        if let Some(data) = data {
            arguments.extend(["--data".to_owned(), data.display().to_string()]);
        }
        let mut child = Child::start_program(arguments.iter())?;
        let line = child.hear()?;
        let address = line.rsplit_once("//").and_then(|(_, address)| address.parse().ok());
        let address = address.with_context(|| format!("the server said {line:?}, expected its address"))?;
        Ok(Served { child, address })
    }

    /// Bytes of memory that the process holds.
    pub(super) fn resident_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(kib.context("the system does not tell")? * 1024)
    }
}
