//! What a further process does.

pub(super) mod damage;
pub(super) mod empty_http;
pub(super) mod memory;
mod serve;
pub(super) mod tenant;

use anyhow::Result;
use clap::Subcommand;

/// The work of a process.
#[derive(Debug, Subcommand)]
pub(super) enum WorkerArgs {
    /// Hits monsters on Redis.
    Damage(damage::DamageArgs),
    /// Answers every request with nothing.
    EmptyHttp,
    /// Loads sessions and tells what they cost.
    Memory {
        /// How many sessions it opens.
        #[arg(long)]
        sessions: u64,
    },
    /// A proxy that delays a server; controlled by lines on its input.
    Proxy {
        /// Where to connect: `host:port`.
        target: String,
    },
    /// Serves the games.
    Serve(serve::ServeArgs),
    /// Brings a tenant's monsters to life, and tells what they cost.
    Tenant {
        /// How many monsters it spawns.
        #[arg(long)]
        monsters: u64,
        /// Seconds for each figure.
        #[arg(long)]
        seconds: f64,
    },
}

/// Works, and prints its result.
pub(super) fn run(args: WorkerArgs) -> Result<()> {
    match args {
        WorkerArgs::Damage(args) => damage::run(args),
        WorkerArgs::EmptyHttp => empty_http::run(),
        WorkerArgs::Memory { sessions } => memory::run(sessions),
        WorkerArgs::Proxy { target } => {
            Ok(emberkeep_testkit::serve_proxy(&target, std::io::stdin().lock(), std::io::stdout().lock())?)
        }
        WorkerArgs::Serve(args) => serve::run(&args),
        WorkerArgs::Tenant { monsters, seconds } => tenant::run(monsters, seconds),
    }
}
