//! The entities of a tick, in memory.

use super::change::Change;
use super::records::SystemChunks;
use crate::galaxy::Error;
use crate::galaxy::error::Result;
use crate::galaxy::limits::ENTITIES_MAX;
use crate::galaxy::model::{
    BodyName, JumpgateId, Motion, PlayerId, ShipId, StationId, SystemId, Vector, check_vector,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Systems whose chunks the head lists. With more, a reader of one system reads all chunks.
pub(super) const SYSTEMS_IN_HEAD_MAX: usize = 64;

/// A ship of a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShipState {
    /// Whose it is.
    pub player_id: PlayerId,
    /// Its star system.
    pub system_id: SystemId,
    /// What the tick computed.
    #[serde(flatten)]
    pub motion: Motion,
}

/// A body of a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyState {
    /// Its star system.
    pub system_id: SystemId,
    /// In metres.
    pub position: Vector,
    /// In metres per second.
    pub velocity: Vector,
}

/// A station or a jump gate of a tick.
pub type StructureState = BodyState;

/// All entities of a tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct World {
    /// Ships of players.
    pub ships: BTreeMap<ShipId, ShipState>,
    /// Celestial bodies.
    pub bodies: BTreeMap<BodyName, BodyState>,
    /// Stations, by id.
    pub stations: BTreeMap<StationId, StructureState>,
    /// Jump gates, by id.
    pub jumpgates: BTreeMap<JumpgateId, StructureState>,
}

/// One entity of a tick.
#[derive(Clone, Debug, PartialEq)]
pub enum Entity {
    /// A celestial body.
    Body(BodyName, BodyState),
    /// A jump gate.
    Jumpgate(JumpgateId, StructureState),
    /// A ship.
    Ship(ShipId, ShipState),
    /// A station.
    Station(StationId, StructureState),
}

impl Entity {
    /// The star system in which it is.
    pub fn system(&self) -> &SystemId {
        match self {
            Entity::Ship(_, ship) => &ship.system_id,
            Entity::Body(_, state) | Entity::Station(_, state) | Entity::Jumpgate(_, state) => {
                &state.system_id
            }
        }
    }
}

impl World {
    /// How many entities.
    pub fn len(&self) -> usize {
        self.ships.len() + self.bodies.len() + self.stations.len() + self.jumpgates.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entity, or replaces the one with its id.
    pub fn insert(&mut self, entity: Entity) {
        match entity {
            Entity::Ship(id, state) => drop(self.ships.insert(id, state)),
            Entity::Body(name, state) => drop(self.bodies.insert(name, state)),
            Entity::Station(id, state) => drop(self.stations.insert(id, state)),
            Entity::Jumpgate(id, state) => drop(self.jumpgates.insert(id, state)),
        }
    }

    /// Applies a queued change. A change of a ship that is not there changes nothing.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::ShipSpawned { ship_id, state } => drop(self.ships.insert(*ship_id, state.clone())),
            Change::ShipMoved { ship_id, motion } => {
                if let Some(ship) = self.ships.get_mut(ship_id) {
                    motion.apply(ship);
                }
            }
            Change::ShipRemoved { ship_id } => drop(self.ships.remove(ship_id)),
            Change::BodyPlaced { name, state } => drop(self.bodies.insert(name.clone(), state.clone())),
            Change::BodyRemoved { name } => drop(self.bodies.remove(name)),
            Change::StationPlaced { station_id, state } => {
                drop(self.stations.insert(*station_id, state.clone()))
            }
            Change::StationRemoved { station_id } => drop(self.stations.remove(station_id)),
            Change::JumpgatePlaced { jumpgate_id, state } => {
                drop(self.jumpgates.insert(*jumpgate_id, state.clone()));
            }
            Change::JumpgateRemoved { jumpgate_id } => drop(self.jumpgates.remove(jumpgate_id)),
        }
    }

    /// Only the entities of a system.
    pub fn of_system(mut self, system: &SystemId) -> World {
        self.ships.retain(|_, ship| ship.system_id == *system);
        self.bodies.retain(|_, state| state.system_id == *system);
        self.stations.retain(|_, state| state.system_id == *system);
        self.jumpgates.retain(|_, state| state.system_id == *system);
        self
    }

    /// Refuses what no tick can store.
    pub(super) fn check(&self) -> Result<()> {
        if self.len() > ENTITIES_MAX {
            return Err(Error::TooMany { what: "entities", max: ENTITIES_MAX });
        }
        self.ships.values().try_for_each(|ship| ship.motion.check())?;
        let states = self.bodies.values().chain(self.stations.values()).chain(self.jumpgates.values());
        states.into_iter().try_for_each(|state| {
            check_vector("position", &state.position)?;
            check_vector("velocity", &state.velocity)
        })
    }

    /// All entities, those of a system together.
    pub(super) fn entities(&self) -> Vec<Entity> {
        let mut all: Vec<Entity> = Vec::with_capacity(self.len());
        all.extend(self.bodies.iter().map(|(name, state)| Entity::Body(name.clone(), state.clone())));
        all.extend(self.jumpgates.iter().map(|(id, state)| Entity::Jumpgate(*id, state.clone())));
        all.extend(self.ships.iter().map(|(id, state)| Entity::Ship(*id, state.clone())));
        all.extend(self.stations.iter().map(|(id, state)| Entity::Station(*id, state.clone())));
        // Stable: within a system the kinds stay together.
        all.sort_by(|one, other| one.system().cmp(other.system()));
        all
    }
}

/// In which chunks each system is, for entities in their order; empty if there are too many systems.
pub(super) fn chunks_of_systems(entities: &[Entity], per_chunk: usize) -> Vec<SystemChunks> {
    let mut systems: Vec<SystemChunks> = Vec::new();
    for (index, entity) in entities.iter().enumerate() {
        let chunk = (index / per_chunk) as i64;
        let name = entity.system().0.as_str();
        if let Some(last) = systems.last_mut().filter(|last| last.system == name) {
            last.last = chunk;
            continue;
        }
        if systems.len() == SYSTEMS_IN_HEAD_MAX {
            return Vec::new();
        }
        systems.push(SystemChunks::new(name.to_owned(), chunk, chunk));
    }
    systems
}
