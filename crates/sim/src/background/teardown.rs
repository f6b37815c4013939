//! The end of a field, now and then: everything in it is destroyed at once, while players hit and other processes do the
//! same. The actor that removed a monster spawns another one.

use super::readable;
use crate::actor::Actor;
use crate::plan::Ground;
use crate::stats::Count;
use std::time::Duration;

/// Time between two teardowns of all processes together.
const EVERY: Duration = Duration::from_millis(1_500);
/// Time before the first one, so that a short game has one too.
const FIRST: Duration = Duration::from_millis(400);

pub(super) async fn serve(actor: &mut Actor) -> anyhow::Result<()> {
    let world = actor.world.clone();
    let mut pause = FIRST + EVERY * world.process;
    while world.rest(pause).await {
        let ground = actor.somewhere();
        tear_down(actor, ground).await?;
        pause = EVERY * world.plan.processes;
    }
    Ok(())
}

async fn tear_down(actor: &mut Actor, ground: Ground) -> anyhow::Result<()> {
    let world = actor.world.clone();
    let outcome = world.monsters.destroy_in_field(world.plan.tenant(ground.tenant), ground.field).await;
    let Some(destroyed) = actor.tolerate(outcome)? else { return Ok(()) };
    readable(actor, &destroyed.corrupt);
    destroyed.monsters.iter().for_each(|monster| actor.removed(ground.tenant, monster));
    destroy_reactors(actor, ground).await?;
    world.roster(ground.number).clear();
    actor.count(Count::Teardowns, 1);
    for _ in &destroyed.monsters {
        let next = actor.spawn(ground).await?;
        world.roster(ground.number).enter(&mut actor.random, next.0);
    }
    actor.stopped(destroyed.stopped)
}

async fn destroy_reactors(actor: &mut Actor, ground: Ground) -> anyhow::Result<()> {
    let (world, tenant) = (actor.world.clone(), actor.world.plan.tenant(ground.tenant));
    let outcome = world.reactors.destroy_in_field(tenant, ground.field).await;
    let Some(destroyed) = actor.tolerate_reactor(outcome)? else { return Ok(()) };
    readable(actor, &destroyed.corrupt);
    destroyed.reactors.iter().for_each(|reactor| actor.ledger.reactor_over(ground.tenant, reactor));
    actor.stopped(destroyed.stopped)
}
