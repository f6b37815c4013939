//! Stores by their URL. The one place that knows which engines there are.

use anyhow::{Context, bail};
use emberkeep::hot::{Store, embedded::Embedded};
use emberkeep::redis::RedisEngine;
use std::path::PathBuf;
use std::sync::Arc;

/// Which store a command works on.
#[derive(clap::Args, Debug)]
pub(crate) struct StoreArguments {
    /// Where hot state lives: embedded, redis://HOST:PORT/DB or redis+cluster://HOST:PORT,HOST:PORT
    #[arg(
        long,
        value_name = "URL",
        default_value = "embedded",
        env = "EMBERKEEP_HOT",
        hide_env_values = true
    )]
    hot: String,
    /// Folder of the embedded store; without it nothing outlives the process
    #[arg(long, value_name = "DIR", env = "EMBERKEEP_DATA")]
    data: Option<PathBuf>,
}

/// Opens the store.
pub(crate) async fn open(arguments: &StoreArguments) -> anyhow::Result<Store> {
    if arguments.hot == "embedded" {
        return embedded(arguments);
    }
    if !arguments.hot.contains("://") {
        bail!("--hot is {:?}, expected embedded, redis://… or redis+cluster://…", arguments.hot);
    }
    if arguments.data.is_some() {
        bail!("--data is the folder of the embedded store; leave it out when --hot names a server");
    }
    let engine = RedisEngine::connect(&arguments.hot).await.context("cannot open the store")?;
    Ok(Store::new(engine))
}

fn embedded(arguments: &StoreArguments) -> anyhow::Result<Store> {
    let mut options = Embedded::builder();
    if let Some(folder) = &arguments.data {
        options = options.data(folder);
    }
    let engine = options.open().context("cannot open the embedded store")?;
    Ok(Store::new(Arc::new(engine)))
}
