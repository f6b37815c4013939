//! Where a workload runs its futures.

use anyhow::Result;
use tokio::runtime::Runtime;

/// A runtime on this thread only.
pub(super) fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
