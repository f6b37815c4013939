//! Friendly monsters: they get a drop timer, and are hit now and then, which puts their next drop off.

use crate::actor::Actor;
use emberkeep::games::monsters::{DropTimerRequest, MonsterId};
use std::time::Duration;

/// Time between two drops of a monster.
pub(crate) const DROP_PERIOD: Duration = Duration::from_millis(100);
/// Pause between two looks. It bounds how many timers are registered, and with it the ledger.
const PAUSE: Duration = Duration::from_millis(30);
/// One of so many looks hits a friend instead.
const HIT_ONE_IN: usize = 4;

pub(super) async fn serve(actor: &mut Actor) -> anyhow::Result<()> {
    let world = actor.world.clone();
    while world.rest(PAUSE).await {
        let ground = actor.somewhere();
        let Some(id) = world.roster(ground.number).friend(&mut actor.random) else { continue };
        let (tenant, id) = (world.plan.tenant(ground.tenant), MonsterId(id));
        if actor.random.usize(..HIT_ONE_IN) == 0 {
            let outcome = world.monsters.record_drop_hit(tenant, id).await;
            actor.tolerate(outcome)?;
            continue;
        }
        // A timer that runs is left alone.
        let known = world.monsters.drop_timer(tenant, id).await;
        if actor.tolerate(known)?.is_none_or(|timer| timer.is_some()) {
            continue;
        }
        let request = DropTimerRequest { period: DROP_PERIOD, weapon_attack: world.timer_number() };
        match actor.tolerate(world.monsters.register_drop_timer(tenant, id, request).await)? {
            Some(timer) => actor.ledger.timer_began(ground.tenant, id, &timer),
            None => world.roster(ground.number).remove_friend(id.0),
        }
    }
    Ok(())
}
