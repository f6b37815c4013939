//! `emberkeep repair`: opens a damaged data folder by setting aside what cannot be read, and the history in it.

use crate::history::folder_of;
use anyhow::Context;
use emberkeep::history::embedded::Options;
use emberkeep::history::{Embedded, Error, HistoryStore};
use emberkeep::hot::journal::{Durability, Journal, JournalOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is to be repaired.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Folder of the embedded store; no process may use it meanwhile
    #[arg(long, value_name = "DIR", env = "EMBERKEEP_DATA")]
    data: PathBuf,
    /// Folder of history [default: the folder history in that of --data, if it is there]
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Sets the damaged part aside without asking
    #[arg(long)]
    yes: bool,
}

/// Shows what would be lost, asks, and cuts it off. A sound folder only gets what a proper stop would have done.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let found = Journal::examine(&arguments.data).with_context(|| {
        let folder = arguments.data.display();
        format!("cannot read {folder}, expected the folder that `serve --data` was given")
    })?;
    let mut out = std::io::stdout();
    if let Some(damage) = &found.damage {
        writeln!(out, "{damage}")?;
        writeln!(
            out,
            "A repair keeps {} and sets aside {} behind them; no file is deleted.",
            count(found.transactions, "transaction"),
            count(found.lost_bytes, "byte")
        )?;
        for name in &found.left_out {
            writeln!(out, "no manifest names appendonlydir/{name}, and its data fits in nowhere")?;
        }
        if !arguments.yes && !confirmed(&mut out)? {
            return unchanged(&mut out);
        }
    }
    let options = JournalOptions {
        durability: Durability::Always,
        cut_damage: found.damage.is_some(),
        ..JournalOptions::new(&arguments.data)
    };
    let (journal, recovery) =
        Journal::open(options, &mut |_, _| Ok(())).context("cannot open the journal")?;
    journal.close().context("cannot close the journal")?;
    writeln!(out, "The journal is sound: {}.", count(recovery.transactions, "transaction"))?;
    for name in &recovery.set_aside {
        writeln!(out, "set aside: appendonlydir/{name}")?;
    }
    let folder = arguments.history.clone().or(Some(folder_of(&arguments.data)).filter(|path| path.exists()));
    folder.map_or(Ok(ExitCode::SUCCESS), |folder| repair_history(&folder, arguments.yes, &mut out))
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
            if !yes && !confirmed(out)? {
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

/// Asks; anything but a plain yes, and an input that has ended, is a no.
fn confirmed(out: &mut impl Write) -> std::io::Result<bool> {
    write!(out, "Repair it now? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| super::count(n, "byte")), ["0 bytes", "1 byte", "2 bytes"]);
    }
}
