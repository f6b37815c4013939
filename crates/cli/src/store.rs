//! The store of a command: its URL, and the flags that say the same of an embedded one.

use crate::diagnose;
use crate::size::Size;
use anyhow::{anyhow, bail};
use emberkeep::StoreUrl;
use emberkeep::hot::{Store, embedded::Options, journal};
use std::path::PathBuf;

/// What `--hot` calls the store in this process. As a URL it is `memory:`, or `file:DIR` with `--data DIR`.
const EMBEDDED: &str = "embedded";

/// Help below the flags of a command that takes hot state and history.
pub(crate) fn urls_with_history() -> String {
    let mut text = URLS.to_owned();
    text.push_str(
        "
URLs of history (--history):
  file:DIR                               in this process; ?durability=always
  cql://user:password@host,host/keyspace ScyllaDB or Cassandra; cqls:// with TLS",
    );
    if !cfg!(feature = "cql") {
        text.push_str("\n                                         not in this binary: cargo build --release --features cql");
    }
    text.push_str("\n  none                                   no history");
    text
}

/// Help below the flags of a command that takes hot state.
pub(crate) const URLS: &str = "\
Store URLs (--hot):
  embedded                               in this process; durable with --data DIR
  memory:, file:DIR                      the same as URLs
  redis://127.0.0.1:6379/0               Redis or Valkey, database 0; also valkey://
  rediss://user:password@host:6379       with TLS; public authorities are trusted; also valkeys://
  redis+cluster://host1:6379,host2:6379  Redis Cluster; rediss+cluster:// with TLS
Options of a URL, after ? and separated by &:
  wait=1             an answer waits until one replica has the write
  ca=/path/ca.pem    trusts this authority instead of the public ones; needs TLS
  prefix=eu:         a text in front of every key
  durability=always  of file:DIR: like --durability
Example: --hot 'rediss://game:secret@cache.example:6379/0?wait=1&ca=/etc/ca.pem'";

/// The store that `--hot` names, not opened. The error says what was expected, and shows no password.
pub(crate) fn parse(text: &str) -> Result<StoreUrl, String> {
    let url = if text == EMBEDDED { "memory:" } else { text };
    StoreUrl::parse(url).map_err(|error| {
        format!("expected embedded, or the URL of a store such as redis://127.0.0.1:6379/0: {error}")
    })
}

/// Which store a command works on.
#[derive(clap::Args, Debug)]
pub(crate) struct StoreArguments {
    /// Where hot state lives: embedded, memory:, file:DIR, redis://…, valkey://… or redis+cluster://…; see below
    #[arg(
        long,
        value_name = "URL",
        default_value = "embedded",
        env = "EMBERKEEP_HOT",
        hide_env_values = true,
        value_parser = |text: &str| parse(text).map(|_| text.to_owned())
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
        self.url().map(drop)
    }

    /// Whether the store is inside this process, where no other process reaches it.
    pub(crate) fn is_in_process(&self) -> bool {
        self.url().is_ok_and(|url| url.is_in_process())
    }

    /// The folder of a store inside this process; `None` if it is in memory, on a server, or cannot be read.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.url().ok()?.embedded_options()?.data.clone()
    }

    /// The URL, with what the flags say besides.
    fn url(&self) -> anyhow::Result<StoreUrl> {
        let mut url = parse(&self.hot).map_err(|problem| anyhow!("cannot use --hot: {problem}"))?;
        match url.embedded_options() {
            Some(options) => self.complete(options)?,
            None if self.data.is_some() => {
                bail!("--data is the folder of the embedded store; leave it out when --hot names a server")
            }
            None if self.durability.is_some() => bail!(
                "--durability is about the embedded store; a server has its own settings, such as appendfsync"
            ),
            None => {}
        }
        Ok(url)
    }

    /// Sets what the flags say of an embedded store.
    fn complete(&self, options: &mut Options) -> anyhow::Result<()> {
        if let Some(folder) = &self.data {
            if self.hot != EMBEDDED {
                bail!("--data names a folder, and --hot another store; leave one of them out");
            }
            options.data = Some(folder.clone());
        }
        if let Some(folder) = options.data.as_ref().filter(|folder| folder.exists() && !folder.is_dir()) {
            let flag = if self.data.is_some() { "--data is" } else { "--hot names" };
            let folder = folder.display();
            bail!("{flag} {folder}, which is a file; name a folder, which is made if it does not exist");
        }
        if let Some(durability) = self.durability {
            if options.data.is_none() {
                bail!("--durability is about a store in a folder; name one with --data");
            }
            options.durability = durability.into();
        }
        if let Some(bytes) = self.memory_max.and_then(Size::bytes) {
            options.memory_bytes_max = Some(bytes);
        }
        Ok(())
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

/// Opens the store of the flags or variables, and says what is wrong with them.
pub(crate) async fn open(arguments: &StoreArguments) -> anyhow::Result<Store> {
    let url = arguments.url()?;
    let is_in_process = url.is_in_process();
    match url.open().await {
        Ok(store) => Ok(store),
        Err(error) if is_in_process => {
            Err(anyhow::Error::new(error).context("cannot open the embedded store"))
        }
        Err(error) => {
            let advice = diagnose::advice(&arguments.hot, &error.to_string());
            let advice = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
            Err(anyhow::Error::new(error).context(format!("cannot open the store{advice}")))
        }
    }
}
