//! Orbits of two bodies: elements to position and velocity, at any time.

use super::vector::{Vector, add, scale};
use std::f64::consts::TAU;

/// Rounds of Newton's method. Five are enough for an eccentricity of 0.3; more are for strange data.
const ROUNDS_MAX: usize = 30;
const CLOSE_ENOUGH: f64 = 1e-13;

/// The gravitational constant, in m³/(kg s²).
pub(super) const GRAVITY: f64 = 6.674_30e-11;

/// An ellipse about a parent. Angles in radians, at the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orbit {
    /// The semi-major axis in metres.
    pub(super) axis: f64,
    /// From 0 to less than 1.
    pub(super) eccentricity: f64,
    pub(super) inclination: f64,
    pub(super) mean_anomaly: f64,
    /// The argument of the periapsis.
    pub(super) periapsis: f64,
    /// The longitude of the ascending node.
    pub(super) node: f64,
}

/// Relative to the parent, or to the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Motion {
    pub(super) position: Vector,
    pub(super) velocity: Vector,
}

impl Motion {
    pub(super) fn plus(self, other: Motion) -> Motion {
        Motion { position: add(self.position, other.position), velocity: add(self.velocity, other.velocity) }
    }
}

impl Orbit {
    /// A circle with this radius, in the plane of the parent's equator or ecliptic.
    pub(super) fn circle(radius: f64, mean_anomaly: f64) -> Orbit {
        Orbit { axis: radius, eccentricity: 0.0, inclination: 0.0, mean_anomaly, periapsis: 0.0, node: 0.0 }
    }

    /// Radians a second, about a parent of this gravity (the product of [`GRAVITY`] and masses).
    pub(super) fn mean_motion(&self, gravity: f64) -> f64 {
        (gravity / self.axis.powi(3)).sqrt()
    }

    /// So many seconds after the epoch.
    pub(super) fn at(&self, seconds: f64, gravity: f64) -> Motion {
        let motion = self.mean_motion(gravity);
        let mean = (self.mean_anomaly + motion * seconds).rem_euclid(TAU);
        let eccentric = eccentric_anomaly(mean, self.eccentricity);
        let (sin, cos) = eccentric.sin_cos();
        let minor = self.axis * (1.0 - self.eccentricity.powi(2)).sqrt();
        let speed = motion / (1.0 - self.eccentricity * cos);
        let in_plane = |x: f64, y: f64| {
            let (along, across) = self.plane();
            add(scale(along, x), scale(across, y))
        };
        Motion {
            position: in_plane(self.axis * (cos - self.eccentricity), minor * sin),
            velocity: in_plane(-self.axis * sin * speed, minor * cos * speed),
        }
    }

    /// The directions to the periapsis, and of the movement there.
    fn plane(&self) -> (Vector, Vector) {
        let (sin_w, cos_w) = self.periapsis.sin_cos();
        let (sin_n, cos_n) = self.node.sin_cos();
        let (sin_i, cos_i) = self.inclination.sin_cos();
        let along =
            [cos_w * cos_n - sin_w * sin_n * cos_i, cos_w * sin_n + sin_w * cos_n * cos_i, sin_w * sin_i];
        let across =
            [-sin_w * cos_n - cos_w * sin_n * cos_i, -sin_w * sin_n + cos_w * cos_n * cos_i, cos_w * sin_i];
        (along, across)
    }
}

/// Kepler's equation: the angle E with E − e sin E = M.
fn eccentric_anomaly(mean: f64, eccentricity: f64) -> f64 {
    let mut angle = mean + eccentricity * mean.sin();
    for _ in 0..ROUNDS_MAX {
        let off = angle - eccentricity * angle.sin() - mean;
        angle -= off / (1.0 - eccentricity * angle.cos());
        if off.abs() < CLOSE_ENOUGH {
            break;
        }
    }
    angle
}

#[cfg(test)]
mod tests {
    use super::super::vector::{cross, dot, length, sub};
    use super::*;

    const SUN: f64 = GRAVITY * 1.988_47e30;

    fn comet() -> Orbit {
        Orbit {
            axis: 4e11,
            eccentricity: 0.6,
            inclination: 0.4,
            mean_anomaly: 1.0,
            periapsis: 2.0,
            node: 3.0,
        }
    }

    #[test]
    fn energy_and_momentum_stay() {
        let orbit = comet();
        let (start, period) = (orbit.at(0.0, SUN), TAU / orbit.mean_motion(SUN));
        let energy = |at: Motion| dot(at.velocity, at.velocity) / 2.0 - SUN / length(at.position);
        let momentum = |at: Motion| cross(at.position, at.velocity);
        for part in 0..100 {
            let at = orbit.at(period * f64::from(part) / 100.0, SUN);
            assert!((energy(at) / energy(start) - 1.0).abs() < 1e-9, "{part}");
            let drift = length(sub(momentum(at), momentum(start))) / length(momentum(start));
            assert!(drift < 1e-9, "{part}: {drift}");
        }
        let again = orbit.at(period, SUN);
        assert!(length(sub(again.position, start.position)) < 1e3);
    }

    #[test]
    fn velocity_is_the_change_of_position() {
        let (before, at, after) =
            (comet().at(9_999.0, SUN), comet().at(10_000.0, SUN), comet().at(10_001.0, SUN));
        let measured = scale(sub(after.position, before.position), 0.5);
        assert!(length(sub(measured, at.velocity)) / length(at.velocity) < 1e-6);
    }

    #[test]
    fn a_circle_has_one_speed() {
        let orbit = Orbit::circle(7e6, 0.5);
        let earth = GRAVITY * 5.972_37e24;
        for seconds in [0.0, 1e3, 5e6] {
            let at = orbit.at(seconds, earth);
            assert!((length(at.position) - 7e6).abs() < 1e-2);
            assert!((length(at.velocity) - (earth / 7e6).sqrt()).abs() < 1e-6);
        }
    }

    #[test]
    fn long_ellipses_are_solved() {
        for (eccentricity, mean) in [(0.99, 0.01), (0.97, 6.2), (0.9, 3.1), (0.0, 1.0)] {
            let angle = eccentric_anomaly(mean, eccentricity);
            assert!((angle - eccentricity * angle.sin() - mean).abs() < 1e-9, "{eccentricity} {mean}");
        }
    }
}
