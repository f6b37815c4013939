//! The maneuver of the star system: a transfer to a higher circle about the same body, in two burns.

use super::facing::Frame;
use serde::{Deserialize, Serialize};

/// The name of its type in the store.
pub(super) const TRANSFER: &str = "transfer";
/// How round an orbit is at the end: the lowest point over the highest.
const ROUND: f64 = 0.97;

/// What a transfer goes for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Transfer {
    /// Metres from the middle of the body.
    pub(super) radius: f64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Burns until the far side of the orbit is high enough.
    Depart,
    /// Waits for the highest point.
    Coast,
    /// Burns until the orbit is round.
    Arrive,
    Complete,
}

impl Phase {
    const ALL: [Phase; 4] = [Phase::Depart, Phase::Coast, Phase::Arrive, Phase::Complete];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Phase::Depart => "depart",
            Phase::Coast => "coast",
            Phase::Arrive => "arrive",
            Phase::Complete => "complete",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.as_str() == text)
    }

    /// Whether the engine burns along the movement.
    pub(super) fn burns(self) -> bool {
        matches!(self, Phase::Depart | Phase::Arrive)
    }
}

impl Transfer {
    /// The phase after a tick, of a ship with this motion about a body of this gravity.
    pub(super) fn next(&self, phase: Phase, frame: &Frame, gravity: f64) -> Phase {
        let Some((lowest, highest)) = frame.apsides(gravity) else {
            // It left the body: there is nothing to be circled.
            return Phase::Complete;
        };
        match phase {
            Phase::Depart if highest >= self.radius => Phase::Coast,
            Phase::Coast if !frame.climbs() => Phase::Arrive,
            Phase::Arrive if lowest >= self.radius * ROUND || lowest >= highest * ROUND => Phase::Complete,
            phase => phase,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::{Class, Flight, Orders};
    use super::super::orbit::{GRAVITY, Motion};
    use super::super::vector::{length, scale};
    use super::*;

    const EARTH: f64 = GRAVITY * 5.972_37e24;
    const CLASS: Class = Class { thrust: 200_000.0, exhaust: 30_000.0, turn: 0.1 };

    #[test]
    fn a_transfer_ends_on_a_higher_circle() {
        let (from, transfer) = (6.8e6, Transfer { radius: 8e6 });
        let motion = Motion { position: [from, 0.0, 0.0], velocity: [0.0, (EARTH / from).sqrt(), 0.0] };
        let (attitude, zero) = ([1.0, 0.0, 0.0, 0.0], [0.0; 3]);
        let mut ship =
            Flight { motion, attitude, turning: zero, wheels: zero, fuel: 2_000.0, dry_mass: 10_000.0 };
        let (mut phase, mut passed) = (Phase::Depart, vec![Phase::Depart]);
        for _ in 0..10_000 {
            let frame = Frame::new(ship.motion, Motion::default());
            let next = transfer.next(phase, &frame, EARTH);
            if next != phase {
                passed.push(next);
                phase = next;
            }
            if phase == Phase::Complete {
                break;
            }
            let thrust_level = if phase.burns() { 1.0 } else { 0.0 };
            let orders = Orders { thrust_level, target: Some(frame.prograde()), ..Orders::default() };
            ship.fly(&CLASS, &orders, 1.0, |at, _| scale(at, -EARTH / length(at).powi(3)));
        }
        assert_eq!(passed, Phase::ALL);
        let (lowest, highest) =
            Frame::new(ship.motion, Motion::default()).apsides(EARTH).expect("an ellipse");
        assert!(lowest > 7.7e6 && highest < 8.3e6, "{lowest} to {highest}");
        assert!(ship.fuel < 2_000.0);
    }

    #[test]
    fn names_of_phases_are_read_back() {
        for phase in Phase::ALL {
            assert_eq!(Phase::parse(phase.as_str()), Some(phase));
        }
        assert_eq!(Phase::parse("loiter"), None);
    }
}
