//! Who is where: fields are listed in turn, so that a process meets what others brought to life.

use super::readable;
use crate::actor::Actor;
use crate::plan::Ground;
use crate::world::World;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two fields.
const PAUSE: Duration = Duration::from_millis(250);

pub(super) async fn serve(actor: &mut Actor) -> anyhow::Result<()> {
    let world = actor.world.clone();
    for number in (0..world.plan.grounds()).cycle() {
        if !world.rest(PAUSE).await {
            break;
        }
        list(actor, world.plan.ground(number)).await?;
    }
    Ok(())
}

/// Lists every field, before the game begins.
pub(crate) async fn list_all_fields(world: &Arc<World>) -> anyhow::Result<()> {
    let mut actor = Actor::new(world.clone(), 0);
    for number in 0..world.plan.grounds() {
        list(&mut actor, world.plan.ground(number)).await?;
    }
    Ok(())
}

async fn list(actor: &mut Actor, ground: Ground) -> anyhow::Result<()> {
    let world = actor.world.clone();
    let outcome = world.monsters.in_field(world.plan.tenant(ground.tenant), ground.field).await;
    let Some(listed) = actor.tolerate(outcome)? else { return Ok(()) };
    readable(actor, &listed.corrupt);
    if let Some(stray) = listed.living.iter().find(|monster| monster.field() != ground.field) {
        world.report_violation(format!("monster {} was listed in a field that it is not in", stray.id));
    }
    let living = listed.living.iter().filter(|monster| monster.is_alive()).map(|monster| monster.id.0);
    world.roster(ground.number).refresh(&mut actor.random, living);
    Ok(())
}
