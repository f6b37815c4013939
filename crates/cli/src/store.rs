//! Opens a store by its URL: the only place that knows which engines exist.

use crate::diagnose;
use crate::redact::masked;
use crate::size::Size;
use anyhow::{Context, bail};
use emberkeep::hot::{Store, embedded::Embedded, journal};
use emberkeep::redis::{RedisEngine, RedisUrl};
use std::path::PathBuf;
use std::sync::Arc;

/// Help below the flags of every command that takes a store.
pub(crate) const URLS: &str = "\
Store URLs (--hot):
  embedded                               in this process; durable with --data DIR
  redis://127.0.0.1:6379/0               Redis or Valkey, database 0
  rediss://user:password@host:6379       with TLS; public authorities are trusted
  redis+cluster://host1:6379,host2:6379  Redis Cluster; rediss+cluster:// with TLS
Options of a URL, after ? and separated by &:
  wait=1           an answer waits until one replica has the write
  ca=/path/ca.pem  trusts this authority instead of the public ones; needs TLS
  prefix=eu:       a text in front of every key
Example: --hot 'rediss://game:secret@cache.example:6379/0?wait=1&ca=/etc/ca.pem'";

/// Which store a command works on.
#[derive(clap::Args, Debug)]
pub(crate) struct StoreArguments {
    /// Where hot state lives: embedded, redis://…, rediss://… or redis+cluster://…; see below
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
    #[arg(long, value_name = "WHEN", env = "EMBERKEEP_DURABILITY")]
    durability: Option<Durability>,
    /// Memory that keys and values of the embedded store may take: 512MiB, 50% of the machine's, or none [default: none]
    #[arg(long, value_name = "SIZE", env = "EMBERKEEP_MEMORY_MAX")]
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

    /// Refuses what cannot be opened, without opening anything.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Some(folder) = self.data.as_ref().filter(|folder| folder.exists() && !folder.is_dir()) {
            bail!(
                "--data is {}, which is a file; name a folder, which is made if it does not exist",
                folder.display()
            );
        }
        if self.is_in_process() {
            if self.data.is_none() && self.durability.is_some() {
                bail!("--durability is about a store in a folder; name one with --data");
            }
            return Ok(());
        }
        if !self.hot.contains("://") {
            bail!("--hot is {:?}, expected embedded, redis://… or redis+cluster://…", masked(&self.hot));
        }
        if self.data.is_some() {
            bail!("--data is the folder of the embedded store; leave it out when --hot names a server");
        }
        if self.durability.is_some() {
            bail!(
                "--durability is about the embedded store; a server has its own settings, such as appendfsync"
            );
        }
        RedisUrl::parse(&self.hot).map(drop).context("cannot use --hot")
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
    arguments.check()?;
    if arguments.is_in_process() {
        return embedded(arguments);
    }
    match RedisEngine::connect(&arguments.hot).await {
        Ok(engine) => Ok(Store::new(engine)),
        Err(error) => {
            let advice = diagnose::advice(&arguments.hot, &error.to_string());
            let advice = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
            Err(anyhow::Error::new(error).context(format!("cannot open the store{advice}")))
        }
    }
}

fn embedded(arguments: &StoreArguments) -> anyhow::Result<Store> {
    let mut options = Embedded::builder();
    if let Some(folder) = &arguments.data {
        options =
            options.data(folder).durability(arguments.durability.unwrap_or(Durability::EverySec).into());
    }
    if let Some(bytes) = arguments.memory_max.and_then(Size::bytes) {
        options = options.memory_bytes_max(bytes);
    }
    let engine = options.open().context("cannot open the embedded store")?;
    Ok(Store::new(Arc::new(engine)))
}
