//! A running tick engine: one step after the other.

use super::change::Change;
use super::lease::put_head;
use super::records::{Phase, StagedTick, TickHead};
use super::stage::{Staged, write_hashes};
use super::world::World;
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{CHANGES_PER_READ, TICK_STEP_MAX};
use crate::galaxy::model::GameTime;
use crate::galaxy::rules::effective_scale;
use crate::galaxy::schema::{CHANGES, ERA, Galaxy, HEAD, PAUSED, STAGED, TICK_LEASE, TIME_SCALE, TIME_SYNC};
use crate::galaxy::service::{GalaxyState, Physics, TickEngine};
use crate::galaxy::services::{ROLL_FORWARD, SWITCH};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Tx};
use emberkeep_primitives::lease::Lease;
use std::time::Duration;

/// A tick engine that has the lease. All that it changes is refused after another engine acquired it.
///
/// ```
/// # use emberkeep_games::galaxy::{GalaxyState, NewShip, PlayerId, ShipId, StartRequest};
/// # use emberkeep_hot::{Store, embedded::Embedded};
/// # use std::{sync::Arc, time::Duration};
/// # use uuid::Uuid;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), emberkeep_games::galaxy::Error> {
/// let state = GalaxyState::new(Store::new(Arc::new(Embedded::in_memory())));
/// let ship = ShipId(Uuid::from_u128(1));
/// state.physics().spawn_ship(NewShip::new(ship, PlayerId(Uuid::from_u128(2)), "Roci")).await?;
///
/// let run = state.tick_engine().start(StartRequest::new("engine-1")).await?;
/// let mut world = run.load().await?;
/// let mut step = run.begin(Duration::from_millis(100)).await?;
/// step.apply(&mut world); // the spawned ship is there now
/// world.ships.get_mut(&ship).expect("it was spawned").motion.position.x += 10.0;
/// run.commit(&mut step, &mut world).await?;
///
/// let view = state.tick().await?;
/// assert_eq!((view.tick, view.world.ships[&ship].motion.position.x), (1, 10.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TickRun {
    state: GalaxyState,
    lease: Lease<TICK_LEASE>,
    /// How long the lease lasts.
    life: Duration,
    epoch: i64,
}

/// The tick that comes next: its time, and the changes that it applies.
#[derive(Clone, Debug, PartialEq)]
pub struct NextTick {
    /// The generation of hot state.
    pub generation: i64,
    /// The number of the tick.
    pub tick: i64,
    /// Its game time.
    pub time: GameTime,
    /// Game time since the tick before, in seconds: what a simulation advances by.
    pub seconds: f64,
    /// Seconds by which its game time is behind UTC.
    pub drift: f64,
    pub(super) changes: Vec<Change>,
    pub(super) through: u64,
    is_applied: bool,
}

impl NextTick {
    /// The queued changes, in their order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Applies the queued changes. A simulation does it before it computes; otherwise the commit does.
    pub fn apply(&mut self, world: &mut World) {
        if !self.is_applied {
            self.changes.iter().for_each(|change| world.apply(change));
            self.is_applied = true;
        }
    }
}

/// What a step needs to know.
struct StepInput {
    head: TickHead,
    scale: f64,
    is_synchronized: bool,
    is_paused: bool,
    is_staged: bool,
    now_ms: i64,
}

impl TickRun {
    pub(super) fn new(state: GalaxyState, lease: Lease<TICK_LEASE>, life: Duration, epoch: i64) -> TickRun {
        TickRun { state, lease, life, epoch }
    }

    /// The epoch of the lease: what [`Physics::stage`] is given.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The state that the engine changes.
    pub fn state(&self) -> &GalaxyState {
        &self.state
    }

    /// A lease that lasts no longer than this is renewed.
    pub(super) fn half_life_ms(&self) -> i64 {
        self.life.as_millis() as i64 / 2
    }

    pub(super) fn lease(&self) -> &Lease<TICK_LEASE> {
        &self.lease
    }

    pub(super) fn engine(&self) -> TickEngine {
        self.state.tick_engine()
    }

    pub(super) fn physics(&self) -> Physics {
        self.state.physics()
    }

