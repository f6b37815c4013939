//! A tick of the star system: bodies, structures and ships move, then rules and maneuvers have their turn.

use super::maneuver::{Phase, TRANSFER, Transfer};
use super::populate::{gates, low_orbit, stations};
use super::rules::{Action, Trigger};
use super::ship::{ShipGauges, Surroundings, fly, frame, next_phase, orders};
use super::sky::Sky;
use emberkeep::games::galaxy::{
    AttitudeMode, BodyState, Controls, Error, GalaxyState, Maneuver, ManeuverChange, MotionChange, NextTick,
    Rule, RuleMode, Ship, ShipId, World,
};

/// The status of a maneuver that goes on, and of one that is over.
const ACTIVE: &str = "active";
const COMPLETED: &str = "completed";
/// A tanker comes when so little of the capacity is left.
const LOW_FUEL: f64 = 0.08;
/// A ship that is higher than so many radii of its body is brought back.
const RADII_MAX: f64 = 4.0;
/// How many times as high a transfer goes at most.
const CLIMB_MAX: f64 = 1.5;
/// Pilots that think of a transfer, each tick, among so many.
const TRANSFERS_ONE_IN: usize = 400;

/// A ship with what is stored of it beside its motion.
struct Crew {
    ship: Ship,
    rules: Vec<Rule>,
    transfer: Option<(Transfer, Phase)>,
}

/// Computes a step: `world` and `sky` are of the tick before, and of this one afterwards.
pub(super) async fn advance(
    galaxy: &GalaxyState,
    sky: &mut Sky,
    world: &mut World,
    step: &NextTick,
) -> anyhow::Result<()> {
    let before = Surroundings { sky, world };
    let mut flights = Vec::with_capacity(world.ships.len());
    for (id, state) in &world.ships {
        // A ship that was removed meanwhile is gone with this tick.
        let Some(crew) = crew(galaxy, id).await? else { continue };
        let phase = crew.transfer.as_ref().map(|(_, phase)| *phase);
        let orders = orders(&state.motion, &crew.ship, phase, &before, step.seconds);
        flights.push((*id, crew, orders));
    }
    sky.advance(step.time, step.seconds);
    move_bodies(world, sky, step.time.micros() as f64 / 1e6);
    for (id, crew, orders) in &flights {
        if let Some(state) = world.ships.get_mut(id) {
            fly(&mut state.motion, &crew.ship, orders, step.seconds, sky);
        }
    }
    for (id, crew, _) in flights {
        act(galaxy, &Surroundings { sky, world }, id, crew).await?;
    }
    Ok(())
}

async fn crew(galaxy: &GalaxyState, id: &ShipId) -> anyhow::Result<Option<Crew>> {
    let Some(ship) = galaxy.ship(id).await? else { return Ok(None) };
    let rules = galaxy.rules(*id).await?;
    let transfer = galaxy.maneuver(*id).await?.as_ref().and_then(transfer);
    Ok(Some(Crew { ship, rules, transfer }))
}

/// The transfer that a ship is on. Maneuvers that other programs began are theirs.
fn transfer(maneuver: &Maneuver) -> Option<(Transfer, Phase)> {
    if maneuver.kind != TRANSFER || maneuver.status != ACTIVE {
        return None;
    }
    Some((serde_json::from_str(&maneuver.params_json).ok()?, Phase::parse(&maneuver.phase)?))
}

fn move_bodies(world: &mut World, sky: &Sky, seconds: f64) {
    for (number, body) in sky.bodies().iter().enumerate() {
        let state = world.bodies.iter_mut().find(|(name, _)| name.0.as_str() == body.name);
        if let Some((_, state)) = state {
            put(state, sky.motion(number));
        }
    }
    for (id, structure) in stations() {
        world.stations.get_mut(&id).into_iter().for_each(|state| put(state, structure.place(sky, seconds)));
    }
    for (id, structure) in gates() {
        world.jumpgates.get_mut(&id).into_iter().for_each(|state| put(state, structure.place(sky, seconds)));
    }
}

fn put(state: &mut BodyState, place: super::orbit::Motion) {
    state.position = place.position.into();
    state.velocity = place.velocity.into();
}

/// What follows for a ship from where it is now. A ship that is removed meanwhile needs nothing.
async fn act(galaxy: &GalaxyState, around: &Surroundings<'_>, id: ShipId, crew: Crew) -> anyhow::Result<()> {
    match react(galaxy, around, id, crew).await {
        Err(error) if matches!(error.downcast_ref(), Some(Error::NotFound { .. })) => Ok(()),
        result => result,
    }
}

