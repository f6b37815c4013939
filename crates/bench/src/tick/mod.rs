//! Galaxy's ticks: thousands of ships that move together, beside the plain pipeline of HSETs that a reader sees torn.

mod readers;

use crate::peer::Peer;
use crate::row::{Goal, Row};
use crate::suite::{Bench, Workload};
use anyhow::{Result, ensure};
use emberkeep::games::galaxy::BODY;
use emberkeep::games::galaxy::{
    BodyName, BodyState, Galaxy, GalaxyState, Motion, PlayerId, SHIP, ShipId, ShipState, StartRequest,
    SystemId, TickRun, Vector, World,
};
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Error, Store, Tx};
use emberkeep::redis::RedisEngine;
use emberkeep::schema::{Codec, KeyLayout, Name};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// The workloads in the order in which they run.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "commit", run: commit },
    Workload { name: "growth", run: growth },
    Workload { name: "view", run: view },
    Workload { name: "readers", run: readers::readers },
];

/// Ships of a tick.
const SHIPS: u128 = 10_000;
/// Celestial bodies of a tick.
const BODIES: u128 = 50;
/// Sizes whose time per ship is compared.
const GROWTH: [u128; 4] = [1_000, 5_000, 10_000, 50_000];
/// A server call that takes longer keeps others waiting.
const SLOW_CALL_MICROS: u64 = 2_000;
/// Before every key, also those of the peer.
const PREFIX: &str = "bench:galaxy:";
/// Ships that one transaction of the preparation writes.
const PREPARED_AT_ONCE: usize = 500;
/// The real time of a step.
const STEP: Duration = Duration::from_millis(100);

/// A galaxy on an engine, and where its calls run.
struct Space {
    run: TickRun,
    world: World,
    runtime: Runtime,
    /// What it is on, for the name of a row.
    on: &'static str,
}

impl Space {
    fn embedded(ships: u128) -> Result<Space> {
        Space::new(Store::new(Arc::new(Embedded::in_memory())), workers()?, "embedded", ships)
    }

    /// One on the Redis of the run.
    fn on_redis(peer: &Peer, ships: u128) -> Result<Space> {
        let runtime = workers()?;
        let store = Store::new(runtime.block_on(RedisEngine::connect(&prefixed(peer.url())))?);
        Space::new(store, runtime, "redis", ships)
    }

    fn new(store: Store, runtime: Runtime, on: &'static str, ships: u128) -> Result<Space> {
        let state = GalaxyState::new(store);
        let world = world(ships);
        let run = runtime.block_on(async {
            let run = state.tick_engine().start(StartRequest::new("bench")).await?;
            run.reset(None).await?;
            create(&state, &world).await?;
            anyhow::Ok(run)
        })?;
        Ok(Space { run, world, runtime, on })
    }

    /// Moves everything and commits the tick. Returns the milliseconds of the commit.
    fn tick(&mut self) -> Result<f64> {
        let Space { run, world, runtime, .. } = self;
        runtime.block_on(async {
            let mut step = run.begin(STEP).await?;
            step.apply(world);
            world.ships.values_mut().for_each(|ship| ship.motion.position.x += 1.5);
            let started = Instant::now();
            run.commit(&mut step, world).await?;
            Ok(started.elapsed().as_secs_f64() * 1e3)
        })
    }
}

/// The hashes of a world, as another program creates them.
async fn create(state: &GalaxyState, world: &World) -> Result<()> {
    let system = "system_id".to_owned();
    let ships: Vec<ShipId> = world.ships.keys().copied().collect();
    for some in ships.chunks(PREPARED_AT_ONCE) {
        let (some, system) = (some.to_vec(), system.clone());
        let write = move |tx: &mut Tx<'_, Galaxy>| {
            some.iter().try_for_each(|ship| tx.hset(&SHIP.key(ship), &system, &"sol".to_owned()))
        };
        state.scope().transact::<(), Error, _>(write).await?;
    }
    let bodies: Vec<BodyName> = world.bodies.keys().cloned().collect();
    let write = move |tx: &mut Tx<'_, Galaxy>| {
        bodies.iter().try_for_each(|name| tx.hset(&BODY.key(name), &system, &"sol".to_owned()))
    };
    Ok(state.scope().transact::<(), Error, _>(write).await?)
}

/// Ships on a spiral, and bodies.
fn world(ships: u128) -> World {
    let mut world = World::default();
    for number in 1..=ships {
        let angle = number as f64 * 0.7;
        let motion = Motion {
            position: Vector::new(1.5e11 * angle.cos(), 1.5e11 * angle.sin(), number as f64 + 0.25),
            velocity: Vector::new(-29_780.5 * angle.sin(), 29_780.5 * angle.cos(), 0.125),
            fuel: 30_000.0 - angle,
            ..Motion::default()
        };
        let state =
            ShipState { player_id: PlayerId(Uuid::from_u128(number)), system_id: SystemId::sol(), motion };
        world.ships.insert(ShipId(Uuid::from_u128(number)), state);
    }
    for number in 0..BODIES {
        let name = BodyName(Name::new(format!("body-{number}")).expect("a valid name"));
        let position = Vector::new(number as f64 * 1e9, 0.5, 0.0);
        world.bodies.insert(name, BodyState { system_id: SystemId::sol(), position, velocity: Vector::ZERO });
    }
    world
}

