//! The `emberkeep` binary: reads the command line, and hands over to one module per command.

#[cfg_attr(not(feature = "cql"), path = "without_cql.rs")]
mod cql;
mod demo;
mod diagnose;
mod duration;
mod history;
mod output;
mod redact;
mod repair;
mod schema;
mod serve;
mod settings;
mod size;
mod snapshot;
mod store;
mod tables;
mod token;

use clap::error::{ContextKind, ContextValue, ErrorKind as Mistake};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::ErrorKind;
use std::process::ExitCode;

/// Transactions allocate and free small values all the time, often on another thread than before.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a command cannot reach ScyllaDB or Cassandra, and what to do.
const WITHOUT_CQL: &str = "this binary was built without ScyllaDB and Cassandra; build it with: cargo build --release --features cql";

/// The state layer for multiplayer games: a server, and tools for its store
#[derive(Parser)]
#[command(name = "emberkeep", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the games over HTTP and WebSocket
    #[command(after_help = store::urls_with_history())]
    Serve(Box<serve::Arguments>),
    /// Checks the settings of `serve`, and prints each with its source; secrets are masked
    #[command(after_help = store::urls_with_history())]
    Config(Box<settings::Sources>),
    /// Tokens of the clients that may call the server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Opens a damaged data folder: keeps what can be read, sets the rest aside
    Repair(repair::Arguments),
    /// The declared keys and tables, the rights that a Redis user needs, and the tables of a CQL keyspace
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// What of the games' logs is not in history yet, and what could not be stored there
    #[command(subcommand)]
    History(history::Command),
    /// Snapshots of a partition of hot state: create, list, show, diff, restore, prune
    #[command(subcommand)]
    Snapshot(snapshot::Command),
    /// Simulates players on a store for a while, then checks every invariant
    #[command(after_help = store::URLS)]
    Demo(demo::Arguments),
    /// Prints completions for a shell, as in: source <(emberkeep completions bash)
    Completions { shell: clap_complete::Shell },
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Makes a token and shows it once
    New(token::Arguments),
}

#[derive(Subcommand)]
enum SchemaCommand {
    /// Every key family: pattern, type, TTL, owner, what it is an index of
    Keys(schema::KeysArguments),
    /// The ACL line of a Redis user with exactly the rights that the server needs
    Acl(schema::AclArguments),
    /// Every history table and totals, as Markdown
    Tables,
    /// The CQL statements that create a keyspace with all history tables (needs the feature cql)
    Cql(cql::CqlArguments),
    /// Compares the history tables with a live keyspace; the exit code is 1 if they differ (needs the feature cql)
    Diff(cql::LiveArguments),
    /// Adds missing tables, columns and indexes to a live keyspace, and refuses every other change; --drop removes deprecated columns (needs the feature cql)
    Apply(cql::ApplyArguments),
}

fn main() -> ExitCode {
    let mut command = command();
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let arguments = match parsed.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(mistake) => return help_or_usage(explained(mistake)),
    };
    let outcome = match arguments.command {
        Command::Schema(SchemaCommand::Keys(arguments)) => schema::print_keys(&arguments),
        Command::Schema(SchemaCommand::Acl(arguments)) => schema::print_acl(&arguments),
        Command::Schema(SchemaCommand::Tables) => tables::print_tables(),
        Command::Schema(SchemaCommand::Cql(arguments)) => cql::print_script(&arguments),
        Command::Schema(SchemaCommand::Diff(arguments)) => cql::diff(&arguments),
        Command::Schema(SchemaCommand::Apply(arguments)) => cql::apply(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Config(arguments) => config(&arguments),
        Command::Token(TokenCommand::New(arguments)) => token::run(&arguments),
        Command::Repair(arguments) => repair::run(&arguments),
        Command::History(command) => history::run(&command),
        Command::Snapshot(command) => snapshot::run(&command),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions { shell } => completions(shell, &mut command),
    };
    outcome.unwrap_or_else(|error| failed(&error))
}

/// The command line, with the variables in the help of every setting.
fn command() -> clap::Command {
    let command = hide_values_of_variables(Arguments::command());
    let command = command.mut_subcommand("serve", settings::with_variables);
    command.mut_subcommand("config", settings::with_variables)
}

/// The help names the variables of all commands, and shows what is in none of them.
fn hide_values_of_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| argument.hide_env_values(true));
    command.mut_subcommands(hide_values_of_variables)
}

fn config(sources: &settings::Sources) -> anyhow::Result<ExitCode> {
    let (shown, checked) = sources.show()?;
    output::print(shown)?;
    checked.map(|()| ExitCode::SUCCESS)
}

fn completions(shell: clap_complete::Shell, command: &mut clap::Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "emberkeep", &mut script);
    output::print(String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    output::offer(output::Stream::Error, format!("emberkeep: {error:#}\n"));
    ExitCode::FAILURE
}

/// Clap's error with the flag that other servers call differently, and without a password in a wrong place.
fn explained(mut mistake: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = mistake.get(ContextKind::InvalidValue) {
        let masked = redact::masked(value);
        mistake.insert(ContextKind::InvalidValue, ContextValue::String(masked));
    }
    if mistake.kind() == Mistake::UnknownArgument
        && let Some(ContextValue::String(flag)) = mistake.get(ContextKind::InvalidArg)
        && let Some(meant) = settings::meant(flag.trim_start_matches('-'))
    {
        mistake.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{meant}")));
        // It names the flag that clap would have suggested.
        mistake.remove(ContextKind::Usage);
    }
    mistake
}

/// Prints the help that was asked for, or what was wrong with the command line.
fn help_or_usage(error: clap::Error) -> ExitCode {
    match error.print() {
        Err(broken) if !error.use_stderr() && broken.kind() != ErrorKind::BrokenPipe => {
            failed(&anyhow::Error::new(broken).context("cannot write to standard output"))
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1)),
    }
}
