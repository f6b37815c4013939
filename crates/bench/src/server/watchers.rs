//! Watchers of Galaxy's ticks: from the beginning of a tick's commit to the moment in which each watcher has it.
//!
//! The tick engine is in this process, the server in another one, both on one Redis. All ships move in every tick, so a
//! delta has them all.

use super::server_process::ServerProcess;
use super::ws_client::WsClient;
use crate::measure::{Samples, latencies};
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::{Context, Result, ensure};
use emberkeep::games::galaxy::{GalaxyState, NewShip, PlayerId, ShipId, StartRequest, TickRun, Vector};
use emberkeep::hot::Store;
use emberkeep::redis::RedisEngine;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use uuid::Uuid;

const WATCHERS: usize = 1_000;
const WATCHERS_QUICK: usize = 100;
const SHIPS: u128 = 200;
const SECONDS: i64 = 15;
const SECONDS_QUICK: i64 = 3;
const TICKS_PER_SECOND: i64 = 10;
const P99_MS_MAX: f64 = 100.0;
/// Of the ticks, how many each watcher has at least: others may be merged with the next one.
const SHARE_MIN: f64 = 0.9;

/// When each tick's commit began, by tick.
type Begun = Arc<Mutex<Vec<Instant>>>;

/// Latency of ticks.
pub(crate) fn watchers(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let (count, seconds) = if bench.quick { (WATCHERS_QUICK, SECONDS_QUICK) } else { (WATCHERS, SECONDS) };
    let ticks = seconds * TICKS_PER_SECOND;
    let redis = bench.redis()?;
    // Apart from what other runs left there.
    let url = format!("{}?prefix=watchers-{}:", redis.url(), Uuid::new_v4().simple());
    let server = ServerProcess::start(Some(&url), None)?;
    say(&format!("{name}  {count} watchers of {SHIPS} ships at {TICKS_PER_SECOND} Hz, for {seconds} s"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let heard = runtime.block_on(watch(url, server.address, count, ticks))?;
    let expected = count as f64 * ticks as f64;
    let share = heard.len() as f64 / expected;
    ensure!(share >= SHARE_MIN, "the watchers had {:.0} % of the ticks", share * 100.0);
    let ms = |us: u64| us as f64 / 1_000.0;
    let note = format!(
        "{count} watchers, {SHIPS} ships, {ticks} ticks: {:.1} % came as one of their own; p50 {:.1} ms, max {:.0} ms",
        share * 100.0,
        ms(heard.value_at_quantile(0.5)),
        ms(heard.max())
    );
    let only = |figure: f64| [figure].into_iter().collect::<Samples>();
    let p99 = ms(heard.value_at_quantile(0.99));
    Ok(vec![
        Row::new(name, "ms, p99", &only(p99), &only(P99_MS_MAX), Goal::AtMost(P99_MS_MAX))
            .beside("the limit")
            .note(note),
    ])
}

async fn watch(url: String, server: SocketAddr, count: usize, ticks: i64) -> Result<Histogram<u64>> {
    let galaxy = GalaxyState::new(Store::new(RedisEngine::connect(&url).await?));
    for number in 1..=SHIPS {
        let (id, player) = (ShipId(Uuid::from_u128(number)), PlayerId(Uuid::from_u128(number)));
        let mut ship = NewShip::new(id, player, format!("Ship {number}"));
        ship.motion.velocity = Vector::new(29_780.5 + number as f64, 1.0 / 3.0, -7.25e3);
        galaxy.physics().spawn_ship(ship).await?;
    }
    let run = galaxy.tick_engine().start(StartRequest::new("bench")).await?;
    let begun = Begun::default();
    let mut watching = JoinSet::new();
    for _ in 0..count {
        let client = WsClient::watch(server, "sol").await?;
        watching.spawn(follow(client, begun.clone(), ticks));
    }
    tick(&run, &begun, ticks).await?;
    let mut heard = latencies();
    while let Some(one) = watching.join_next().await {
        heard.add(one??)?;
    }
    Ok(heard)
}

/// Commits ticks, each at its moment.
async fn tick(run: &TickRun, begun: &Begun, ticks: i64) -> Result<()> {
    let mut world = run.load().await?;
    let every = Duration::from_secs(1) / TICKS_PER_SECOND as u32;
    let mut moments = tokio::time::interval(every);
    for _ in 0..ticks {
        moments.tick().await;
        let mut step = run.begin(every).await?;
        step.apply(&mut world);
        for ship in world.ships.values_mut() {
            ship.motion.position.x += ship.motion.velocity.x * step.seconds;
            ship.motion.position.y += ship.motion.velocity.y * step.seconds;
            ship.motion.position.z += ship.motion.velocity.z * step.seconds;
        }
        begun.lock().push(Instant::now());
        run.commit(&mut step, &mut world).await?;
    }
    Ok(())
}

/// Receives ticks until the last one.
async fn follow(mut client: WsClient, begun: Begun, ticks: i64) -> Result<Histogram<u64>> {
    let mut heard = latencies();
    loop {
        let text = client.next().await?;
        let tick = tick_of(&text).with_context(|| format!("no tick in {text}"))?;
        if let Some(start) = begun.lock().get((tick - 1) as usize) {
            heard.record(start.elapsed().as_micros() as u64)?;
        }
        if tick >= ticks {
            return Ok(heard);
        }
    }
}

/// The tick of a message. A server writes it early, so nothing else needs to be read.
fn tick_of(text: &str) -> Option<i64> {
    let (_, rest) = text.split_once("\"tick\":")?;
    rest.split_once(',')?.0.parse().ok()
}
