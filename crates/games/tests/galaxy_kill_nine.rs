//! A tick engine that is killed: it moves all ships by one metre a tick and answers each tick, and it resets the galaxy now and
//! then. It is killed without warning at random points, while readers read. No reader ever sees a mixed tick, and the next
//! engine goes on where this one was.

use emberkeep_games::galaxy::{
    GalaxyState, NewShip, PlayerId, SHIP, ShipId, StartRequest, TickRun, TickView, World,
};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::Embedded;
use emberkeep_hot_redis::RedisEngine;
use emberkeep_testkit::report;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const FOLDER: &str = "EMBERKEEP_GALAXY_CHILD_FOLDER";
const REDIS: &str = "EMBERKEEP_GALAXY_CHILD_REDIS";
/// For each engine.
const KILLS_MAX: usize = 200;
/// Kills after which this process looks, too.
const CHECKED_EVERY: usize = 20;
/// More than a chunk has, and several commits of hashes.
const SHIPS: u128 = 300;
/// A generation has so many ticks; then the galaxy is reset.
const TICKS_PER_GENERATION: i64 = 200;
/// The child is killed long before.
const CHILD_TIME_MAX: Duration = Duration::from_secs(30);
/// What a test may take, on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(600);

async fn open(folder: &Path, redis: Option<&str>) -> GalaxyState {
    GalaxyState::new(match redis {
        Some(url) => Store::new(RedisEngine::connect(url).await.unwrap()),
        None => Store::new(Arc::new(Embedded::builder().data(folder.join("hot")).open().unwrap())),
    })
}

/// Spawns what is missing: ships exist before the first tick of a generation.
async fn fill(state: &GalaxyState) {
    for number in 1..=SHIPS {
        let ship = ShipId(Uuid::from_u128(number));
        if !state.scope().exists(&SHIP.key(ship)).await.unwrap() {
            let new = NewShip::new(ship, PlayerId(Uuid::from_u128(number)), "ship");
            state.physics().spawn_ship(new).await.unwrap();
        }
    }
}

async fn tick(run: &TickRun, world: &mut World) -> (i64, i64) {
    let mut step = run.begin(Duration::from_millis(100)).await.unwrap();
    step.apply(world);
    world.ships.values_mut().for_each(|ship| ship.motion.position.x = step.tick as f64);
    let head = run.commit(&mut step, world).await.unwrap();
    (head.generation, head.tick)
}

/// The process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let redis = std::env::var(REDIS).ok();
    let state = open(Path::new(&folder), redis.as_deref()).await;
    // What the process before left, and after that what is left when its staged tick is completed.
    let found = check(&state.tick().await.unwrap(), (0, 0));
    let run = state.tick_engine().start(StartRequest::new("engine")).await.unwrap();
    let (generation, tick_number) = check(&state.tick().await.unwrap(), found);
    writeln!(std::io::stdout(), "answered {generation} {tick_number}").unwrap();
    fill(&state).await;
    let mut world = run.load().await.unwrap();
    if redis.is_none() {
        // No other process can read a folder that is open.
        let reader = GalaxyState::new(state.store().clone());
        tokio::spawn(async move {
            let mut last = (0, 0);
            loop {
                last = check(&reader.tick().await.unwrap(), last);
                // The engine needs the processor, too.
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        });
    }
    let begun = Instant::now();
    while begun.elapsed() < CHILD_TIME_MAX {
        let (generation, tick) = tick(&run, &mut world).await;
        writeln!(std::io::stdout(), "answered {generation} {tick}").unwrap();
        if tick >= TICKS_PER_GENERATION {
            run.reset(None).await.unwrap();
            world = World::default();
            fill(&state).await;
        }
    }
}

/// A tick is whole, and none comes before an earlier one.
fn check(view: &TickView, last: (i64, i64)) -> (i64, i64) {
    let place = (view.generation, view.tick);
    let mixed = view.world.ships.iter().find(|(_, ship)| ship.motion.position.x != view.tick as f64);
    if mixed.is_some() || place < last || !matches!(view.world.ships.len() as u128, 0 | SHIPS) {
        // The harness of a child swallows what a panic of a task says.
        let _ = writeln!(
            std::io::stdout(),
            "mixed {place:?} after {last:?}: {mixed:?}, {} ships",
            view.world.ships.len()
        );
    }
    assert_eq!(mixed, None, "tick {place:?}");
    assert!(place >= last, "{place:?} after {last:?}");
    assert!(matches!(view.world.ships.len() as u128, 0 | SHIPS), "{} ships", view.world.ships.len());
    place
}

