//! DarkAges: positions, zones, spatial queries and rate limits, each beside plain commands of the same client; and full
//! fights, on both tiers.
//!
//! The targets of the storage document's section 4.1 are rows of `history --only document`.

mod fight;
mod rate_limits;
mod zones;

use crate::measure::Samples;
use crate::peer::Peer;
use crate::row::{Goal, Row};
use crate::suite::{Bench, Workload};
use anyhow::{Result, ensure};
use emberkeep::games::darkages::{
    DarkAges, EntityId, POSITION, Point, Position, SESSION, Session, Shard, ZONE_PLAYERS, ZoneId,
};
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Error, Store, Tx};
use emberkeep::redis::RedisEngine;
use emberkeep::schema::{Codec, Family};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;

/// The workloads in the order in which they run.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "positions", run: positions },
    Workload { name: "zone", run: zones::zones },
    Workload { name: "nearby", run: zones::nearby },
    Workload { name: "fight", run: fight::fight },
    Workload { name: "rate-limit", run: rate_limits::rate_limits },
];

/// Players of one tick.
const PLAYERS: i64 = 10_000;
/// Players that one transaction of the preparation writes.
const CHUNK: usize = 500;
/// A server call that takes longer keeps others waiting.
const SLOW_CALL_MICROS: u64 = 2_000;
/// Before every key, also those of the peer.
const PREFIX: &str = "bench:darkages:";
/// Life of a position, in seconds.
const POSITION_SECONDS: u64 = 120;

/// A game on an engine, and where its calls run.
struct City {
    game: DarkAges,
    runtime: Runtime,
    /// What it is on, for the name of a row.
    on: &'static str,
}

impl City {
    /// One in this process.
    fn embedded() -> Result<City> {
        let store = Store::new(Arc::new(Embedded::in_memory()));
        Ok(City { game: DarkAges::new(store, "bench")?, runtime: workers()?, on: "embedded" })
    }

    /// One on the Redis of the run, without keys of others.
    fn on_redis(peer: &Peer) -> Result<City> {
        let (runtime, url) = (workers()?, prefixed(peer.url()));
        let store = Store::new(runtime.block_on(RedisEngine::connect(&url))?);
        Ok(City { game: DarkAges::new(store, "bench")?, runtime, on: "redis" })
    }

    /// Enters players into a zone, as another program does it, and lets the game check them once.
    fn fill(&self, zone: ZoneId, first: i64, players: i64) -> Result<()> {
        let entities: Vec<EntityId> = (first..first + players).map(EntityId).collect();
        self.runtime.block_on(async {
            let scope = self.game.scope_of(zone);
            let at = scope.store().now().await?;
            for chunk in entities.chunks(CHUNK) {
                let chunk = chunk.to_vec();
                let enter = move |tx: &mut Tx<'_, Shard>| {
                    for entity in &chunk {
                        let here = Point::new(0.0, 0.0, 0.0);
                        let session = Session::new(entity.0, "bench".into(), zone.0, at, at, here, 100, 100);
                        tx.put(&SESSION.key(entity), &session)?;
                    }
                    tx.sadd_many(&ZONE_PLAYERS.key(zone), &chunk)
                };
                scope.transact::<(), Error, _>(enter).await?;
            }
            let count = self.game.count(zone).await?;
            ensure!(count as i64 == players, "{count} players in a zone of {players}");
            Ok(())
        })
    }

    /// Milliseconds of a call.
    fn millis<T>(&self, call: impl Future<Output = Result<T>>) -> Result<f64> {
        let started = Instant::now();
        self.runtime.block_on(call)?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    }
}

/// A URL whose keys are the benchmark's own: the server may have those of a game.
fn prefixed(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}prefix={PREFIX}")
}

/// The text of a key on one server, with our prefix.
fn key_text<F: Family<Partition = Shard>>(key: emberkeep::schema::Key<F>) -> String {
    format!("{PREFIX}{}", key.to_text(&emberkeep::schema::KeyLayout::single(), &Shard::default()))
}

fn workers() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// The positions of a tick: everyone has moved since the one before.
fn tick(first: i64, at: i64) -> Vec<(EntityId, Position)> {
    let place = |number: i64| {
        let angle = number as f64 * 0.7;
        // A disc, filled evenly.
        let distance = (number as f64).sqrt() * 10.0;
        Position { x: distance * angle.cos(), y: 0.5, z: distance * angle.sin(), at }
    };
    (0..PLAYERS).map(|number| (EntityId(first + number), place(number))).collect()
}

/// Positions of 10,000 players per tick, beside a pipeline of as many SETs with a TTL.
fn positions(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let embedded = positions_on(bench, name, &City::embedded()?, &peer, Goal::AtMost(10.0))?;
    slow_log(&peer)?;
    let redis = positions_on(bench, name, &City::on_redis(&peer)?, &peer, Goal::RatioAtMost(2.5))?;
    let slow: u64 = peer.call(redis::cmd("SLOWLOG").arg("LEN"))?;
    Ok(vec![embedded, redis.note(format!("{slow} server calls over 2 ms, the peer's pipelines included"))])
}

fn positions_on(bench: &Bench, name: &str, city: &City, peer: &Rc<Peer>, goal: Goal) -> Result<Row> {
    let name = format!("{name}-{}", city.on);
    let mut at = city.runtime.block_on(city.game.scope().store().now())?;
    let ours = || {
        at += 50;
        let positions = tick(1, at);
        city.millis(async {
            let done = city.game.set_positions(positions).await?;
            ensure!(done.written as i64 == PLAYERS, "{done:?}");
            Ok(())
        })
    };
    let (ours, theirs) = bench.take_turns(&name, "ms", ours, || pipeline_of_sets(peer))?;
    Ok(Row::new(&name, "ms", &ours, &theirs, goal).beside(format!("a pipeline of SETs on {}", peer.name())))
}

/// Milliseconds of 10,000 SETs with a TTL.
fn pipeline_of_sets(peer: &Peer) -> Result<f64> {
    let positions: Vec<(String, Vec<u8>)> = tick(-2 * PLAYERS, 1_700_000_000_000)
        .into_iter()
        .map(|(entity, position)| {
            let mut text = Vec::new();
            <emberkeep::games::darkages::model::PositionText as Codec>::encode(&position, &mut text)?;
            anyhow::Ok((key_text(POSITION.key(entity)), text))
        })
        .collect::<Result<_>>()?;
    let started = Instant::now();
    peer.call_each(positions.len() as u64, |number, pipe| {
        let (key, text) = &positions[number as usize];
        pipe.cmd("SET").arg(key).arg(text).arg("EX").arg(POSITION_SECONDS);
    })?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// Counts calls that keep others waiting from now on.
fn slow_log(peer: &Peer) -> Result<()> {
    let name = "slowlog-log-slower-than";
    peer.call::<()>(redis::cmd("CONFIG").arg("SET").arg(name).arg(SLOW_CALL_MICROS))?;
    peer.call(redis::cmd("SLOWLOG").arg("RESET"))
}

/// A row whose peer's figure is in other samples.
fn row(name: &str, unit: &'static str, (ours, theirs): &(Samples, Samples), goal: Goal, beside: &str) -> Row {
    Row::new(name, unit, ours, theirs, goal).beside(beside)
}
