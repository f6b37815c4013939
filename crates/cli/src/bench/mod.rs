//! `emberkeep bench`: each workload beside its peer, in one run, with ratios.
//!
//! Responsible for: workloads, peers, samples, the table. Not responsible for: being a test. Where a workload can
//! see that a hit was lost, it says so and fails, but proofs are the business of the tests.
//!
//! Reading order: `suite` (the list and the rounds), `measure` and `row` (what a figure is), then any file of
//! `work`. `sessions` and `targets` hold what is stored, `bare_map` and `peer` are what we are compared with,
//! `children` and `worker` are the same binary again, where a workload needs further processes. `server` is the same for
//! the server.

mod bare_map;
mod children;
mod histogram;
mod measure;
mod peer;
mod report;
mod row;
mod server;
mod sessions;
mod suite;
mod targets;
mod work;
mod worker;

use anyhow::Result;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Arguments of `emberkeep bench`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Hot state: the embedded engine and Redis, each beside its peer. About six minutes.
    Hot(SuiteArgs),
    /// The server: HTTP and WebSocket with clients on the same machine. About three minutes.
    Server(SuiteArgs),
    /// A further process of a workload.
    #[command(hide = true, subcommand)]
    Worker(worker::WorkerArgs),
    /// A proxy that makes a server far away; steered by lines on its input.
    #[command(hide = true)]
    Proxy {
        /// host:port
        target: String,
    },
}

/// Arguments of a suite.
#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// Run only workloads whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure on this Redis instead of starting one. Only keys of the benchmark are written.
    #[arg(long, value_name = "redis://…")]
    against: Option<String>,
    /// Rounds per workload; ours and the peer take turns in each.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Seconds per sample.
    #[arg(long)]
    seconds: Option<f64>,
    /// Fewer rounds, shorter samples, smaller data: under a minute.
    #[arg(long)]
    quick: bool,
}

/// Runs `emberkeep bench`.
pub(crate) fn run(args: Arguments) -> Result<ExitCode> {
    // Every workload has runtimes of its own, so none may be around it.
    let bench = std::thread::Builder::new().name("bench".into()).spawn(|| match args.what {
        What::Hot(args) => suite::run(suite::HOT, &args),
        What::Server(args) => suite::run(server::WORKLOADS, &args),
        What::Worker(worker) => worker::run(worker),
        What::Proxy { target } => {
            Ok(emberkeep_testkit::serve_proxy(&target, std::io::stdin().lock(), std::io::stdout().lock())?)
        }
    })?;
    bench.join().unwrap_or_else(|_| anyhow::bail!("the benchmark panicked, see above"))?;
    Ok(ExitCode::SUCCESS)
}
