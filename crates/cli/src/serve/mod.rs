//! `emberkeep serve`: the games over HTTP and WebSocket, until a signal ends it.

mod log;
mod open_files;

use crate::history::{consumers, open_or_wait};
use crate::output::{Stream, offer};
use crate::settings;
use crate::store::open;
use anyhow::{Context, anyhow, bail};
use emberkeep::HistoryUrl;
use emberkeep::games::darkages::archive::recorder::Recorder;
use emberkeep::history::spool::SpoolOptions;
use emberkeep::hot::Store;
use emberkeep_server::{HistoryTier, ListenError, RunningServer, listen_with_history};
use emberkeep_sim::{CITY_PLAYER, CITY_ZONE, ServerDemo, TemporaryFolder};
use log::Log;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// The code of a process that was ended by an interrupt, as shells say it.
const ENDED_AT_ONCE: i32 = 130;

/// How the server runs.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: settings::Sources,
    /// Runs simulated players on a few fields, and opens a room to join
    #[arg(long)]
    demo: bool,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut settings = arguments.settings.settings()?;
    if arguments.demo {
        check_demo(&settings)?;
    }
    let log = Log::begin(settings.log, settings.log_level).context("cannot begin to log")?;
    settings.listen.log_lines_dropped = log.dropped();
    bound_connections(&mut settings);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(&settings, arguments.demo, &log));
    log.flush();
    outcome
}

/// No more connections than there can be open files.
fn bound_connections(settings: &mut settings::Settings) {
    let asked = settings.listen.connections_max;
    let files = open_files::raise();
    let connections = open_files::connections(asked, files);
    if connections < asked {
        let files = files.unwrap_or_default();
        tracing::warn!("connections-max is {connections} instead of {asked}: only {files} files may be open");
    }
    settings.listen.connections_max = connections;
}

/// Life is for a store of its own on this machine: its players would play with the things of others, and its room's key
/// is shown to every client.
fn check_demo(settings: &settings::Settings) -> anyhow::Result<()> {
    if !settings.store.is_in_process() {
        bail!(
            "--demo fills a store of its own; leave out hot (flag, variable and file), or leave out --demo"
        );
    }
    let http = settings.listen.http;
    if !settings.listen.is_loopback() {
        bail!(
            "--demo is for this machine only, and http is {http}; listen on 127.0.0.1, or leave out --demo"
        );
    }
    Ok(())
}

async fn serve(settings: &settings::Settings, demo: bool, log: &Log) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let store = open(&settings.store).await?;
    // What happens in the demo's city is kept as long as the demo.
    let temporary = (demo && settings.history.is_none()).then(TemporaryFolder::new);
    let folder = temporary.as_ref().map(|folder| folder.path().to_owned());
    let url =
        settings.history.clone().or(folder.as_ref().map(|path| HistoryUrl::folder(path.join("history"))));
    let spool = settings.spool.clone().or(folder.map(|path| path.join("spool")));
    let (tier, opening) = match url {
        Some(url) => {
            let (tier, opening) = history_tier(&store, url, spool.as_deref(), settings).await?;
            (Some(tier), opening)
        }
        None => (None, None),
    };
    let history_name = tier.as_ref().map(|tier| tier.history.store().name());
    let mut listening =
        listen_with_history(store.clone(), tier, &settings.listen).await.map_err(explained)?;
    let scheme = if settings.listen.tls.is_some() { "https" } else { "http" };
    let home = format!("{scheme}://{}", listening.address());
    tracing::info!("{} serving {} at {home}", env!("CARGO_PKG_VERSION"), store.name());
    let mut said = format!("emberkeep serves {} at {home}\n", store.name());
    said += &format!("  reference  {home}/docs\n  metrics    {home}/metrics\n");
    if let Some(name) = history_name {
        tracing::info!("events go to {name}");
        said += &format!("  history    {name}\n");
    }
    said += &format!("  rooms      {}/ws\n", home.replacen("http", "ws", 1));
    let demo = match demo {
        true => Some(begin_demo(&store, &listening, &home, &mut said).await?),
        false => None,
    };
    // Not on this thread: a pipe that is never read may take a second to give up.
    let saying = tokio::task::spawn_blocking(move || offer(Stream::Out, said));
    let failure = loop {
        tokio::select! {
            signal = signals.next() => match signal {
                SignalRequest::Stop => break None,
                SignalRequest::Reload => {
                    tracing::info!("reading tokens and certificate again");
                    listening.reload();
                }
            },
            error = listening.failed() => break Some(error),
        }
    };
    let _ = saying.await;
    if let Some(opening) = opening {
        opening.abort();
    }
    tokio::select! {
        ended = end(listening, demo) => ended?,
        () = signals.stop() => {
            tracing::warn!("asked to stop a second time: ending at once");
            log.flush();
            std::process::exit(ENDED_AT_ONCE);
        }
    }
    outcome(failure)
}