fn random(below: u128) -> usize {
    (Uuid::new_v4().as_u128() % below) as usize
}

fn start(folder: &Path, redis: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(FOLDER, folder);
    if let Some(url) = redis {
        command.env(REDIS, url);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn place_of(line: &str) -> Option<(i64, i64)> {
    assert!(!line.contains("mixed"), "{line}");
    let (generation, tick) = line.split_once("answered ")?.1.trim().split_once(' ')?;
    Some((generation.parse().ok()?, tick.parse().ok()?))
}

/// Starts a child and kills it after some ticks and a part of one. Returns the last tick that it answered.
fn kill_one(folder: &Path, redis: Option<&str>) -> Option<(i64, i64)> {
    let mut child = start(folder, redis);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut answers = lines.filter_map(|line| place_of(&line));
    // One in ten dies while it starts.
    let wanted = if random(10) == 0 { 0 } else { 1 + random(6) };
    let before = answers.by_ref().take(wanted).last();
    std::thread::sleep(Duration::from_micros(random(12_000) as u64));
    child.kill().unwrap();
    child.wait().unwrap();
    // Those that were in the pipe when it was killed.
    answers.last().or(before)
}

/// What is there after a kill: the tick that was answered or a later one, and no hash more than one ahead.
async fn check_after(state: &GalaxyState, answered: Option<(i64, i64)>, last: (i64, i64)) -> (i64, i64) {
    let view = state.tick().await.unwrap();
    let place = check(&view, last.max(answered.unwrap_or_default()));
    for number in [1, SHIPS / 2, SHIPS] {
        let Some(ship) = state.ship(&ShipId(Uuid::from_u128(number))).await.unwrap() else { continue };
        let tick = ship.tick.unwrap();
        let is_former = state.era().await.unwrap().phase != emberkeep_games::galaxy::Phase::Running;
        assert!(is_former || (view.tick..=view.tick + 1).contains(&tick), "hash {tick}, tick {}", view.tick);
    }
    place
}

async fn kill_many(redis: Option<&str>) {
    let folder = emberkeep_testkit::scratch();
    let (begun, mut last, mut with_answers) = (Instant::now(), (0, 0), 0);
    let reader = match redis {
        Some(_) => Some(open(folder.path(), redis).await),
        None => None,
    };
    let reads = reader.clone().map(|state| {
        tokio::spawn(async move {
            let mut last = (0, 0);
            loop {
                last = check(&state.tick().await.unwrap(), last);
            }
        })
    });
    for kill in 1..=KILLS_MAX {
        let (path, url) = (folder.path().to_owned(), redis.map(str::to_owned));
        let killed = tokio::task::spawn_blocking(move || kill_one(&path, url.as_deref()));
        let answered = killed.await.unwrap();
        with_answers += usize::from(answered.is_some());
        last = match &reader {
            Some(state) => check_after(state, answered, last).await,
            // Opening the folder takes most of the time, and the next process checks what it finds.
            None if kill % CHECKED_EVERY != 0 => {
                let place = answered.unwrap_or(last);
                assert!(place >= last, "{place:?} after {last:?}");
                place
            }
            None => {
                let state = open(folder.path(), None).await;
                let place = check_after(&state, answered, last).await;
                state.store().close().await.unwrap();
                place
            }
        };
        assert!(reads.as_ref().is_none_or(|reads| !reads.is_finished()), "the reader goes on");
        assert!(begun.elapsed() < TIME_MAX, "{KILLS_MAX} kills take too long");
    }
    if let Some(reads) = reads {
        reads.abort();
    }
    report!("ticks: {KILLS_MAX} kills -9, the last tick is {last:?}, {:?}", begun.elapsed());
    assert!(with_answers > KILLS_MAX / 2, "most children must have answered something");
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_are_whole_after_kills_in_process() {
    kill_many(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_are_whole_after_kills_on_redis() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    kill_many(Some(&server.fresh_db())).await;
}