/// A tick of 10,000 ships and 50 bodies.
fn commit(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let ships = if bench.quick { SHIPS / 10 } else { SHIPS };
    let embedded = commit_on(bench, name, &mut Space::embedded(ships)?, &peer, Goal::RatioAtMost(0.4))?;
    let mut space = Space::on_redis(&peer, ships)?;
    slow_log(&peer)?;
    let redis = commit_on(bench, name, &mut space, &peer, Goal::RatioAtMost(2.2))?;
    let slow: u64 = peer.call(redis::cmd("SLOWLOG").arg("LEN"))?;
    Ok(vec![embedded, redis.note(format!("{slow} server calls over 2 ms, the peer's pipelines included"))])
}

fn commit_on(bench: &Bench, name: &str, space: &mut Space, peer: &Peer, goal: Goal) -> Result<Row> {
    let name = format!("{name}-{}", space.on);
    let plain = space.world.clone();
    space.tick()?;
    let (ours, theirs) = bench.take_turns(&name, "ms", || space.tick(), || pipeline(peer, &plain))?;
    let head = space.runtime.block_on(space.run.state().head())?;
    ensure!(head.entities as usize == plain.len(), "{} entities in the tick", head.entities);
    let beside = format!("a torn pipeline of HSETs on {}", peer.name());
    Ok(Row::new(&name, "ms", &ours, &theirs, goal).beside(beside))
}

/// Milliseconds of one HSET for each entity, texts included.
fn pipeline(peer: &Peer, world: &World) -> Result<f64> {
    let ships: Vec<(&ShipId, &ShipState)> = world.ships.iter().collect();
    let bodies: Vec<(&BodyName, &BodyState)> = world.bodies.iter().collect();
    let started = Instant::now();
    peer.call_each(ships.len() as u64, |number, pipe| {
        let (ship, state) = ships[number as usize];
        let motion = &state.motion;
        let key = format!("{PREFIX}plain:{}", SHIP.key(ship).to_text(&KeyLayout::single(), &Galaxy));
        let command = pipe.cmd("HSET").arg(key);
        command.arg("position").arg(text(&motion.position)).arg("velocity").arg(text(&motion.velocity));
        let attitude = <[f64; 4]>::from(motion.attitude);
        command.arg("attitude").arg(format!("{attitude:?}"));
        command.arg("angular_velocity").arg(text(&motion.angular_velocity));
        command.arg("fuel").arg(motion.fuel.to_string());
        command.arg("wheel_momentum").arg(text(&motion.wheel_momentum));
    })?;
    peer.call_each(bodies.len() as u64, |number, pipe| {
        let (name, state) = bodies[number as usize];
        let key = format!("{PREFIX}plain:{}", BODY.key(name).to_text(&KeyLayout::single(), &Galaxy));
        let command = pipe.cmd("HSET").arg(key);
        command.arg("position").arg(text(&state.position)).arg("velocity").arg(text(&state.velocity));
    })?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn text(vector: &Vector) -> Vec<u8> {
    let mut out = Vec::new();
    // Vectors of the benchmark are finite.
    let _ = Vector::encode(vector, &mut out);
    out
}

/// Microseconds per ship of ticks from 1,000 to 50,000 ships: at most linear growth.
fn growth(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let sizes = if bench.quick { &GROWTH[..2] } else { &GROWTH[..] };
    let mut rows = Vec::new();
    for ships in sizes {
        let mut space = Space::on_redis(&peer, *ships)?;
        let plain = space.world.clone();
        space.tick()?;
        let name = format!("{name}-{ships}");
        let per_ship = |millis: f64| millis * 1e3 / *ships as f64;
        let (ours, theirs) = bench.take_turns(
            &name,
            "µs/ship",
            || space.tick().map(per_ship),
            || pipeline(&peer, &plain).map(per_ship),
        )?;
        rows.push(Row::new(&name, "µs/ship", &ours, &theirs, Goal::None).beside("a torn pipeline of HSETs"));
    }
    Ok(rows)
}

/// What a reader of a whole tick pays: once a tick, and again while the tick is the same.
fn view(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let ships = if bench.quick { SHIPS / 10 } else { SHIPS };
    let mut rows = Vec::new();
    for mut space in [Space::embedded(ships)?, Space::on_redis(&peer, ships)?] {
        space.tick()?;
        let read = |state: &GalaxyState| {
            let started = Instant::now();
            let view = space.runtime.block_on(state.tick())?;
            ensure!(view.world.ships.len() as u128 == ships, "{} ships", view.world.ships.len());
            Ok(started.elapsed().as_secs_f64() * 1e3)
        };
        let (name, known) = (format!("{name}-{}", space.on), space.run.state().clone());
        read(&known)?;
        let store = known.store().clone();
        let (whole, same) =
            bench.take_turns(&name, "ms", || read(&GalaxyState::new(store.clone())), || read(&known))?;
        rows.push(Row::new(&name, "ms", &whole, &same, Goal::None).beside("the same tick again"));
    }
    Ok(rows)
}

/// Counts calls that keep others waiting from now on.
fn slow_log(peer: &Peer) -> Result<()> {
    let name = "slowlog-log-slower-than";
    peer.call::<()>(redis::cmd("CONFIG").arg("SET").arg(name).arg(SLOW_CALL_MICROS))?;
    peer.call(redis::cmd("SLOWLOG").arg("RESET"))
}

/// A URL whose keys are the benchmark's own: the server may have those of a game.
fn prefixed(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}prefix={PREFIX}")
}

fn workers() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
