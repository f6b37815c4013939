//! The background sweeps, at a low rate. While only the games write, they find no orphan: a record and its entries
//! change together.

use crate::actor::Actor;
use crate::stats::Count;
use crate::world::{Retryable, World};
use std::time::Duration;

/// Pause between two turns of a sweep: a turn may read a hundred records.
const TURN_PAUSE: Duration = Duration::from_millis(20);
/// Pause between two sweeps.
const PAUSE: Duration = Duration::from_millis(500);

/// Sweeps until the game is over, in one of the processes: a second sweep would do the same work again. The stale entries that a sweep tells of prove nothing while others remove: an entry that went with
/// its record between a sweep's look and its transaction counts as one.
pub(super) async fn serve(actor: &mut Actor, orphans: &mut usize) -> anyhow::Result<()> {
    let world = actor.world.clone();
    while world.process == 0 && world.rest(PAUSE).await {
        let mut sweep = world.monsters.sweep();
        while world.rest(TURN_PAUSE).await && goes_on(sweep.turn().await)? {}
        *orphans += sweep.report().orphans;
        let mut sweep = world.reactors.sweep();
        while world.rest(TURN_PAUSE).await && goes_on(sweep.turn().await)? {}
        *orphans += sweep.report().fields.orphans + sweep.report().all.orphans;
        if !world.is_over() {
            actor.count(Count::Sweeps, 1);
        }
    }
    Ok(())
}

/// Whether there is another turn. One that was refused can be made again.
fn goes_on(turn: Result<bool, impl Retryable>) -> anyhow::Result<bool> {
    match turn {
        Err(error) if error.is_transient() => Ok(true),
        turn => Ok(turn?),
    }
}

/// Sweeps everything once, when the game is over. Returns how many stale entries and orphans it repaired.
pub(crate) async fn sweep_all(world: &World) -> anyhow::Result<usize> {
    let (mut of_monsters, mut of_reactors) = (world.monsters.sweep(), world.reactors.sweep());
    while goes_on(of_monsters.turn().await)? {}
    while goes_on(of_reactors.turn().await)? {}
    let (monsters, reactors) = (of_monsters.report(), of_reactors.report());
    let of_indexes = [&reactors.fields, &reactors.all].map(|index| index.stale + index.orphans);
    Ok(monsters.stale + monsters.orphans + of_indexes.iter().sum::<usize>())
}
