//! `emberkeep token new`: a token for a service, shown once.

use crate::output::{self, Stream};
use crate::schema::declared_service;
use anyhow::Context;
use emberkeep::schema::Service;
use emberkeep_server::auth::{Entry, Role, Token, write_entry_after};
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
    /// Service that its calls act as, in games that declare services: they write only what this service may write.
    /// `emberkeep schema keys` names the services. Without it they may write everything
    #[arg(long, value_name = "NAME", value_parser = declared_service)]
    service: Option<&'static Service>,
    /// File that keeps its hash; made if there is none. The server's --tokens names the same file
    #[arg(long, value_name = "FILE", env = "EMBERKEEP_TOKENS")]
    tokens: PathBuf,
}

/// Makes a token, shows it, and stores its hash. A token that could not be shown is not stored.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let token = Token::new().context("the system gives no randomness")?;
    let Arguments { name, role, service, .. } = arguments;
    let service = service.map(|service| service.name.to_owned());
    let entry = Entry { name: name.clone(), role: *role, service, hash: token.hash() };
    let show = || {
        let shown = output::show(format_args!("{}\n", token.reveal()));
        shown.map_err(|error| {
            let message =
                format!("the token cannot be shown on standard output, so it was not added: {error}");
            std::io::Error::new(error.kind(), message)
        })
    };
    write_entry_after(&arguments.tokens, &entry, show)?;
    output::offer(Stream::Error, format!("shown once; its hash is in {}\n", arguments.tokens.display()));
    Ok(ExitCode::SUCCESS)
}
