//! `emberkeep token new`: a token for a service, shown once.

use anyhow::Context;
use emberkeep_server::auth::{Entry, Role, Token, write_entry};
use std::path::PathBuf;
use std::process::ExitCode;

/// What a new token is for.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Whose it is, as it appears in logs
    #[arg(long)]
    name: String,
    /// What it allows: read-only, service (the operations of the games) or admin (what concerns whole tenants)
    #[arg(long, default_value = "service")]
    role: Role,
    /// File that keeps its hash; made if there is none. The server's --tokens names the same file
    #[arg(long, value_name = "FILE", env = "EMBERKEEP_TOKENS")]
    tokens: PathBuf,
}

/// Makes a token, keeps its hash, and shows it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let token = Token::new().context("the system gives no randomness")?;
    let entry = Entry { name: arguments.name.clone(), role: arguments.role, hash: token.hash() };
    write_entry(&arguments.tokens, &entry)?;
    println!("{}", token.reveal());
    eprintln!("shown once; its hash is in {}", arguments.tokens.display());
    Ok(ExitCode::SUCCESS)
}
