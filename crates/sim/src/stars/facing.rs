//! Attitude modes: where the nose of a ship shall point.

use super::orbit::Motion;
use super::vector::{Vector, cross, direction, dot, length, scale, sub};

/// The directions of an orbit, seen from a ship: its motion relative to the body it circles.
pub(super) struct Frame {
    relative: Motion,
}

impl Frame {
    pub(super) fn new(ship: Motion, about: Motion) -> Frame {
        let relative = Motion {
            position: sub(ship.position, about.position),
            velocity: sub(ship.velocity, about.velocity),
        };
        Frame { relative }
    }

    /// Along the movement.
    pub(super) fn prograde(&self) -> Vector {
        direction(self.relative.velocity)
    }

    /// Across the plane of the orbit, northwards for an orbit to the east.
    pub(super) fn normal(&self) -> Vector {
        direction(cross(self.relative.position, self.relative.velocity))
    }

    /// The lowest and the highest point of the orbit, from the middle of a body of this gravity. `None`: it does not return.
    pub(super) fn apsides(&self, gravity: f64) -> Option<(f64, f64)> {
        let Motion { position, velocity } = self.relative;
        let energy = dot(velocity, velocity) / 2.0 - gravity / length(position);
        if energy >= 0.0 {
            return None;
        }
        let axis = -gravity / (2.0 * energy);
        let momentum = cross(position, velocity);
        let eccentricity = (1.0 - dot(momentum, momentum) / (gravity * axis)).max(0.0).sqrt();
        Some((axis * (1.0 - eccentricity), axis * (1.0 + eccentricity)))
    }

    /// Whether the ship moves away from the body.
    pub(super) fn climbs(&self) -> bool {
        dot(self.relative.position, self.relative.velocity) > 0.0
    }

    /// Metres a second, seen from the body.
    pub(super) fn speed(&self) -> f64 {
        length(self.relative.velocity)
    }

    /// Metres from the middle of the body.
    pub(super) fn radius(&self) -> f64 {
        length(self.relative.position)
    }

    /// Away from the body, across the movement.
    pub(super) fn radial(&self) -> Vector {
        direction(cross(self.prograde(), self.normal()))
    }
}

/// The other way.
pub(super) fn opposite(direction: Vector) -> Vector {
    scale(direction, -1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_of_an_orbit_to_the_east() {
        let body = Motion { position: [1e9, 0.0, 0.0], velocity: [0.0, 3e4, 0.0] };
        let ship = Motion { position: [1e9 + 7e6, 0.0, 0.0], velocity: [0.0, 3e4 + 7e3, 0.0] };
        let frame = Frame::new(ship, body);
        assert_eq!(frame.prograde(), [0.0, 1.0, 0.0]);
        assert_eq!(frame.normal(), [0.0, 0.0, 1.0]);
        assert_eq!(frame.radial(), [1.0, 0.0, 0.0]);
        assert_eq!(opposite(frame.radial()), [-1.0, 0.0, 0.0]);
    }
}