async fn react(
    galaxy: &GalaxyState,
    around: &Surroundings<'_>,
    id: ShipId,
    crew: Crew,
) -> anyhow::Result<()> {
    let Some(state) = around.world.ships.get(&id) else { return Ok(()) };
    let gauges = ShipGauges { motion: &state.motion, around };
    let is_free = crew.transfer.is_none();
    if let Some((transfer, phase)) = &crew.transfer {
        follow(galaxy, id, *phase, next_phase(&state.motion, transfer, *phase, around.sky)).await?;
    }
    for rule in crew.rules.iter().filter(|rule| rule.enabled) {
        let Some(actions) = actions(rule, &gauges) else { continue };
        for action in actions {
            carry_out(galaxy, around, id, &crew.ship.controls, is_free, action).await?;
        }
        if rule.mode == RuleMode::Once {
            galaxy.tick_engine().enable_rule(id, &rule.rule_id, false).await?;
        }
    }
    pilot(galaxy, around, id, &crew.ship, is_free).await
}

/// What a rule does now; `None` if it is not its time, or if it has words that this game does not know.
fn actions(rule: &Rule, gauges: &ShipGauges<'_>) -> Option<Vec<Action>> {
    let trigger: Trigger = serde_json::from_str(&rule.trigger_json).ok()?;
    let is_met = trigger.is_met(gauges);
    is_met.then(|| serde_json::from_str(&rule.actions_json).ok())?
}

/// Stores the progress of a transfer.
async fn follow(galaxy: &GalaxyState, id: ShipId, phase: Phase, next: Phase) -> anyhow::Result<()> {
    if next == phase {
        return Ok(());
    }
    let status = if next == Phase::Complete { COMPLETED } else { ACTIVE };
    let change = ManeuverChange {
        phase: Some(next.as_str().to_owned()),
        status: Some(status.to_owned()),
        ..ManeuverChange::default()
    };
    galaxy.tick_engine().update_maneuver(id, change).await?;
    Ok(())
}

async fn carry_out(
    galaxy: &GalaxyState,
    around: &Surroundings<'_>,
    id: ShipId,
    controls: &Controls,
    is_free: bool,
    action: Action,
) -> anyhow::Result<()> {
    let changed = match action {
        Action::SetThrust { level } => Controls { thrust_level: level, ..controls.clone() },
        Action::SetAttitude { mode } => {
            let Ok(attitude_mode) = mode.parse::<AttitudeMode>() else { return Ok(()) };
            Controls { attitude_mode, ..controls.clone() }
        }
        Action::Transfer { altitude } if is_free => {
            let Some(state) = around.world.ships.get(&id) else { return Ok(()) };
            let (_, host) = frame(&state.motion, around.sky);
            return begin(galaxy, id, around.sky.bodies()[host].radius + altitude).await;
        }
        Action::Transfer { .. } => return Ok(()),
    };
    if changed == *controls {
        return Ok(());
    }
    match galaxy.physics().control(id, changed).await {
        // An action of another program that makes no sense for this ship, such as a mode that needs a target.
        Err(Error::Invalid { .. }) => Ok(()),
        result => Ok(result?),
    }
}

async fn begin(galaxy: &GalaxyState, id: ShipId, radius: f64) -> anyhow::Result<()> {
    let params = serde_json::to_string(&Transfer { radius })?;
    let (kind, phase, status) = (TRANSFER.to_owned(), Phase::Depart.as_str().to_owned(), ACTIVE.to_owned());
    galaxy.tick_engine().begin_maneuver(id, kind, params, phase, status).await?;
    Ok(())
}

/// What the pilot does: calls a tanker, comes back from far outside, and sometimes wants to be higher.
async fn pilot(
    galaxy: &GalaxyState,
    around: &Surroundings<'_>,
    id: ShipId,
    ship: &Ship,
    is_free: bool,
) -> anyhow::Result<()> {
    let Some(state) = around.world.ships.get(&id) else { return Ok(()) };
    let (frame, host) = frame(&state.motion, around.sky);
    let body = &around.sky.bodies()[host];
    let radii = frame.radius() / body.radius;
    if state.motion.fuel < ship.fuel_capacity * LOW_FUEL {
        galaxy.physics().move_ship(id, MotionChange::fuel(ship.fuel_capacity)).await?;
    } else if !(1.0..RADII_MAX).contains(&radii) && is_free {
        let (position, velocity) = low_orbit(around.sky, body.name);
        galaxy.physics().move_ship(id, MotionChange::teleport(position.into(), velocity.into())).await?;
    } else if is_free && radii < RADII_MAX / CLIMB_MAX && fastrand::usize(..TRANSFERS_ONE_IN) == 0 {
        begin(galaxy, id, frame.radius() * (1.1 + (CLIMB_MAX - 1.1) * fastrand::f64())).await?;
    }
    Ok(())
}
