//! `emberkeep repair`: opens a damaged data folder by setting aside what cannot be read, and the history in it.

use crate::history::{checked, folder_of, named};
use crate::output::confirmed;
use anyhow::{Context, anyhow, bail};
use emberkeep::history::embedded::Options;
use emberkeep::history::{Embedded, Error, HistoryStore};
use emberkeep::hot::journal::{Durability, Journal, JournalOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the journal stands in the folder of the store.
const JOURNAL_FOLDER: &str = "appendonlydir";

/// Asked before anything is set aside.
const QUESTION: &str = "Repair it now?";

/// What is to be repaired: one folder at least.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Folder of the embedded store; no process may use it meanwhile
    #[arg(long, value_name = "DIR", env = "EMBERKEEP_DATA", required_unless_present = "history")]
    data: Option<PathBuf>,
    /// History in a folder, as for serve: file:DIR [default: the folder history in that of --data, if it is there]
    #[arg(long, value_name = "URL", env = "EMBERKEEP_HISTORY", hide_env_values = true, value_parser = checked)]
    history: Option<String>,
    /// Sets the damaged part aside without asking
    #[arg(long)]
    yes: bool,
}

/// Shows what would be lost, asks, and cuts it off. A sound folder only gets what a proper stop would have done.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let history = history_folder(arguments)?;
    let mut out = std::io::stdout();
    if let Some(folder) = &arguments.data
        && repair_journal(folder, arguments.yes, &mut out)? == ExitCode::FAILURE
    {
        return Ok(ExitCode::FAILURE);
    }
    history.map_or(Ok(ExitCode::SUCCESS), |folder| repair_history(&folder, arguments.yes, &mut out))
}

/// The folder of history, which must exist if it is named: opening one that does not would make it.
fn history_folder(arguments: &Arguments) -> anyhow::Result<Option<PathBuf>> {
    let url = arguments.history.as_deref().map(named).transpose();
    let Some(url) = url.map_err(|problem| anyhow!("cannot use --history: {problem}"))?.flatten() else {
        return Ok(arguments.data.as_deref().map(folder_of).filter(|folder| folder.exists()));
    };
    match url.path() {
        Some(folder) if folder.is_dir() => Ok(Some(folder.to_owned())),
        Some(folder) => {
            bail!(
                "there is no folder {}, expected the one that `serve --history` was given",
                folder.display()
            )
        }
        // A cluster is repaired by its own tools.
        None if arguments.data.is_some() => Ok(None),
        None => bail!("--history names a cluster; repair works on folders: --data DIR, --history file:DIR"),
    }
}

fn repair_journal(folder: &Path, yes: bool, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    if !folder.join(JOURNAL_FOLDER).is_dir() {
        let folder = folder.display();
        bail!("{folder} has no folder {JOURNAL_FOLDER}, expected the folder that `serve --data` was given");
    }
    let found = Journal::examine(folder)
        .with_context(|| format!("cannot read the journal of {}", folder.display()))?;
    if let Some(damage) = &found.damage {
        writeln!(out, "{damage}")?;
        writeln!(
            out,
            "A repair keeps {} and sets aside {} behind them; no file is deleted.",
            count(found.transactions, "transaction"),
            count(found.lost_bytes, "byte")
        )?;
        for name in &found.left_out {
            writeln!(out, "no manifest names {JOURNAL_FOLDER}/{name}, and its data fits in nowhere")?;
        }
        if !yes && !confirmed(out, QUESTION)? {
            return unchanged(out);
        }
    }
    let options = JournalOptions {
        durability: Durability::Always,
        cut_damage: found.damage.is_some(),
        ..JournalOptions::new(folder)
    };
    let (journal, recovery) =
        Journal::open(options, &mut |_, _| Ok(())).context("cannot open the journal")?;
    journal.close().context("cannot close the journal")?;
    writeln!(out, "The journal is sound: {}.", count(recovery.transactions, "transaction"))?;
    for name in &recovery.set_aside {
        writeln!(out, "set aside: {JOURNAL_FOLDER}/{name}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens history. Batches that are missing from its journal are the damage that can be accepted; the error of any other
/// says what to do.
fn repair_history(folder: &Path, yes: bool, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let open = |accept_loss| {
        let options = Options { accept_loss, ..Options::default() };
        let store = Embedded::open(folder, emberkeep::games::history_schema(), options)?;
        runtime.block_on(store.close())
    };
    match open(false) {
        Ok(()) => {}
        Err(damage @ Error::Damaged { .. }) => {
            writeln!(out, "{damage}")?;
            writeln!(out, "A repair goes on with what is left; what is missing stays missing.")?;
            if !yes && !confirmed(out, QUESTION)? {
                return unchanged(out);
            }
            open(true).context("history cannot be repaired")?;
        }
        Err(error) => return Err(anyhow::Error::new(error).context("cannot open history")),
    }
    writeln!(out, "History is sound.")?;
    Ok(ExitCode::SUCCESS)
}

fn unchanged(out: &mut impl Write) -> anyhow::Result<ExitCode> {
    writeln!(out, "nothing was changed")?;
    Ok(ExitCode::FAILURE)
}

/// A number with its noun.
fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| super::count(n, "byte")), ["0 bytes", "1 byte", "2 bytes"]);
    }
}
