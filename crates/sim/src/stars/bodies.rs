//! The bodies of the Solar System, from the table beside this file.

use super::orbit::{GRAVITY, Motion, Orbit};
use anyhow::{Context, bail, ensure};

/// Bodies with their orbits. A parent comes before its moons.
const TABLE: &str = include_str!("bodies.csv");
const AU: f64 = 1.495_978_707e11;
const MEGAMETRE: f64 = 1e6;

/// A body as the table lists it.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) name: &'static str,
    /// Its place among the bodies, and the ellipse about it. None: it rests in the origin.
    orbit: Option<(usize, Orbit)>,
    pub(super) radius: f64,
    /// The product of [`GRAVITY`] and its mass.
    pub(super) gravity: f64,
}

/// All bodies of the table.
pub(super) fn solar_system() -> anyhow::Result<Vec<Body>> {
    let mut bodies = Vec::new();
    for (number, line) in (1..).zip(TABLE.lines()).filter(|(_, line)| !line.starts_with('#')) {
        let body = read(line, &bodies).with_context(|| format!("bodies.csv, line {number}"))?;
        bodies.push(body);
    }
    Ok(bodies)
}

/// Where all bodies are, so many seconds after the epoch, in the order of the table.
pub(super) fn motions(bodies: &[Body], seconds: f64) -> Vec<Motion> {
    let mut motions: Vec<Motion> = Vec::with_capacity(bodies.len());
    for body in bodies {
        let motion = body.orbit.map_or(Motion::default(), |(parent, orbit)| {
            let gravity = bodies[parent].gravity + body.gravity;
            motions[parent].plus(orbit.at(seconds, gravity))
        });
        motions.push(motion);
    }
    motions
}

fn read(line: &'static str, above: &[Body]) -> anyhow::Result<Body> {
    let columns: Vec<_> = line.split(',').collect();
    let [name, parent, unit, numbers @ ..] = &columns[..] else { bail!("expected 11 columns") };
    let numbers = numbers.iter().map(|text| text.parse()).collect::<Result<Vec<f64>, _>>()?;
    let [axis, eccentricity, inclination, longitude, perihelion, node, mass, radius] = numbers[..] else {
        bail!("expected 11 columns, found {}", columns.len());
    };
    ensure!((0.0..1.0).contains(&eccentricity), "an ellipse has an eccentricity from 0 to less than 1");
    let orbit = Orbit {
        axis: axis * metres(unit)?,
        eccentricity,
        inclination: inclination.to_radians(),
        mean_anomaly: (longitude - perihelion).to_radians(),
        periapsis: (perihelion - node).to_radians(),
        node: node.to_radians(),
    };
    let orbit = match *parent {
        "" => None,
        parent => {
            let place = above.iter().position(|body| body.name == parent);
            Some((place.with_context(|| format!("{parent} is not above"))?, orbit))
        }
    };
    Ok(Body { name, orbit, radius, gravity: GRAVITY * mass })
}

fn metres(unit: &str) -> anyhow::Result<f64> {
    match unit {
        "au" => Ok(AU),
        "Mm" => Ok(MEGAMETRE),
        "" => Ok(0.0),
        unit => bail!("{unit} is neither au nor Mm"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::vector::{length, sub};
    use super::*;
    use std::f64::consts::TAU;

    const DAY: f64 = 86_400.0;

    fn place(bodies: &[Body], name: &str) -> usize {
        bodies.iter().position(|body| body.name == name).unwrap()
    }

    fn days(bodies: &[Body], name: &str) -> f64 {
        let body = &bodies[place(bodies, name)];
        let (parent, orbit) = body.orbit.unwrap();
        TAU / orbit.mean_motion(bodies[parent].gravity + body.gravity) / DAY
    }

    #[test]
    fn periods_are_those_of_the_sky() {
        let bodies = solar_system().unwrap();
        let known = [
            ("Mercury", 87.969),
            ("Earth", 365.256),
            ("Mars", 686.98),
            ("Jupiter", 4_332.6),
            ("Luna", 27.32),
            ("Io", 1.769),
            ("Titan", 15.945),
            ("Triton", 5.877),
            ("Phobos", 0.3189),
        ];
        for (name, expected) in known {
            let found = days(&bodies, name);
            assert!((found / expected - 1.0).abs() < 0.006, "{name}: {found} days, expected {expected}");
        }
    }

    #[test]
    fn planets_are_where_they_were_in_the_year_2000() {
        let bodies = solar_system().unwrap();
        let at = motions(&bodies, 0.0);
        // Heliocentric longitudes of the almanac, in degrees.
        for (name, expected) in [("Earth", 100.4), ("Mars", 359.4), ("Jupiter", 36.3), ("Saturn", 45.7)] {
            let [x, y, _] = at[place(&bodies, name)].position;
            let longitude = y.atan2(x).to_degrees().rem_euclid(360.0);
            let off = (longitude - expected + 180.0).rem_euclid(360.0) - 180.0;
            assert!(off.abs() < 1.0, "{name}: {longitude}, expected {expected}");
        }
    }

    #[test]
    fn moons_stay_with_their_planets() {
        let bodies = solar_system().unwrap();
        for seconds in [0.0, 1e8, -1e9] {
            let at = motions(&bodies, seconds);
            let (earth, luna) = (place(&bodies, "Earth"), place(&bodies, "Luna"));
            let apart = length(sub(at[earth].position, at[luna].position));
            assert!((3.6e8..4.07e8).contains(&apart), "{apart}");
        }
    }
}