    /// The world as of the present tick: from its chunks, or from the hashes if there are none. Changes that were queued
    /// since are in the next step.
    pub fn load(&self) -> Pending<'_, Result<World>> {
        Box::pin(async move {
            let head = self.state.head().await?;
            if head.chunks == 0 {
                return self.state.world_of_hashes().await;
            }
            match self.state.world_of(&head).await {
                Err(Error::TickGone { .. }) => self.state.world_of_hashes().await,
                result => result,
            }
        })
    }

    /// Begins the next step, `elapsed` of real time after the one before (at most an hour), and renews the lease if half
    /// of its time is over. [`Error::Paused`] while the game is paused.
    pub fn begin(&self, elapsed: Duration) -> Pending<'_, Result<NextTick>> {
        Box::pin(async move {
            if elapsed > TICK_STEP_MAX {
                return Err(Error::invalid(
                    "step",
                    format!("{elapsed:?}, expected at most {TICK_STEP_MAX:?}"),
                ));
            }
            let mut clock = self.clock().await?;
            if clock.is_staged {
                self.roll_forward().await?;
                clock = self.clock().await?;
            }
            if clock.is_paused {
                return Err(Error::Paused);
            }
            let (changes, through) = self.queued(clock.head.changes).await?;
            Ok(next_step(&clock, elapsed, changes, through))
        })
    }

    async fn clock(&self) -> Result<StepInput> {
        let (lease, epoch, half_ms) = (self.lease.clone(), self.epoch, self.half_life_ms());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            let now_ms = tx.now();
            renew_in_time(tx, &lease, epoch, now_ms + half_ms)?;
            running(tx)?;
            let (head, paused, scale, sync, is_staged) = tx.together(|tx| {
                (
                    tx.get(&HEAD.key()),
                    tx.get(&PAUSED.key()),
                    tx.get(&TIME_SCALE.key()),
                    tx.get(&TIME_SYNC.key()),
                    tx.exists(&STAGED.key()),
                )
            })?;
            Ok(StepInput {
                head: head.ok_or_else(|| Error::not_found("tick", "head"))?,
                scale: scale.unwrap_or(1.0),
                is_synchronized: sync.unwrap_or(true),
                is_paused: paused.unwrap_or(false),
                is_staged,
                now_ms,
            })
        };
        self.engine().scope().named("galaxy.begin_tick").transact::<_, Error, _>(transaction).await
    }

    /// The changes after a position, and the position of the last one. One that cannot be read is left out.
    async fn queued(&self, mut after: u64) -> Result<(Vec<Change>, u64)> {
        let (scope, log, mut changes) = (self.engine().scope(), CHANGES.key(), Vec::new());
        loop {
            let page = scope.log_after(&log, after, CHANGES_PER_READ).await?;
            if page.is_reset {
                // The log was lost or set back: what it has now comes after the present tick.
                after = 0;
                changes.clear();
                if page.last == 0 {
                    return Ok((changes, 0));
                }
                continue;
            }
            let Some(last) = page.entries.last() else { return Ok((changes, after)) };
            after = last.sequence;
            changes.extend(page.entries.into_iter().filter_map(|entry| entry.event.ok()));
        }
    }

    /// Commits a step: applies its changes if the caller did not, stages the world, switches to it, and removes chunks that
    /// are not kept any more. Entities that were removed meanwhile are taken out of `world`.
    ///
    /// After an error `world` may be ahead: [`load`](Self::load) it again before the next step, which completes the tick if it
    /// was staged.
    pub fn commit<'a>(
        &'a self,
        step: &'a mut NextTick,
        world: &'a mut World,
    ) -> Pending<'a, Result<TickHead>> {
        Box::pin(async move {
            step.apply(world);
            let staged = self.physics().stage(self.epoch, step, world).await?;
            let Staged { head, gone, .. } = staged;
            self.switch(&head).await?;
            gone.iter().for_each(|change| world.apply(change));
            Ok(head)
        })
    }

    /// Makes a staged tick the present one, and removes chunks that are not kept any more.
    pub fn switch<'a>(&'a self, head: &'a TickHead) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let (lease, epoch, wanted) = (self.lease.clone(), self.epoch, head.clone());
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                lease.check(tx, epoch)?;
                let staged: Option<StagedTick> = tx.get(&STAGED.key())?;
                let staged = staged.map(|staged| staged.head);
                let Some(staged) = staged.filter(|staged| staged.label() == wanted.label()) else {
                    let next = "none that is staged".to_owned();
                    return Err(Error::StaleStep { step: wanted.label(), next });
                };
                put_head(tx, &staged)?;
                tx.del(&STAGED.key())?;
                tx.log_trim(&CHANGES.key(), staged.changes)?;
                Ok(())
            };
            let scope = self.engine().scope().for_operation(&SWITCH).named("galaxy.switch_tick");
            scope.transact::<_, Error, _>(transaction).await?;
            self.prune().await
        })
    }

    /// Completes a staged tick: its hashes are written again, then it becomes the present one.
    pub(super) async fn roll_forward(&self) -> Result<()> {
        let Some(staged) = self.engine().scope().get(&STAGED.key()).await? else { return Ok(()) };
        match self.state.world_of(&staged.head).await {
            Ok(world) => {
                let scope = self.engine().scope().for_operation(&ROLL_FORWARD);
                write_hashes(scope, self.epoch, &staged.head, world.entities()).await?;
                self.switch(&staged.head).await
            }
            // Another program removed its chunks: the next tick writes all hashes anew.
            Err(Error::TickGone { .. }) => self.drop_staged().await,
            Err(error) => Err(error),
        }
    }

    async fn drop_staged(&self) -> Result<()> {
        let (lease, epoch) = (self.lease.clone(), self.epoch);
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            lease.check(tx, epoch)?;
            Ok(tx.del(&STAGED.key())?)
        };
        self.engine().scope().named("galaxy.drop_staged").transact::<_, Error, _>(transaction).await
    }

    /// Extends the lease. Steps do it by themselves; a loop that is paused calls it.
    pub fn renew(&self) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            let (lease, epoch) = (self.lease.clone(), self.epoch);
            let transaction = move |tx: &mut Tx<'_, Galaxy>| lease.renew(tx, epoch).map(drop);
            let scope = self.engine().scope().named("galaxy.renew");
            Ok(scope.transact::<_, emberkeep_primitives::lease::LeaseError, _>(transaction).await?)
        })
    }

    /// Gives the lease back, so that the next engine need not wait. `false` = it was not this engine's any more.
    pub fn release(&self) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let (lease, epoch) = (self.lease.clone(), self.epoch);
            let transaction = move |tx: &mut Tx<'_, Galaxy>| lease.release(tx, epoch);
            Ok(self
                .engine()
                .scope()
                .named("galaxy.release")
                .transact::<_, hot::Error, _>(transaction)
                .await?)
        })
    }
}

