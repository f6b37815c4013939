//! A server as `emberkeep serve` runs it, on a free port.

use crate::worker_processes::print_line;
use anyhow::Result;
use clap::Args;
use emberkeep::hot::Store;
use emberkeep::hot::embedded::Embedded;
use emberkeep::redis::RedisEngine;
use emberkeep_server::{Settings, listen};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// `emberkeep serve` has a limit, too: 50% of the machine's memory.
const MEMORY_BYTES_MAX: usize = 8 << 30;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// URL of a Redis; the embedded engine if it is left out
    #[arg(long)]
    hot: Option<String>,
    /// Folder of the embedded engine
    #[arg(long)]
    data: Option<PathBuf>,
}

/// Prints where it listens, and serves until its parent is gone.
pub(super) fn run(args: &ServeArgs) -> Result<()> {
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR);
    log.with_writer(std::io::stderr).init();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(args))
}

async fn serve(args: &ServeArgs) -> Result<()> {
    let store = match (&args.hot, &args.data) {
        (Some(url), _) => Store::new(RedisEngine::connect(url).await?),
        (None, folder) => {
            let mut options = Embedded::builder().memory_bytes_max(MEMORY_BYTES_MAX);
            if let Some(folder) = folder {
                options = options.data(folder);
            }
            Store::new(Arc::new(options.open()?))
        }
    };
    let settings = Settings {
        // All clients share one address, and create all rooms at once.
        rooms_per_second: 0,
        ..Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)))
    };
    let listening = listen(store, &settings).await?;
    print_line(listening.address())?;
    tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await??;
    Ok(listening.end().await?)
}
