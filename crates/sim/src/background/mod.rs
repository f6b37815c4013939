//! What keeps the world alive beside the players. Each process does all of it but the sweep, so that what may be done once is
//! contended for: a tick, a drop, a spot, a field.
//!
//! Budget: each duty makes a few calls, then pauses. It stops when the game is over, at the end of what it is doing, and
//! returns its ledger.

mod due;
mod friends;
mod inspect;
mod reactors;
mod rosters;
mod sweep;
mod teardown;

pub(super) use friends::DROP_PERIOD;
pub(super) use reactors::{SPOT_COOLDOWN_MAX, hit as hit_reactor};
pub(super) use rosters::list_all_fields;
pub(super) use sweep::sweep_all;

use super::actor::Actor;
use super::ledger::Ledger;
use super::world::World;
use std::sync::Arc;

/// What one of them does.
#[derive(Clone, Copy, Debug)]
pub(super) enum BackgroundTask {
    /// Runs the ticks of effects that are due.
    Effects,
    /// Delivers drops that are due.
    Drops,
    /// Gives drop timers to friendly monsters.
    Friends,
    /// Puts reactors on spots that have cooled down, and hits them.
    Reactors,
    /// Looks who is where.
    Rosters,
    /// Tears a field down now and then, and brings it to life again.
    Teardown,
    /// Runs the background sweeps.
    Sweep,
    /// Looks for stale entries while the game goes on.
    Inspect,
}

/// The tasks that run beside the players.
pub(super) const BACKGROUND_TASKS: [BackgroundTask; 8] = [
    BackgroundTask::Effects,
    BackgroundTask::Drops,
    BackgroundTask::Friends,
    BackgroundTask::Reactors,
    BackgroundTask::Rosters,
    BackgroundTask::Teardown,
    BackgroundTask::Sweep,
    BackgroundTask::Inspect,
];

/// What a duty leaves behind.
#[derive(Default)]
pub(super) struct DutyResult {
    pub(super) ledger: Ledger,
    /// Orphans that sweeps met: records in no index.
    pub(super) orphans: usize,
}

/// Does a duty until the game is over.
pub(super) async fn serve(world: Arc<World>, number: usize, duty: BackgroundTask) -> DutyResult {
    let mut actor = Actor::new(world.clone(), number);
    let mut orphans = 0;
    let outcome = match duty {
        BackgroundTask::Effects => due::effects(&mut actor).await,
        BackgroundTask::Drops => due::drops(&mut actor).await,
        BackgroundTask::Friends => friends::serve(&mut actor).await,
        BackgroundTask::Reactors => reactors::serve(&mut actor).await,
        BackgroundTask::Rosters => rosters::serve(&mut actor).await,
        BackgroundTask::Teardown => teardown::serve(&mut actor).await,
        BackgroundTask::Sweep => sweep::serve(&mut actor, &mut orphans).await,
        BackgroundTask::Inspect => inspect::serve(&mut actor).await,
    };
    if let Err(error) = outcome {
        world.report_violation(format!("the duty {duty:?} cannot go on: {error:#}"));
    }
    DutyResult { ledger: actor.ledger, orphans }
}

/// Everything that a listing could not read is a violation: only the simulation writes there.
fn readable(actor: &Actor, corrupt: &[emberkeep::hot::Error]) {
    for error in corrupt {
        actor.world.report_violation(format!("unreadable: {error}"));
    }
}
