//! Where the bodies are during a tick, and how they pull.

use super::bodies::{Body, motions, solar_system};
use super::orbit::Motion;
use super::vector::{Vector, add, length, scale, sub};
use emberkeep::games::galaxy::GameTime;

/// The epoch of the table of bodies, J2000.0, in microseconds since 1970.
const EPOCH_US: i64 = 946_728_000_000_000;

/// All bodies from the begin of a tick to its end.
pub(super) struct Sky {
    bodies: Vec<Body>,
    begin: Vec<Motion>,
    end: Vec<Motion>,
    seconds: f64,
}

impl Sky {
    /// The sky at one moment.
    pub(super) fn new(time: GameTime) -> anyhow::Result<Sky> {
        let bodies = solar_system()?;
        let end = motions(&bodies, since_epoch(time));
        Ok(Sky { bodies, begin: end.clone(), end, seconds: 0.0 })
    }

    /// The next tick: it ends at this time and is so many seconds long.
    pub(super) fn advance(&mut self, time: GameTime, seconds: f64) {
        let end = since_epoch(time);
        self.begin = motions(&self.bodies, end - seconds);
        self.end = motions(&self.bodies, end);
        self.seconds = seconds;
    }

    pub(super) fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    pub(super) fn body(&self, name: &str) -> Option<usize> {
        self.bodies.iter().position(|body| body.name == name)
    }

    /// A body's motion at the end of the tick.
    pub(super) fn motion(&self, body: usize) -> Motion {
        self.end[body]
    }

    /// The acceleration of gravity at a place, so many seconds into the tick.
    pub(super) fn pull(&self, place: Vector, seconds: f64) -> Vector {
        (0..self.bodies.len()).fold([0.0; 3], |sum, body| {
            let to = sub(self.during(body, seconds), place);
            let distance = length(to).max(self.bodies[body].radius);
            add(sum, scale(to, self.bodies[body].gravity / distance.powi(3)))
        })
    }

    /// The body that pulls a ship most at the end of the tick: the one it circles.
    pub(super) fn host(&self, place: Vector) -> usize {
        let pull = |body: usize| {
            let to = sub(self.end[body].position, place);
            self.bodies[body].gravity / length(to).max(1.0).powi(2)
        };
        (0..self.bodies.len()).max_by(|one, other| pull(*one).total_cmp(&pull(*other))).unwrap_or(0)
    }

    /// Metres above the surface of a body, at the end of the tick.
    pub(super) fn altitude(&self, place: Vector, body: usize) -> f64 {
        length(sub(self.end[body].position, place)) - self.bodies[body].radius
    }

    /// Between begin and end, on the cubic through both places with both velocities.
    fn during(&self, body: usize, seconds: f64) -> Vector {
        let (begin, end, long) = (self.begin[body], self.end[body], self.seconds);
        if long <= 0.0 {
            return end.position;
        }
        let s = seconds / long;
        let (rest, late) = ((1.0 - s).powi(2), s * s);
        let places =
            add(scale(begin.position, (1.0 + 2.0 * s) * rest), scale(end.position, late * (3.0 - 2.0 * s)));
        let bends = add(scale(begin.velocity, s * rest), scale(end.velocity, late * (s - 1.0)));
        add(places, scale(bends, long))
    }
}

fn since_epoch(time: GameTime) -> f64 {
    (time.micros() - EPOCH_US) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sky(seconds: f64) -> Sky {
        let time = GameTime::parse("2026-06-01T12:00:00Z").unwrap();
        let mut sky = Sky::new(time).unwrap();
        sky.advance(time, seconds);
        sky
    }

    #[test]
    fn a_long_tick_follows_the_moons() {
        let sky = sky(600.0);
        let io = sky.body("Io").unwrap();
        let exact = motions(sky.bodies(), since_epoch(GameTime::parse("2026-06-01T11:55:00Z").unwrap()))[io];
        let off = length(sub(sky.during(io, 300.0), exact.position));
        assert!(off < 200.0, "{off} m");
        assert_eq!(sky.during(io, 600.0), sky.motion(io).position);
    }

    #[test]
    fn the_nearest_giant_is_the_host() {
        let sky = sky(1.0);
        for name in ["Earth", "Luna", "Titan", "Ceres", "Jupiter"] {
            let body = sky.body(name).unwrap();
            let place = add(sky.motion(body).position, [0.0, 1.2 * sky.bodies()[body].radius, 0.0]);
            assert_eq!(sky.bodies()[sky.host(place)].name, name);
            let altitude = sky.altitude(place, body) / sky.bodies()[body].radius;
            assert!((altitude - 0.2).abs() < 1e-6, "{name}: {altitude}");
        }
    }
}
