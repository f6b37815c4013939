//! Changes that others make between two ticks. They wait in a log, and the next tick applies them.

use super::world::{BodyState, ShipState, StructureState};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::model::{
    BodyName, JumpgateId, Quaternion, ShipId, StationId, SystemId, Vector, check_fuel, check_vector,
};
use serde::{Deserialize, Serialize};

/// What the next tick applies before it computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Change {
    ShipSpawned { ship_id: ShipId, state: ShipState },
    ShipMoved { ship_id: ShipId, motion: MotionChange },
    ShipRemoved { ship_id: ShipId },
    BodyPlaced { name: BodyName, state: BodyState },
    BodyRemoved { name: BodyName },
    StationPlaced { station_id: StationId, state: StructureState },
    StationRemoved { station_id: StationId },
    JumpgatePlaced { jumpgate_id: JumpgateId, state: StructureState },
    JumpgateRemoved { jumpgate_id: JumpgateId },
}

/// New values of a ship's tick fields. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MotionChange {
    /// In metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Vector>,
    /// In metres per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub velocity: Option<Vector>,
    /// Where it points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attitude: Option<Quaternion>,
    /// In radians per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub angular_velocity: Option<Vector>,
    /// Fuel in kg, at most the ship's capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<f64>,
    /// In newton metre seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheel_momentum: Option<Vector>,
    /// Its new star system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_id: Option<SystemId>,
}

impl MotionChange {
    /// New fuel.
    pub fn fuel(fuel: f64) -> MotionChange {
        MotionChange { fuel: Some(fuel), ..MotionChange::default() }
    }

    /// Another place in the same system.
    pub fn teleport(position: Vector, velocity: Vector) -> MotionChange {
        MotionChange { position: Some(position), velocity: Some(velocity), ..MotionChange::default() }
    }

    /// Another place in another system.
    pub fn jump(system_id: SystemId, position: Vector, velocity: Vector) -> MotionChange {
        MotionChange { system_id: Some(system_id), ..MotionChange::teleport(position, velocity) }
    }

    pub(crate) fn check(&self, fuel_capacity: f64) -> Result<()> {
        let vectors = [
            ("position", self.position),
            ("velocity", self.velocity),
            ("angular velocity", self.angular_velocity),
            ("wheel momentum", self.wheel_momentum),
        ];
        for (what, vector) in vectors {
            vector.map_or(Ok(()), |vector| check_vector(what, &vector))?;
        }
        if self.attitude.is_some_and(|attitude| !attitude.is_finite()) {
            return Err(Error::invalid("attitude", "not finite, expected four finite numbers"));
        }
        self.fuel.map_or(Ok(()), |fuel| check_fuel(fuel, fuel_capacity))
    }

    pub(super) fn apply(&self, ship: &mut ShipState) {
        let motion = &mut ship.motion;
        motion.position = self.position.unwrap_or(motion.position);
        motion.velocity = self.velocity.unwrap_or(motion.velocity);
        motion.attitude = self.attitude.unwrap_or(motion.attitude);
        motion.angular_velocity = self.angular_velocity.unwrap_or(motion.angular_velocity);
        motion.fuel = self.fuel.unwrap_or(motion.fuel);
        motion.wheel_momentum = self.wheel_momentum.unwrap_or(motion.wheel_momentum);
        if let Some(system) = &self.system_id {
            ship.system_id = system.clone();
        }
    }
}
