//! A full fight: damage, event, totals, boards. Hits as fast as they come, timed until history and the boards have all of them.

use crate::measure::{Samples, process_core};
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::{Result, ensure};
use emberkeep::games::darkages::boards::Period;
use emberkeep::games::darkages::history::{BoardCategory, HitType, schema};
use emberkeep::games::darkages::{
    DamageRequest, DarkAges, EntityId, Fighter, LoginRequest, Point, SessionChange, ZoneId,
};
use emberkeep::hot::Store;
use emberkeep::hot::embedded::Embedded;
use emberkeep_history::outbox::Consumers;
use emberkeep_history::{Embedded as EmbeddedHistory, History, embedded::Options};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Hits a second that should be reached.
const GOAL: f64 = 25_000.0;
/// Callers at the same time, each with players of its own.
const TASKS: i64 = 8;
const PAIRS_PER_TASK: i64 = 125;
const HEALTH: i32 = 1_000;
const DAMAGE: i32 = 50;
/// How long the rest may take.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One round in a folder of its own.
struct Round {
    rate: f64,
    core_micros: f64,
    /// Entries that waited, over the time of the fights.
    queue: Vec<f64>,
}

/// The rate and how the queue grew.
pub(super) fn fight(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (mut rates, mut cores, mut first, mut last) =
        (Samples::default(), Samples::default(), Samples::default(), Samples::default());
    // Long enough that what waits can be seen to grow.
    let time = bench.sample * 10;
    for round in 1..=bench.rounds {
        let folder = bench.folder(&format!("{name}-{round}"));
        let Round { rate, core_micros, queue } = runtime.block_on(one_round(&folder, time))?;
        let _ = std::fs::remove_dir_all(&folder);
        say(&format!(
            "{name}  round {round}/{}  {rate:.0} hits/s  {core_micros:.1} core µs a hit",
            bench.rounds
        ));
        let quarter = queue.len() / 4;
        let most = |part: &[f64]| part.iter().copied().fold(1.0, f64::max);
        first.push(most(&queue[..quarter]));
        last.push(most(&queue[queue.len() - quarter..]));
        rates.push(rate);
        cores.push(core_micros);
    }
    let note = format!(
        "{TASKS} callers, {} players, journal and history synced every second; until history and boards have every hit; {:.1} core µs a hit",
        2 * TASKS * PAIRS_PER_TASK,
        cores.median()
    );
    let queue_note =
        format!("the most that waited for history in the last quarter of {time:?} of fights without a pause");
    Ok(vec![
        Row::new(name, "hits/s", &rates, &rates.constant(GOAL), Goal::AtLeast(GOAL))
            .beside("the goal")
            .note(note),
        Row::new(&format!("{name}-queue"), "entries", &last, &first, Goal::None)
            .beside("the most that waited in the first quarter")
            .note(queue_note),
    ])
}

async fn one_round(folder: &Path, time: Duration) -> Result<Round> {
    let store = Store::new(Arc::new(Embedded::builder().data(folder.join("hot")).open()?));
    let history = EmbeddedHistory::open(folder.join("history"), schema(), Options::default())?;
    let history = History::new(Arc::new(history));
    let game = DarkAges::new(store.clone(), "bench-1")?;
    for player in 1..=2 * TASKS * PAIRS_PER_TASK {
        let request = LoginRequest::new(player, "client", ZoneId(1), Point::new(0.0, 0.0, 0.0));
        game.login(LoginRequest { max_health: HEALTH, ..request }).await?;
    }
    let consumers: Consumers = emberkeep::games::consumers(&store, &history)?.into_iter().collect();
    consumers.drain_once().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn({
        let consumers = consumers.clone();
        async move { consumers.run(async { drop(stopped.await) }).await }
    });
    let (core, begun) = (process_core(), Instant::now());
    let (hits, damage) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicI64::new(0)));
    let queue = fights(&game, &consumers, begun + time, (&hits, &damage)).await?;
    caught_up(&game, &history, damage.load(Ordering::Relaxed)).await?;
    let (took, core) = (begun.elapsed(), process_core() - core);
    let hits = hits.load(Ordering::Relaxed) as f64;
    let _ = stop.send(());
    running.await?;
    history.close().await?;
    Ok(Round { rate: hits / took.as_secs_f64(), core_micros: core.as_secs_f64() * 1e6 / hits, queue })
}

/// Hits of all callers until then. Returns what waited for history meanwhile.
async fn fights(
    game: &DarkAges,
    consumers: &Consumers,
    until: Instant,
    (hits, damage): (&Arc<AtomicU64>, &Arc<AtomicI64>),
) -> Result<Vec<f64>> {
    let mut callers = JoinSet::new();
    for task in 0..TASKS {
        let (game, hits, damage) = (game.clone(), hits.clone(), damage.clone());
        callers.spawn(async move {
            let mut number = 0;
            while Instant::now() < until {
                let pair = task * PAIRS_PER_TASK + number % PAIRS_PER_TASK;
                let (attacker, target) = (EntityId(2 * pair + 1), EntityId(2 * pair + 2));
                let (attacker, hit_type) = (Fighter::Player(attacker), HitType::Normal);
                let request = DamageRequest { attacker, target, amount: DAMAGE, hit_type, ability: None };
                let hit = game.damage(request).await?;
                if hit.killed {
                    let risen = SessionChange { health: Some(HEALTH), ..SessionChange::default() };
                    game.change(target, risen).await?;
                }
                hits.fetch_add(1, Ordering::Relaxed);
                damage.fetch_add(i64::from(hit.actual), Ordering::Relaxed);
                number += 1;
            }
            anyhow::Ok(())
        });
    }
    let mut queue = Vec::new();
    while Instant::now() < until {
        tokio::time::sleep(LOOK_EVERY).await;
        queue.push(consumers.stats().iter().map(|stats| stats.lag_entries as f64).sum());
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    Ok(queue)
}

/// Waits until boards and totals have all damage.
async fn caught_up(game: &DarkAges, history: &History, damage: i64) -> Result<()> {
    let (patience, boards) = (Instant::now() + PATIENCE, game.boards());
    let archive = emberkeep::games::darkages::archive::Archive::new(history.clone());
    loop {
        let rows = boards.top(BoardCategory::Damage, Period::AllTime, 1_000).await?;
        if rows.iter().map(|row| row.score).sum::<i64>() == damage {
            let mut totals = 0;
            for row in &rows {
                let stats = archive.player_stats(row.player_id).await?;
                totals += stats.map_or(0, |stats| stats.sums.total_damage_dealt);
            }
            if totals == damage {
                return Ok(());
            }
        }
        ensure!(Instant::now() < patience, "history and boards do not catch up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
