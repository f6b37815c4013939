//! `emberkeep snapshot`: snapshots of a partition of hot state.

mod create;
mod diff;
mod list;
mod open;
mod progress;
mod prune;
mod restore;
mod shown;

use std::process::ExitCode;

/// Help below the flags.
const STORES: &str = "\
Stores of snapshots (--snapshots):
  DIR, file:DIR                            a folder; several processes may use it
  postgres://user:password@host/database   PostgreSQL; ?sslmode=require&ca=FILE with TLS (needs the feature postgres)
Partitions (--partition): TYPE=TEXT, as in the keys: tenantId=00000000-0000-4000-8000-000000000001";

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Stores all keys of a partition while the game runs
    #[command(after_help = STORES)]
    Create(create::CreateArguments),
    /// Lists the snapshots of a store, the newest last
    #[command(after_help = STORES)]
    List(list::ListArguments),
    /// Reads a snapshot from its first key to its last, and prints what it has; the exit code is 1 if it is damaged
    #[command(after_help = STORES)]
    Show(list::ShowArguments),
    /// Compares two snapshots, or one with hot state; the exit code is 1 if they differ
    #[command(after_help = STORES)]
    Diff(diff::DiffArguments),
    /// Shows what a restore would change, asks, and restores; goes on with one that was interrupted
    #[command(after_help = STORES)]
    Restore(restore::RestoreArguments),
    /// Removes the snapshots of a partition that no rule keeps
    #[command(after_help = STORES)]
    Prune(prune::PruneArguments),
}

/// Runs a subcommand of `emberkeep snapshot`.
pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Create(arguments) => create::run(arguments).await,
            Command::List(arguments) => list::run(arguments).await,
            Command::Show(arguments) => list::show(arguments).await,
            Command::Diff(arguments) => diff::run(arguments).await,
            Command::Restore(arguments) => restore::run(arguments).await,
            Command::Prune(arguments) => prune::run(arguments).await,
        }
    })
}
