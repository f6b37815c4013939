//! The `emberkeep` binary: reads the command line, and hands over to one module per command.

mod demo;
mod duration;
mod output;
mod redact;
mod repair;
mod schema_keys;
mod serve;
mod settings;
mod size;
mod store;
mod token;

use clap::{Parser, Subcommand};
use std::io::ErrorKind;
use std::process::ExitCode;

/// Transactions allocate and free small values all the time, often on another thread than before.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The state layer for multiplayer games.
#[derive(Parser)]
#[command(name = "emberkeep", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The games over HTTP and WebSocket
    Serve(Box<serve::Arguments>),
    /// The settings of `serve` that are in force, and who gave them; secrets are masked
    Config(Box<settings::Sources>),
    /// Tokens of those who may call the server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Opens a damaged data folder: keeps what can be read, sets the rest aside
    Repair(repair::Arguments),
    /// What is declared, in the form asked for
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Players hit monsters for a while; then every count is checked against the store
    Demo(demo::Arguments),
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Makes a token and shows it once
    New(token::Arguments),
}

#[derive(Subcommand)]
enum SchemaCommand {
    /// Every key family: pattern, type, TTL, owner, what it is an index of
    Keys(schema_keys::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => return help_or_usage(&told),
    };
    let outcome = match arguments.command {
        Command::Schema(SchemaCommand::Keys(arguments)) => schema_keys::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Config(arguments) => arguments
            .in_force()
            .and_then(|found| output::print(settings::show(&found)).map(|()| ExitCode::SUCCESS)),
        Command::Token(TokenCommand::New(arguments)) => token::run(&arguments),
        Command::Repair(arguments) => repair::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    };
    outcome.unwrap_or_else(|error| failed(&error))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    output::offer(output::Stream::Error, format!("emberkeep: {error:#}\n"));
    ExitCode::FAILURE
}

/// The help that was asked for, or what was wrong with the command line.
fn help_or_usage(told: &clap::Error) -> ExitCode {
    match told.print() {
        Err(error) if !told.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            failed(&anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(1)),
    }
}
