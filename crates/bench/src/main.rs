//! `emberkeep-bench`: each workload beside its peer, in one run, with ratios.
//!
//! Responsible for: workloads, peers, samples, the table. Not responsible for: being a test. A workload that notices a lost
//! hit fails, but the proofs are in the tests.
//!
//! Reading order: `suite` (the rounds), `measure` and `row` (what a figure is), then any file of `hot`, `history`,
//! `darkages`, `tick` or `server`. `sessions` and `targets` describe what is stored, `bare_map` and `peer` are what we are compared with.
//! `worker_processes` and `worker` are this binary again, where a workload needs further processes.

mod bare_map;
mod darkages;
mod history;
mod hot;
mod measure;
mod peer;
mod report;
mod row;
mod runtime;
mod server;
mod sessions;
mod suite;
mod targets;
mod tick;
mod worker;
mod worker_processes;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// As in the `emberkeep` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Benchmarks of Emberkeep, each beside its peer
#[derive(Debug, Parser)]
#[command(name = "emberkeep-bench", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Hot state: the embedded engine and Redis, each beside its peer; about six minutes
    Hot(SuiteArgs),
    /// History: the embedded store beside SQLite, the outbox, CQL beside its driver, the targets of the storage document
    History(SuiteArgs),
    /// DarkAges: positions, zones, spatial queries and rate limits beside plain commands; about a minute
    Darkages(SuiteArgs),
    /// Galaxy: ticks of thousands of ships beside a plain pipeline, and what readers pay; about two minutes
    Tick(SuiteArgs),
    /// The server: HTTP and WebSocket with clients on the same machine; about three minutes
    Server(SuiteArgs),
    /// A further process of a workload
    #[command(hide = true, subcommand)]
    Worker(worker::WorkerArgs),
}

/// Arguments of a suite.
#[derive(Debug, Args)]
struct SuiteArgs {
    /// Run only workloads whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Measure on this Redis instead of starting one; only keys of the benchmark are written
    #[arg(long, value_name = "redis://…")]
    against: Option<String>,
    /// Rounds per workload; ours and the peer take turns in each
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Seconds per sample
    #[arg(long)]
    seconds: Option<f64>,
    /// Fewer rounds, shorter samples, smaller data: under a minute
    #[arg(long)]
    quick: bool,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Hot(args) => suite::run(hot::WORKLOADS, &args),
        Command::History(args) => suite::run(history::WORKLOADS, &args),
        Command::Darkages(args) => suite::run(darkages::WORKLOADS, &args),
        Command::Tick(args) => suite::run(tick::WORKLOADS, &args),
        Command::Server(args) => suite::run(server::WORKLOADS, &args),
        Command::Worker(worker) => worker::run(worker),
    }
}
