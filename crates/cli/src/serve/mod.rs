//! `emberkeep serve`: the games over HTTP and WebSocket, until somebody says stop.

mod log;

use crate::demo;
use crate::open::open;
use crate::settings;
use anyhow::{Context, bail};
use emberkeep::hot::Store;
use emberkeep_server::{Listening, listen};
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The code of a process that was ended by an interrupt, as shells say it.
const ENDED_AT_ONCE: i32 = 130;

/// How the server runs.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: settings::Sources,
    /// Fill the store with life: fields that are played on, and a room
    #[arg(long)]
    demo: bool,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.settings.settings()?;
    if arguments.demo {
        check_demo(&settings)?;
    }
    log::begin(settings.log, settings.log_level);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(&settings, arguments.demo))
}

/// Life is for a store of its own on this machine: its players would play with the things of others, and its room's key
/// is shown to everybody.
fn check_demo(settings: &settings::Settings) -> anyhow::Result<()> {
    if !settings.store.is_in_process() {
        bail!(
            "--demo fills a store of its own; leave out hot (flag, variable and file), or leave out --demo"
        );
    }
    let http = settings.listen.http;
    if !http.ip().to_canonical().is_loopback() {
        bail!(
            "--demo is for this machine only, and http is {http}; listen on 127.0.0.1, or leave out --demo"
        );
    }
    Ok(())
}

async fn serve(settings: &settings::Settings, demo: bool) -> anyhow::Result<ExitCode> {
    let mut stop = Stop::listen()?;
    let store = open(&settings.store).await?;
    let mut listening = listen(store.clone(), &settings.listen).await?;
    let scheme = if settings.listen.tls.is_some() { "https" } else { "http" };
    let home = format!("{scheme}://{}", listening.address());
    println!("emberkeep serves {} at {home}", store.name());
    println!("  reference  {home}/docs");
    println!("  metrics    {home}/metrics");
    println!("  rooms      {}/ws", home.replacen("http", "ws", 1));
    let life = match demo {
        true => Some(begin_demo(&store, &home).await?),
        false => None,
    };
    let failure = tokio::select! {
        () = stop.told() => None,
        error = listening.failed() => Some(error),
    };
    tokio::select! {
        ended = end(listening, life) => ended?,
        () = stop.told() => {
            eprintln!("emberkeep: told to end a second time: ending at once");
            std::process::exit(ENDED_AT_ONCE);
        }
    }
    outcome(failure)
}

/// What becomes of requests in flight, life and the store.
async fn end(listening: Listening, life: Option<demo::Life>) -> anyhow::Result<()> {
    tracing::info!("ending: requests in flight finish, then the store is closed");
    if let Some(life) = life {
        life.end().await;
    }
    listening.end().await.context("the store was not closed cleanly")
}

/// Somebody said stop, or nobody can connect any more: whoever watches the process should start another one.
fn outcome(failure: Option<std::io::Error>) -> anyhow::Result<ExitCode> {
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => bail!("the listener failed, nobody could connect any more: {error}"),
    }
}

/// Life on the fields, and a room that waits for players.
async fn begin_demo(store: &Store, home: &str) -> anyhow::Result<demo::Life> {
    let room = demo::open_room(store).await.context("cannot open the demo's room")?;
    let field = "0/1/100000000/00000000-0000-0000-0000-000000000000";
    println!("  monsters   {home}/v1/tenants/{}/fields/{field}/monsters", demo::TENANT);
    println!("  room       {}, master key {}", room.room_code, room.master_key.as_str());
    Ok(demo::Life::begin(store.clone()))
}

/// SIGINT and SIGTERM. From the beginning of it on, both end the server in order.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> anyhow::Result<Stop> {
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        let terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        Ok(Stop { interrupt, terminate })
    }

    /// Waits for the next of them.
    async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_failed_is_a_failure_of_the_process() {
        let told = outcome(Some(std::io::Error::other("no more files"))).unwrap_err().to_string();
        assert_eq!(told, "the listener failed, nobody could connect any more: no more files");
        assert_eq!(outcome(None).unwrap(), ExitCode::SUCCESS);
    }
}
