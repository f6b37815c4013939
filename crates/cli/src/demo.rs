//! `emberkeep demo`: runs the workload simulator on a store, and reports whether every invariant held.

use crate::history::{checked, named};
use crate::output::{Stream, offer, print};
use crate::store::{StoreArguments, open};
use anyhow::{Context, anyhow, bail};
use emberkeep::history::History;
use emberkeep_sim::Plan;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Violations that are printed one by one.
const VIOLATIONS_SHOWN_MAX: usize = 20;

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How long the players play
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = crate::duration::parse)]
    length: Duration,
    #[command(flatten)]
    store: StoreArguments,
    /// Where the events of the city go: file:DIR or cql://… [default: a temporary folder]
    #[arg(long, value_name = "URL", env = "EMBERKEEP_HISTORY", hide_env_values = true, value_parser = checked)]
    history: Option<String>,
    /// Players that hit at the same time, in all processes together
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    players: u32,
    /// Monsters that live at the same time
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    monsters: u32,
    /// Processes that play on one store; more than one needs a server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,
    /// Tenants among which the monsters are divided
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    tenants: u32,
    /// Fields of each tenant [default: so that about 200 monsters share one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fields: Option<u32>,
    /// Leave everything in the store when the game is over
    #[arg(long)]
    keep: bool,
    /// Play for a parent process
    #[arg(long, hide = true)]
    child: bool,
}

impl Arguments {
    fn plan(&self) -> anyhow::Result<Plan> {
        let (players, processes) = (self.players, self.processes);
        if processes > 1 && self.store.is_in_process() {
            bail!(
                "--processes {processes} needs a server that all of them reach; name one with --hot redis://… or redis+cluster://…"
            );
        }
        if players < processes {
            bail!("--players {players} are fewer than --processes {processes}; each needs one");
        }
        let plan = Plan::new(self.tenants, self.fields, self.monsters);
        Ok(Plan { players, processes, length: self.length, ..plan })
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = arguments.plan()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = open(&arguments.store).await?;
        if arguments.child {
            emberkeep_sim::run_child(store).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let history = open_history(arguments.history.as_deref()).await?;
        report(&emberkeep_sim::run(store, plan, history, arguments.keep, child).await?)
    })
}

/// The history that is named.
async fn open_history(url: Option<&str>) -> anyhow::Result<Option<History>> {
    let url = url.map(named).transpose().map_err(|problem| anyhow!("cannot use --history: {problem}"))?;
    let Some(url) = url.flatten() else { return Ok(None) };
    Ok(Some(url.open(emberkeep::games::history_schema()).await.context("cannot open history")?))
}

/// This command line again, for a child process.
fn child() -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).arg("--child");
    Ok(command)
}

fn report(found: &emberkeep_sim::Report) -> anyhow::Result<ExitCode> {
    print(found.lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    if found.violations.is_empty() {
        print("invariants held\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = found.violations.iter().take(VIOLATIONS_SHOWN_MAX);
    let mut text: String = shown.map(|violation| format!("violated: {violation}\n")).collect();
    let findings = if found.violations.len() == 1 { "finding" } else { "findings" };
    text += &format!("invariants violated: {} {findings}\n", found.violations.len());
    offer(Stream::Error, text);
    Ok(ExitCode::FAILURE)
}
