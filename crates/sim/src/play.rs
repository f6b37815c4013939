//! One process' part of the game, from the first monster to the last turn.

use crate::actor::Actor;
use crate::background::{self, BACKGROUND_TASKS};
use crate::city::{self, CityLedger};
use crate::ledger::Ledger;
use crate::player;
use crate::stats::Totals;
use crate::world::World;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Fields that are populated at the same time.
const POPULATED_TOGETHER: usize = 16;

/// What a process leaves behind: one line of JSON, when it plays for another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlayResult {
    pub(super) ledger: Ledger,
    pub(super) city: CityLedger,
    pub(super) totals: Totals,
    /// Orphans that sweeps met.
    pub(super) orphans: usize,
    /// Descriptions of violated invariants.
    pub(super) violations: Vec<String>,
    /// Whether the results of every process are here. Without those of a process that died, sums prove nothing.
    pub(super) complete: bool,
}

impl PlayResult {
    pub(super) fn nothing() -> PlayResult {
        let (ledger, totals) = (Ledger::default(), Totals::none());
        let (city, violations) = (CityLedger::default(), Vec::new());
        PlayResult { ledger, city, totals, orphans: 0, violations, complete: true }
    }

    /// Takes in what another process played.
    pub(super) fn merge(&mut self, other: PlayResult) {
        self.ledger.merge(other.ledger);
        self.city.merge(other.city);
        self.totals.add(&other.totals);
        self.orphans += other.orphans;
        self.violations.extend(other.violations);
        self.complete &= other.complete;
    }
}

/// Spawns the monsters with which the game begins.
pub(super) async fn populate(world: &Arc<World>) -> anyhow::Result<Ledger> {
    let (mut workers, mut ledger) = (JoinSet::new(), Ledger::default());
    for first in 0..POPULATED_TOGETHER.min(world.plan.grounds()) {
        let mut actor = Actor::new(world.clone(), first);
        workers.spawn(async move {
            for number in (first..actor.world.plan.grounds()).step_by(POPULATED_TOGETHER) {
                let ground = actor.world.plan.ground(number);
                for _ in 0..actor.world.plan.monsters_of(number) {
                    actor.spawn(ground).await?;
                }
            }
            anyhow::Ok(actor.ledger)
        });
    }
    while let Some(done) = workers.join_next().await {
        ledger.merge(done.context("a task that spawns monsters panicked")??);
    }
    Ok(ledger)
}

/// Plays until the time is over, `stop` comes to its end, or something happened that must not. `show` is called again and
/// again with the counters.
pub(super) async fn play(
    world: &Arc<World>,
    stop: impl Future<Output = ()>,
    every: Duration,
    mut show: impl FnMut(Totals),
) -> anyhow::Result<PlayResult> {
    let mut players = JoinSet::new();
    for who in world.plan.players_of(world.process) {
        players.spawn(player::play(world.clone(), who));
    }
    let mut duties = JoinSet::new();
    for (number, duty) in BACKGROUND_TASKS.into_iter().enumerate() {
        duties.spawn(background::serve(world.clone(), number, duty));
    }
    let mut citizens = JoinSet::new();
    if let Some(city) = &world.city {
        for number in city.plan.players_of(world.process, world.plan.processes) {
            citizens.spawn(city::play(world.clone(), number));
        }
        citizens.spawn(city::inspect(world.clone()));
    }
    let over = tokio::time::sleep(world.plan.length);
    tokio::pin!(over, stop);
    let mut redraw = tokio::time::interval(every);
    redraw.tick().await;
    while !world.is_over() {
        tokio::select! {
            () = &mut over => world.end(),
            () = &mut stop => world.end(),
            () = world.until_over() => {}
            _ = redraw.tick() => show(world.totals()),
        }
    }
    let mut played = PlayResult::nothing();
    while let Some(ledger) = players.join_next().await {
        played.ledger.merge(ledger.context("a player panicked")?);
    }
    while let Some(done) = duties.join_next().await {
        let done = done.context("a duty panicked")?;
        played.ledger.merge(done.ledger);
        played.orphans += done.orphans;
    }
    while let Some(ledger) = citizens.join_next().await {
        played.city.merge(ledger.context("a player of the city panicked")?);
    }
    (played.totals, played.violations) = (world.totals(), world.violations());
    Ok(played)
}