/// History with the consumers of all logs, and the spools.
async fn history_tier(
    store: &Store,
    url: HistoryUrl,
    spool: Option<&Path>,
    settings: &settings::Settings,
) -> anyhow::Result<(HistoryTier, Option<JoinHandle<()>>)> {
    let (history, opening) = open_or_wait(url).await?;
    let (shards, history_spool) = (&settings.listen.darkages_shards, settings.history_spool.as_deref());
    let (consumers, unused_spools) = consumers(store, &history, shards, history_spool)?;
    for folder in unused_spools {
        tracing::warn!(folder = %folder.display(), "events of a log that this server does not have wait in a spool; did --darkages-shards change?");
    }
    let tier = HistoryTier::new(history, consumers);
    let Some(folder) = spool else { return Ok((tier, opening)) };
    let recorder = Recorder::open(folder, SpoolOptions::default());
    let recorder = recorder.with_context(|| format!("cannot open the spool {}", folder.display()))?;
    Ok((tier.with_recorder(recorder, store), opening))
}

/// A taken port, with the flag that chooses another one.
fn explained(error: ListenError) -> anyhow::Error {
    match &error {
        ListenError::Address { address, error } if error.kind() == std::io::ErrorKind::AddrInUse => anyhow!(
            "cannot listen on {address}: another process listens there; end it, or choose another port with --http {}:{} \
             (port 0 takes a free one)",
            address.ip(),
            address.port().wrapping_add(1)
        ),
        _ => error.into(),
    }
}

/// What becomes of requests in flight, the demo and the store.
async fn end(listening: RunningServer, demo: Option<ServerDemo>) -> anyhow::Result<()> {
    tracing::info!("ending: requests in flight finish, then the store is closed");
    if let Some(demo) = demo {
        demo.end().await;
    }
    listening.end().await.context("the store was not closed cleanly")
}

/// A signal ended the server, or its listener failed: then a supervisor should start another process.
fn outcome(failure: Option<std::io::Error>) -> anyhow::Result<ExitCode> {
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => bail!("the listener failed, no client could connect any more: {error}"),
    }
}

/// Players on the fields, and a room that waits for players.
async fn begin_demo(
    store: &Store,
    listening: &RunningServer,
    home: &str,
    said: &mut String,
) -> anyhow::Result<ServerDemo> {
    let room = emberkeep_sim::open_room(store).await.context("cannot open the demo's room")?;
    let field = "0/1/100000000/00000000-0000-0000-0000-000000000000";
    let monsters = format!("/v1/tenants/{}/fields/{field}/monsters", emberkeep_sim::TENANT);
    *said += &format!("  monsters   {home}{monsters}\n");
    *said += &format!("  room       {}, master key {}\n", room.room_code, room.master_key.as_str());
    let zone = format!("/v1/darkages/zones/{CITY_ZONE}/members");
    *said += &format!("  city       {home}{zone}\n");
    *said += &format!("  kills      {home}/v1/darkages/kills\n");
    *said += &format!("  stars      {home}/v1/galaxy/systems/sol\n");
    listening.add_home_link("Monsters of the demo", monsters);
    listening.add_home_link("Players in a zone of the demo's city", zone);
    listening.add_home_link("Kills of today in the city", "/v1/darkages/kills");
    let stats = format!("/v1/darkages/players/{CITY_PLAYER}/stats");
    listening.add_home_link("What a player of the city did", stats);
    listening.add_home_link("Ships, stations and bodies of the demo's star system", "/v1/galaxy/systems/sol");
    listening.add_home_link("Room of the demo", format!("/v1/rooms/{}", room.room_code));
    Ok(ServerDemo::start(store.clone()))
}

/// What a signal asks for.
enum SignalRequest {
    Stop,
    Reload,
}

/// SIGINT and SIGTERM end the server in order. SIGHUP reads tokens and certificate again; where the server runs on a terminal it says
/// that the terminal is gone, and ends the server in order, too.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    on_terminal: bool,
}

impl Signals {
    fn listen() -> anyhow::Result<Signals> {
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        let terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
        let on_terminal = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
        Ok(Signals { interrupt, terminate, hangup, on_terminal })
    }

    /// Waits for the next of them.
    async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.hangup.recv() => if self.on_terminal { SignalRequest::Stop } else { SignalRequest::Reload },
        }
    }

    /// Waits for the next one that ends the server.
    async fn stop(&mut self) {
        while let SignalRequest::Reload = self.next().await {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_failed_is_a_failure_of_the_process() {
        let error = outcome(Some(std::io::Error::other("no more files"))).unwrap_err().to_string();
        assert_eq!(error, "the listener failed, no client could connect any more: no more files");
        assert_eq!(outcome(None).unwrap(), ExitCode::SUCCESS);
    }
}