/// Renews the lease unless it lasts until a time.
pub(super) fn renew_in_time(
    tx: &mut Tx<'_, Galaxy>,
    lease: &Lease<TICK_LEASE>,
    epoch: i64,
    until_ms: i64,
) -> Result<()> {
    match lease.holder(tx)? {
        Some(record) if record.epoch == epoch && record.until_ms >= until_ms => Ok(()),
        _ => Ok(lease.renew(tx, epoch).map(drop)?),
    }
}

fn next_step(clock: &StepInput, elapsed: Duration, changes: Vec<Change>, through: u64) -> NextTick {
    let head = &clock.head;
    let elapsed_us = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
    let now_us = GameTime::from_millis(clock.now_ms).micros();
    let behind_us = now_us.saturating_sub(elapsed_us).saturating_sub(head.time_us);
    let scale = effective_scale(clock.scale, clock.is_synchronized, behind_us, elapsed_us);
    let advance_us = (elapsed_us as f64 * scale).round() as i64;
    let time = head.time().plus_micros(advance_us);
    NextTick {
        generation: head.generation,
        tick: head.tick + 1,
        time,
        seconds: advance_us as f64 / 1e6,
        drift: (now_us - time.micros()) as f64 / 1e6,
        changes,
        through,
        is_applied: false,
    }
}

/// Refuses changes while the galaxy is being cleared or restored.
pub(crate) fn running(tx: &mut Tx<'_, Galaxy>) -> Result<()> {
    match tx.get(&ERA.key())?.map(|era| era.phase) {
        None | Some(Phase::Running) => Ok(()),
        Some(phase) => Err(Error::Busy { phase: phase.as_str() }),
    }
}
