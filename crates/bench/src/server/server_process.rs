//! A server in a process of its own.

use crate::worker_processes::Child;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::Path;

/// A running server, killed on drop.
pub(super) struct ServerProcess {
    child: Child,
    pub(super) address: SocketAddr,
}

impl ServerProcess {
    /// On a store: a URL, or a folder of the embedded engine.
    pub(super) fn start(hot: Option<&str>, data: Option<&Path>) -> Result<ServerProcess> {
        let mut arguments = vec!["serve".to_owned()];
        if let Some(hot) = hot {
            arguments.extend(["--hot".to_owned(), hot.to_owned()]);
        }
        if let Some(data) = data {
            arguments.extend(["--data".to_owned(), data.display().to_string()]);
        }
        let mut child = Child::start(&arguments)?;
        let line = child.hear()?;
        let address =
            line.parse().with_context(|| format!("the server said {line:?}, expected its address"))?;
        Ok(ServerProcess { child, address })
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
