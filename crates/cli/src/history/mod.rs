//! `emberkeep history`: how far history is behind, draining logs by hand, and dead letters.

mod dead_letters;
mod drain;
mod lag;
mod open;

pub(crate) use open::{checked, consumers, folder_of, named, open_or_wait, parse, spool_folder};

use crate::store::{StoreArguments, open as open_store};
use anyhow::{Context, bail};
use emberkeep::HistoryUrl;
use emberkeep::games::darkages::Shards;
use emberkeep::history::History;
use emberkeep::history::outbox::Consumers;
use emberkeep::hot::Store;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// How many entries of each log are not in history yet, and how old the oldest is
    #[command(after_help = crate::store::urls_with_history())]
    Lag(lag::LagArguments),
    /// Delivers what is in the logs now; the exit code is 1 if something is left
    #[command(after_help = crate::store::urls_with_history())]
    Drain(drain::DrainArguments),
    /// Entries that could not be stored as what they are, with the reason
    #[command(after_help = crate::store::urls_with_history())]
    DeadLetters(dead_letters::DeadLettersArguments),
}

/// Both stores, as `serve` takes them.
#[derive(clap::Args, Debug)]
pub(crate) struct Stores {
    #[command(flatten)]
    hot: StoreArguments,
    /// Where history is: file:DIR or cql://… [default: the folder history in the folder of hot state]
    #[arg(
        long,
        value_name = "URL",
        env = "EMBERKEEP_HISTORY",
        hide_env_values = true,
        value_parser = checked
    )]
    history: Option<String>,
    /// Shards of DarkAges, as serve has them: 1:1-99,2:100-199
    #[arg(
        long,
        value_name = "SHARDS",
        env = "EMBERKEEP_DARKAGES_SHARDS",
        default_value = "",
        hide_default_value = true
    )]
    darkages_shards: Shards,
}

/// Hot state and history, both open.
pub(crate) struct Opened {
    store: Store,
    history: History,
    consumers: Consumers,
    /// Folders of entries that no consumer delivers.
    unused_spools: Vec<PathBuf>,
}

/// Whether a command delivers what waits in the folder of `--history-spool`.
#[derive(Clone, Copy)]
enum Spools<'a> {
    /// It looks at the stores only, also while a server has the folder.
    Unopened,
    /// From the folder that was named, or from that of `--data` if a server left one there.
    Delivered(Option<&'a Path>),
}

impl Spools<'_> {
    fn folder(self, url: &HistoryUrl, hot: &StoreArguments) -> anyhow::Result<Option<PathBuf>> {
        let Spools::Delivered(named) = self else { return Ok(None) };
        match named {
            Some(folder) if !folder.is_dir() => bail!(
                "--history-spool names {}, and there is no such folder; name the one that the server uses",
                folder.display()
            ),
            Some(folder) => Ok(Some(folder.to_owned())),
            None => Ok(spool_folder(None, Some(url), hot)?.filter(|folder| folder.is_dir())),
        }
    }
}

const ONE_PROCESS: &str = "a folder belongs to one process: if the server runs, its /metrics has the lag and /readyz says what waits; \
     otherwise stop the process that has it";

impl Stores {
    /// `spool` says whether the command delivers what waits in the folder of `--history-spool`, and which folder was named.
    async fn open(&self, spool: Spools<'_>) -> anyhow::Result<Opened> {
        if self.hot.is_in_process() && self.hot.folder().is_none() {
            bail!(
                "hot state in memory ends with its process; name what the server uses: --data DIR or --hot URL"
            );
        }
        let Some(url) = parse(self.history.as_deref(), &self.hot)? else {
            bail!(
                "no history is named; give --history file:DIR or --history cql://host/keyspace, as to serve"
            )
        };
        let spool = spool.folder(&url, &self.hot)?;
        let busy = |is_in_process: bool, error: anyhow::Error| match is_in_process {
            true if format!("{error:#}").contains("in use by") => error.context(ONE_PROCESS),
            _ => error,
        };
        let store = open_store(&self.hot).await.map_err(|error| busy(self.hot.is_in_process(), error))?;
        let is_in_process = url.is_in_process();
        let history = url.open(emberkeep::games::history_schema()).await;
        let history = history
            .map_err(|error| busy(is_in_process, anyhow::Error::new(error).context("cannot open history")))?;
        let consumers = consumers(&store, &history, &self.darkages_shards, spool.as_deref());
        let (consumers, unused_spools) = consumers.map_err(|error| busy(true, error))?;
        Ok(Opened { store, history, consumers, unused_spools })
    }
}

impl Opened {
    async fn close(self) -> anyhow::Result<()> {
        self.history.close().await.context("history was not closed cleanly")?;
        self.store.close().await.context("the store was not closed cleanly")
    }
}

/// Runs a subcommand of `emberkeep history`.
pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Lag(arguments) => lag::run(arguments).await,
            Command::Drain(arguments) => drain::run(arguments).await,
            Command::DeadLetters(arguments) => dead_letters::run(arguments).await,
        }
    })
}

/// How long ago a time was, for people.
fn age(now: i64, at: i64) -> String {
    let seconds = (now - at).max(0) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_have_one_unit() {
        let of = |seconds: i64| super::age(seconds * 1_000, 0);
        assert_eq!(
            [of(0), of(119), of(120), of(7_200), of(200_000)],
            ["0 s", "119 s", "2 min", "2 h", "2 days"]
        );
    }
}
