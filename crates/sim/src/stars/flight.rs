//! How a ship moves in a tick: gravity, thrust that burns fuel, and wheels that turn it.

use super::orbit::Motion;
use super::vector::{
    Quaternion, Vector, add, cross, direction, dot, length, multiply, normal, nose, rotation, scale,
};

/// Seconds of one step of the integration. Ships in low orbits keep their height over thousands of such steps.
const STEP_MAX: f64 = 5.0;
/// Steps of one tick: a tick of a fast game is coarser rather than slower.
const STEPS_MAX: f64 = 40.0;
/// A ship that points as close to its target burns, in radians.
pub(super) const AIMED: f64 = 0.05;
/// How quickly the wheels reach their full turn, and how they damp one, in rad/s².
const WHEELS: f64 = 0.02;
/// The moment of inertia of a ton of ship, in kg m². Ships are compact: a rough figure does.
const INERTIA_PER_TON: f64 = 12_000.0;

/// What ships of a class can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// Newtons at a thrust level of 1.
    pub(super) thrust: f64,
    /// Metres a second: thrust over fuel a second.
    pub(super) exhaust: f64,
    /// The fastest turn, in rad/s.
    pub(super) turn: f64,
}

/// What a ship is asked to do until the next tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Orders {
    /// From 0 to 1.
    pub(super) thrust_level: f64,
    /// Pitch, yaw and roll, from −1 to 1. Counts where no target is given.
    pub(super) rotation_input: Vector,
    /// Whether turns are damped while nothing is asked for.
    pub(super) damped: bool,
    /// Where the nose shall point.
    pub(super) target: Option<Vector>,
}

/// A ship as the physics knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) motion: Motion,
    pub(super) attitude: Quaternion,
    /// In rad/s, in the frame of the system.
    pub(super) turning: Vector,
    /// What the wheels hold against the hull, in N m s.
    pub(super) wheels: Vector,
    pub(super) fuel: f64,
    pub(super) dry_mass: f64,
}

impl Flight {
    pub(super) fn mass(&self) -> f64 {
        self.dry_mass + self.fuel
    }

    /// Whether the nose points there.
    pub(super) fn is_aimed(&self, target: Vector) -> bool {
        dot(nose(self.attitude), target) > AIMED.cos()
    }

    /// Moves the ship by these seconds. `pull` is the acceleration of gravity at a place so many seconds into them.
    pub(super) fn fly(
        &mut self,
        class: &Class,
        orders: &Orders,
        seconds: f64,
        pull: impl Fn(Vector, f64) -> Vector,
    ) {
        let steps = (seconds / STEP_MAX).ceil().clamp(1.0, STEPS_MAX);
        let step = seconds / steps;
        let mut done = 0.0;
        while done + step / 2.0 < seconds {
            self.turn(class, orders, step);
            let push = self.burn(class, orders, step);
            let Motion { position, velocity } = self.motion;
            let before = add(pull(position, done), push);
            let position = add(position, add(scale(velocity, step), scale(before, step * step / 2.0)));
            let after = add(pull(position, done + step), push);
            let velocity = add(velocity, scale(add(before, after), step / 2.0));
            self.motion = Motion { position, velocity };
            done += step;
        }
    }

    /// Burns fuel, and returns the acceleration it gives.
    fn burn(&mut self, class: &Class, orders: &Orders, seconds: f64) -> Vector {
        let is_aimed = orders.target.is_none_or(|target| self.is_aimed(target));
        let force = if is_aimed { class.thrust * orders.thrust_level } else { 0.0 };
        let wanted = force / class.exhaust * seconds;
        if wanted <= 0.0 {
            return [0.0; 3];
        }
        let share = (self.fuel / wanted).min(1.0);
        let mass = self.mass() - wanted * share / 2.0;
        self.fuel = (self.fuel - wanted * share).max(0.0);
        scale(nose(self.attitude), force * share / mass)
    }

    fn turn(&mut self, class: &Class, orders: &Orders, seconds: f64) {
        self.turning = match orders.target {
            Some(target) => self.turn_towards(target, class.turn, seconds),
            None => self.turn_by_hand(orders, class.turn, seconds),
        };
        let rate = length(self.turning);
        if rate > 0.0 {
            let turned = multiply(rotation(direction(self.turning), rate * seconds), self.attitude);
            self.attitude = normal(turned);
        }
        self.wheels = scale(self.turning, -INERTIA_PER_TON * self.mass() / 1e3);
    }

