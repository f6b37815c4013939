//! One ship in one tick: its orders, its flight, its rules and its maneuver.

use super::facing::{Frame, opposite};
use super::flight::{Class, Flight, Orders};
use super::maneuver::{Phase, Transfer};
use super::orbit::Motion as Place;
use super::rules::{Field, Gauges};
use super::sky::Sky;
use super::vector::{Vector, direction, length, sub};
use emberkeep::games::galaxy::{AttitudeMode, Controls, Motion, Ship, ShipClass, TargetType, World};

/// A maneuver changes the speed of a ship by at most this part in a tick, so that long ticks do not overshoot.
const GENTLE: f64 = 0.02;

/// What ships of a class can do.
pub(super) fn class(class: ShipClass) -> Class {
    match class {
        ShipClass::FastFrigate => Class { thrust: 150_000.0, exhaust: 30_000.0, turn: 0.15 },
        ShipClass::CargoHauler => Class { thrust: 300_000.0, exhaust: 30_000.0, turn: 0.05 },
    }
}

/// Where a ship is among bodies, stations and other ships.
pub(super) struct Surroundings<'a> {
    pub(super) sky: &'a Sky,
    pub(super) world: &'a World,
}

impl Surroundings<'_> {
    /// The motion of whatever has this name or id.
    fn find(&self, kind: Option<TargetType>, name: &str) -> Option<Place> {
        let place = |position: Vector, velocity: Vector| Place { position, velocity };
        let is = |wanted| kind.is_none_or(|kind| kind == wanted);
        if is(TargetType::Body)
            && let Some(body) = self.sky.body(name)
        {
            return Some(self.sky.motion(body));
        }
        let id = name.parse::<uuid::Uuid>().ok()?;
        if is(TargetType::Ship)
            && let Some(ship) = self.world.ships.get(&emberkeep::games::galaxy::ShipId(id))
        {
            return Some(place(ship.motion.position.into(), ship.motion.velocity.into()));
        }
        let station = self.world.stations.get(&emberkeep::games::galaxy::StationId(id));
        let gate = self.world.jumpgates.get(&emberkeep::games::galaxy::JumpgateId(id));
        let structure = station.or(gate).filter(|_| is(TargetType::Station))?;
        Some(place(structure.position.into(), structure.velocity.into()))
    }
}

/// The directions of a ship's orbit about the body that pulls it most, and that body.
pub(super) fn frame(motion: &Motion, sky: &Sky) -> (Frame, usize) {
    let place = Place { position: motion.position.into(), velocity: motion.velocity.into() };
    let host = sky.host(place.position);
    (Frame::new(place, sky.motion(host)), host)
}

/// What a ship does in the next tick: its maneuver, or else what its controls say.
pub(super) fn orders(
    motion: &Motion,
    ship: &Ship,
    maneuver: Option<Phase>,
    around: &Surroundings<'_>,
    seconds: f64,
) -> Orders {
    let ((frame, _), controls) = (frame(motion, around.sky), &ship.controls);
    if let Some(phase) = maneuver {
        let full = class(ship.ship_class).thrust * seconds / (ship.dry_mass + motion.fuel);
        let gentle = (frame.speed() * GENTLE / full.max(f64::MIN_POSITIVE)).min(1.0);
        let thrust_level = if phase.burns() { gentle } else { 0.0 };
        return Orders { thrust_level, target: Some(frame.prograde()), ..Orders::default() };
    }
    Orders {
        thrust_level: controls.thrust_level,
        rotation_input: controls.rotation_input.into(),
        damped: controls.attitude_hold || controls.attitude_mode == AttitudeMode::Hold,
        target: facing(motion, controls, &frame, around),
    }
}

fn facing(motion: &Motion, controls: &Controls, frame: &Frame, around: &Surroundings<'_>) -> Option<Vector> {
    let target = || {
        let place = around.find(controls.attitude_target_type, controls.attitude_target_id.as_deref()?)?;
        let (position, velocity): (Vector, Vector) = (motion.position.into(), motion.velocity.into());
        Some((sub(place.position, position), sub(velocity, place.velocity)))
    };
    match controls.attitude_mode {
        AttitudeMode::None | AttitudeMode::Hold => None,
        AttitudeMode::Prograde => Some(frame.prograde()),
        AttitudeMode::Retrograde => Some(opposite(frame.prograde())),
        AttitudeMode::Normal => Some(frame.normal()),
        AttitudeMode::Antinormal => Some(opposite(frame.normal())),
        AttitudeMode::Radial => Some(frame.radial()),
        AttitudeMode::Antiradial => Some(opposite(frame.radial())),
        AttitudeMode::Target => target().map(|(towards, _)| direction(towards)),
        AttitudeMode::TargetRetrograde => target().map(|(_, closing)| opposite(direction(closing))),
    }
}

/// Moves a ship through the tick of the sky.
pub(super) fn fly(motion: &mut Motion, ship: &Ship, orders: &Orders, seconds: f64, sky: &Sky) {
    let place = Place { position: motion.position.into(), velocity: motion.velocity.into() };
    let mut flight = Flight {
        motion: place,
        attitude: motion.attitude.into(),
        turning: motion.angular_velocity.into(),
        wheels: motion.wheel_momentum.into(),
        fuel: motion.fuel,
        dry_mass: ship.dry_mass,
    };
    flight.fly(&class(ship.ship_class), orders, seconds, |place, at| sky.pull(place, at));
    *motion = Motion {
        position: flight.motion.position.into(),
        velocity: flight.motion.velocity.into(),
        attitude: flight.attitude.into(),
        angular_velocity: flight.turning.into(),
        fuel: flight.fuel,
        wheel_momentum: flight.wheels.into(),
    };
}

/// The phase of a transfer after the tick.
pub(super) fn next_phase(motion: &Motion, transfer: &Transfer, phase: Phase, sky: &Sky) -> Phase {
    let (frame, host) = frame(motion, sky);
    transfer.next(phase, &frame, sky.bodies()[host].gravity)
}

/// What the rules of a ship can ask for.
pub(super) struct ShipGauges<'a> {
    pub(super) motion: &'a Motion,
    pub(super) around: &'a Surroundings<'a>,
}

impl Gauges for ShipGauges<'_> {
    fn read(&self, field: Field, target: Option<&str>) -> Option<f64> {
        let place: Vector = self.motion.position.into();
        match field {
            Field::Fuel => Some(self.motion.fuel),
            Field::Altitude => Some(self.around.sky.altitude(place, self.around.sky.host(place))),
            Field::Distance => {
                let found = self.around.find(None, target?)?;
                Some(length(sub(found.position, place)))
            }
        }
    }
}
