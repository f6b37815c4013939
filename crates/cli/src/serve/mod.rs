//! `emberkeep serve`: the games over HTTP and WebSocket, until somebody says stop.

mod log;

use crate::demo;
use crate::open::open;
use crate::settings;
use anyhow::Context;
use emberkeep::hot::Store;
use emberkeep_server::listen;
use std::process::ExitCode;

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
    log::begin(settings.log, settings.log_level);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(&settings, arguments.demo))
}

async fn serve(settings: &settings::Settings, demo: bool) -> anyhow::Result<ExitCode> {
    let stop = stopped()?;
    let store = open(&settings.store).await?;
    let listening = listen(store.clone(), &settings.listen).await?;
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
    stop.await;
    if let Some(life) = life {
        life.end().await;
    }
    tracing::info!("ending: requests in flight finish, then the store is closed");
    listening.end().await.context("the store was not closed cleanly")?;
    Ok(ExitCode::SUCCESS)
}

/// Life on the fields, and a room that waits for players.
async fn begin_demo(store: &Store, home: &str) -> anyhow::Result<demo::Life> {
    let room = demo::open_room(store).await.context("cannot open the demo's room")?;
    let field = "0/1/100000000/00000000-0000-0000-0000-000000000000";
    println!("  monsters   {home}/v1/tenants/{}/fields/{field}/monsters", demo::TENANT);
    println!("  room       {}, master key {}", room.room_code, room.master_key.as_str());
    Ok(demo::Life::begin(store.clone()))
}

/// Ends at SIGINT or SIGTERM. From this call on, both end the server in order.
fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