    /// The turn that brings the nose there within the step, or as near as the wheels can.
    fn turn_towards(&self, target: Vector, fastest: f64, seconds: f64) -> Vector {
        let nose = nose(self.attitude);
        let angle = dot(nose, target).clamp(-1.0, 1.0).acos();
        let axis = cross(nose, target);
        // Straight behind: any axis across the nose will do.
        let axis = if length(axis) > 1e-9 { axis } else { cross(nose, [-nose[1], nose[2], nose[0] + 2.0]) };
        scale(direction(axis), (angle / seconds).min(fastest))
    }

    fn turn_by_hand(&self, orders: &Orders, fastest: f64, seconds: f64) -> Vector {
        let [pitch, yaw, roll] = orders.rotation_input;
        let asked = add(scale(nose(self.attitude), roll), [0.0, pitch, yaw]);
        let turning = add(self.turning, scale(asked, WHEELS * seconds));
        let rate = length(turning);
        let wanted = match orders.damped && length(asked) == 0.0 {
            true => (rate - WHEELS * seconds).max(0.0),
            false => rate.min(fastest),
        };
        if rate > 0.0 { scale(turning, wanted / rate) } else { turning }
    }
}

#[cfg(test)]
mod tests {
    use super::super::orbit::GRAVITY;
    use super::super::vector::sub;
    use super::*;

    const EARTH: f64 = GRAVITY * 5.972_37e24;
    const CLASS: Class = Class { thrust: 200_000.0, exhaust: 30_000.0, turn: 0.1 };

    fn ship() -> Flight {
        let motion = Motion { position: [7e6, 0.0, 0.0], velocity: [0.0, (EARTH / 7e6).sqrt(), 0.0] };
        let (attitude, zero) = ([1.0, 0.0, 0.0, 0.0], [0.0; 3]);
        Flight { motion, attitude, turning: zero, wheels: zero, fuel: 1_000.0, dry_mass: 10_000.0 }
    }

    fn earth(place: Vector, _: f64) -> Vector {
        scale(place, -EARTH / length(place).powi(3))
    }

    #[test]
    fn a_low_orbit_keeps_its_height() {
        let mut ship = ship();
        for _ in 0..600 {
            ship.fly(&CLASS, &Orders::default(), 100.0, earth);
        }
        let radius = length(ship.motion.position);
        assert!((radius / 7e6 - 1.0).abs() < 1e-3, "{radius}");
        assert_eq!(ship.fuel.to_bits(), 1_000_f64.to_bits());
    }

    #[test]
    fn fuel_becomes_speed_and_ends() {
        let mut ship = ship();
        ship.motion = Motion::default();
        let orders = Orders { thrust_level: 1.0, ..Orders::default() };
        for _ in 0..200 {
            ship.fly(&CLASS, &orders, 1.0, |_, _| [0.0; 3]);
        }
        // The rocket equation.
        let expected = CLASS.exhaust * (11_000_f64 / 10_000.0).ln();
        let speed = length(ship.motion.velocity);
        assert!((speed / expected - 1.0).abs() < 1e-3, "{speed}, expected {expected}");
        assert_eq!(ship.fuel.to_bits(), 0_f64.to_bits());
        let before = ship.motion.velocity;
        ship.fly(&CLASS, &orders, 10.0, |_, _| [0.0; 3]);
        assert_eq!(ship.motion.velocity, before, "no fuel, no thrust");
    }

    #[test]
    fn the_nose_goes_where_it_shall_before_the_burn() {
        for target in [[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.6, -0.8, 0.0]] {
            let (mut ship, orders) =
                (ship(), Orders { thrust_level: 1.0, target: Some(target), ..Orders::default() });
            ship.motion = Motion::default();
            ship.fly(&CLASS, &orders, 1.0, |_, _| [0.0; 3]);
            assert_eq!(ship.motion.velocity, [0.0; 3], "it still turns");
            assert!(length(ship.turning) <= CLASS.turn + 1e-12 && length(ship.wheels) > 0.0);
            ship.fly(&CLASS, &orders, 60.0, |_, _| [0.0; 3]);
            assert!(ship.is_aimed(target));
            let off = length(sub(direction(ship.motion.velocity), target));
            assert!(off < 2.0 * AIMED, "{target:?}: {off}");
        }
    }

    #[test]
    fn turns_by_hand_are_damped() {
        let mut ship = ship();
        let orders = Orders { rotation_input: [0.0, 1.0, 0.0], ..Orders::default() };
        ship.fly(&CLASS, &orders, 60.0, earth);
        assert!((length(ship.turning) - CLASS.turn).abs() < 1e-9, "as fast as it can");
        ship.fly(&CLASS, &Orders { damped: true, ..Orders::default() }, 60.0, earth);
        assert!(length(ship.turning) < 1e-12);
    }
}
