//! Stores by their URL. The one place that knows which engines there are.

use crate::redact::masked;
use crate::size::Size;
use anyhow::{Context, bail};
use emberkeep::hot::{Store, embedded::Embedded, journal};
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
    /// What an answer promises for the folder of --data [default: everysec]
    #[arg(long, value_name = "WHEN")]
    durability: Option<Durability>,
    /// Memory that keys and values of the embedded store may take: 512MiB, 50% of the machine's, or none [default: none]
    #[arg(long, value_name = "SIZE")]
    memory_max: Option<Size>,
}

impl StoreArguments {
    /// A store that was asked for in another way than by flags.
    pub(crate) fn of(
        hot: String,
        data: Option<PathBuf>,
        durability: Option<Durability>,
        memory_max: Option<Size>,
    ) -> StoreArguments {
        StoreArguments { hot, data, durability, memory_max }
    }

    /// Whether the store is inside this process, where no other process reaches it.
    pub(crate) fn is_in_process(&self) -> bool {
        self.hot == "embedded"
    }
}

/// What an answer promises, in the words of Redis' `appendfsync`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Durability {
    /// Nothing that was answered is lost, neither by a kill -9 nor by a power loss
    Always,
    /// A kill -9 loses nothing that was answered; a power loss at most the last second
    #[value(name = "everysec")]
    EverySec,
    /// No promise; a power loss usually takes the last half minute
    No,
}

impl std::str::FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Durability, String> {
        clap::ValueEnum::from_str(text, false).map_err(|_| "expected always, everysec or no".into())
    }
}

impl From<Durability> for journal::Durability {
    fn from(asked: Durability) -> journal::Durability {
        match asked {
            Durability::Always => journal::Durability::Always,
            Durability::EverySec => journal::Durability::EverySec,
            Durability::No => journal::Durability::No,
        }
    }
}

/// Opens the store.
pub(crate) async fn open(arguments: &StoreArguments) -> anyhow::Result<Store> {
    if arguments.is_in_process() {
        return embedded(arguments);
    }
    if !arguments.hot.contains("://") {
        bail!("--hot is {:?}, expected embedded, redis://… or redis+cluster://…", masked(&arguments.hot));
    }
    if arguments.data.is_some() {
        bail!("--data is the folder of the embedded store; leave it out when --hot names a server");
    }
    if arguments.durability.is_some() {
        bail!("--durability is about the embedded store; a server has its own settings, such as appendfsync");
    }
    let engine = RedisEngine::connect(&arguments.hot).await.context("cannot open the store")?;
    Ok(Store::new(engine))
}

fn embedded(arguments: &StoreArguments) -> anyhow::Result<Store> {
    let mut options = Embedded::builder();
    if let Some(folder) = &arguments.data {
        options =
            options.data(folder).durability(arguments.durability.unwrap_or(Durability::EverySec).into());
    } else if arguments.durability.is_some() {
        bail!("--durability is about a store in a folder; name one with --data");
    }
    if let Some(bytes) = arguments.memory_max.and_then(Size::bytes) {
        options = options.memory_bytes_max(bytes);
    }
    let engine = options.open().context("cannot open the embedded store")?;
    Ok(Store::new(Arc::new(engine)))
}
