//! What a further process does.

pub(super) mod damage;
pub(super) mod empty_http;
pub(super) mod memory;
pub(super) mod tenant;

use anyhow::Result;
use clap::Subcommand;

/// Which work.
#[derive(Debug, Subcommand)]
pub(super) enum WorkerArgs {
    /// Hits monsters on Redis.
    Damage(damage::DamageArgs),
    /// Answers every request with nothing.
    EmptyHttp,
    /// Loads sessions and tells what they cost.
    Memory {
        /// How many.
        #[arg(long)]
        sessions: u64,
    },
    /// Brings a tenant's monsters to life, and tells what they cost.
    Tenant {
        /// How many.
        #[arg(long)]
        monsters: u64,
        /// Seconds per figure.
        #[arg(long)]
        seconds: f64,
    },
}

/// Works, and prints a line of JSON.
pub(super) fn run(args: WorkerArgs) -> Result<()> {
    match args {
        WorkerArgs::Damage(args) => damage::run(args),
        WorkerArgs::EmptyHttp => empty_http::run(),
        WorkerArgs::Memory { sessions } => memory::run(sessions),
        WorkerArgs::Tenant { monsters, seconds } => tenant::run(monsters, seconds),
    }
}
