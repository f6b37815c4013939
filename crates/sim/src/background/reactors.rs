//! Reactors: created on spots that are free and have cooled down, led on by hits until they trigger, now and then destroyed
//! without one.

use crate::actor::Actor;
use crate::ledger::Quantity;
use crate::plan::{Ground, SPOTS_PER_FIELD};
use crate::stats::Count;
use emberkeep::games::reactors::{CreateRequest, Error, Event, Hit, Outcome, PerState, ReactorId};
use emberkeep::games::world::CharacterId;
use emberkeep::schema::Array;
use std::time::Duration;

/// Longest cooldown of a spot.
pub(crate) const SPOT_COOLDOWN_MAX: Duration = Duration::from_millis(800);
const SPOT_COOLDOWN_MIN_MS: usize = 100;
/// States that a reactor walks through before it triggers.
const STATES: i8 = 3;
/// Pause between two fields.
const PAUSE: Duration = Duration::from_millis(20);
/// Hits in a field between two pauses: also where players are slow, reactors trigger.
const HITS: usize = 2;
/// One of so many looks destroys a reactor.
const DESTROYED_ONE_IN: usize = 16;
/// The skill that leads a reactor on in every state; without it some states trigger at once.
const SKILL: u32 = 1_001;
/// One of so many hits is made without the skill.
const CLUMSY_ONE_IN: usize = 4;
/// The character of hits that no player made: players are counted from 1.
const NO_PLAYER: CharacterId = CharacterId(0);

pub(super) async fn serve(actor: &mut Actor) -> anyhow::Result<()> {
    let world = actor.world.clone();
    for number in (0..world.plan.grounds()).cycle() {
        let ground = world.plan.ground(number);
        for spot in 0..SPOTS_PER_FIELD {
            if world.roster(number).is_free(spot, world.ms()) {
                create(actor, ground, spot).await?;
            }
        }
        for _ in 0..HITS {
            hit(actor, ground, NO_PLAYER).await?;
        }
        if actor.random.usize(..DESTROYED_ONE_IN) == 0 {
            destroy(actor, ground).await?;
        }
        if !world.rest(PAUSE).await {
            break;
        }
    }
    Ok(())
}

/// Puts a reactor on a spot, or learns who was faster or how long the spot cools down.
async fn create(actor: &mut Actor, ground: Ground, spot: usize) -> anyhow::Result<()> {
    let world = actor.world.clone();
    let (tenant, roster) = (world.plan.tenant(ground.tenant), world.roster(ground.number));
    let request = request(actor, ground, spot);
    match world.reactors.create(tenant, request).await {
        Ok(reactor) => {
            actor.ledger.report(ground.tenant, Quantity::Reactors(reactor.map, reactor.x), 1);
            actor.count(Count::Reactors, 1);
            roster.put_reactor(spot, reactor.id.0);
        }
        Err(Error::SpotTaken { id }) => roster.put_reactor(spot, id.0),
        Err(Error::OnCooldown { remaining }) if remaining > SPOT_COOLDOWN_MAX => {
            let map = ground.field.map;
            world.report_violation(format!(
                "spot {spot} of map {map} was said to cool down for {remaining:?}"
            ));
        }
        Err(Error::OnCooldown { remaining }) => {
            roster.cool_until(spot, world.ms() + remaining.as_millis() as u64);
        }
        Err(error) => drop(actor.refused::<()>(error)?),
    }
    Ok(())
}

/// A reactor that goes on from state to state when it is hit with the right skill. In its first state any hit will do, in
/// its last one none leads on: it triggers.
fn request(actor: &mut Actor, ground: Ground, spot: usize) -> CreateRequest {
    let x = spot as i16 * 40 - 200;
    let mut request = CreateRequest::new(ground.field, 2_001 + spot as u32 % 3, x, -88);
    request.name = format!("box {spot}");
    request.delay_ms = (SPOT_COOLDOWN_MIN_MS
        + actor.random.usize(..SPOT_COOLDOWN_MAX.as_millis() as usize - SPOT_COOLDOWN_MIN_MS))
        as i64;
    let events = |state: i8| {
        let skills = if state == 0 { vec![] } else { vec![SKILL] };
        let on = Event { skills: Array(skills), next: state + 1, ..Event::default() };
        Array(if state + 1 < STATES { vec![on] } else { vec![] })
    };
    request.data.states = (0..STATES).map(|state| (state, events(state))).collect::<PerState<_>>();
    request
}

/// Destroys a reactor of a field.
async fn destroy(actor: &mut Actor, ground: Ground) -> anyhow::Result<()> {
    let world = actor.world.clone();
    let (spot, roster) = (actor.random.usize(..SPOTS_PER_FIELD), world.roster(ground.number));
    let Some(id) = roster.reactor(spot) else { return Ok(()) };
    let outcome = world.reactors.destroy(world.plan.tenant(ground.tenant), ReactorId(id)).await;
    if let Some(destroyed) = actor.tolerate_reactor(outcome)? {
        actor.ledger.reactor_over(ground.tenant, &destroyed.reactor);
    }
    roster.remove_reactor(spot, id);
    Ok(())
}

/// Hits a reactor of a field, and enters how far that led it.
pub(crate) async fn hit(actor: &mut Actor, ground: Ground, who: CharacterId) -> anyhow::Result<()> {
    let world = actor.world.clone();
    let (spot, roster) = (actor.random.usize(..SPOTS_PER_FIELD), world.roster(ground.number));
    let Some(id) = roster.reactor(spot) else { return Ok(()) };
    let skill = if actor.random.usize(..CLUMSY_ONE_IN) == 0 { 0 } else { SKILL };
    let outcome = world.reactors.hit(world.plan.tenant(ground.tenant), ReactorId(id), who, skill).await;
    match actor.tolerate_reactor(outcome)? {
        Some(hit) => was_hit(actor, ground, spot, &hit),
        None => roster.remove_reactor(spot, id),
    }
    Ok(())
}

fn was_hit(actor: &mut Actor, ground: Ground, spot: usize, hit: &Hit) {
    let (reactor, tenant) = (&hit.reactor, ground.tenant);
    match hit.outcome {
        Outcome::Advanced { .. } => actor.ledger.report(tenant, Quantity::States(reactor.map, reactor.x), 1),
        Outcome::Triggered { cooldown } => {
            actor.count(Count::Triggers, 1);
            actor.ledger.reactor_over(tenant, reactor);
            let roster = actor.world.roster(ground.number);
            roster.cool_until(spot, actor.world.ms() + cooldown.unwrap_or_default().as_millis() as u64);
            roster.remove_reactor(spot, reactor.id.0);
        }
        // Not by the rules of the demo.
        Outcome::Stayed { .. } => {}
    }
}
