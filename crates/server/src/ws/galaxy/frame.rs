//! A tick of one star system as messages: as a whole, and as what changed since the frame before.

use crate::ws::server_message::envelope;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::galaxy::{
    BodyName, GameTime, JumpgateId, PlayerId, Quaternion, ShipId, ShipState, StationId, StructureState,
    SystemId, TickView, Vector, World,
};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Generation and tick.
pub(super) type Place = (i64, i64);

/// One tick of one system.
pub(super) struct Frame {
    pub(super) place: Place,
    system: SystemId,
    time: GameTime,
    world: World,
    /// The frame before, of the same generation, and what changed since.
    delta: Option<(Place, Utf8Bytes)>,
    /// The whole tick, once it is needed.
    state: OnceLock<Utf8Bytes>,
}

/// What a watcher is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    State(Utf8Bytes),
    Delta(Utf8Bytes),
}

impl Frame {
    pub(super) fn new(view: &TickView, system: SystemId, world: World, before: Option<&Frame>) -> Frame {
        let place = (view.generation, view.tick);
        let mut frame = Frame { place, system, time: view.time, world, delta: None, state: OnceLock::new() };
        let before = before.filter(|before| before.place.0 == place.0 && before.place.1 < place.1);
        frame.delta = before.map(|before| (before.place, frame.delta_since(before)));
        frame
    }

    /// What a watcher needs that was last sent this place; `None` if it has this frame.
    pub(super) fn message(&self, last: Option<Place>) -> Option<Sent> {
        if last == Some(self.place) {
            return None;
        }
        match &self.delta {
            Some((from, delta)) if last == Some(*from) => Some(Sent::Delta(delta.clone())),
            _ => Some(Sent::State(self.state.get_or_init(|| self.whole()).clone())),
        }
    }

    fn whole(&self) -> Utf8Bytes {
        let payload = StatePayload {
            generation: self.place.0,
            tick: self.place.1,
            time: self.time.to_string(),
            system_id: &self.system,
            world: &self.world,
        };
        envelope("STATE", None, payload)
    }

    fn delta_since(&self, before: &Frame) -> Utf8Bytes {
        let (old, new) = (&before.world, &self.world);
        let payload = DeltaPayload {
            generation: self.place.0,
            tick: self.place.1,
            from_tick: before.place.1,
            time: self.time.to_string(),
            system_id: &self.system,
            ships: Changes { old: &old.ships, new: &new.ships },
            bodies: Changes { old: &old.bodies, new: &new.bodies },
            stations: Changes { old: &old.stations, new: &new.stations },
            jumpgates: Changes { old: &old.jumpgates, new: &new.jumpgates },
            removed: Removed {
                ships: gone(&old.ships, &new.ships),
                bodies: gone(&old.bodies, &new.bodies),
                stations: gone(&old.stations, &new.stations),
                jumpgates: gone(&old.jumpgates, &new.jumpgates),
            },
        };
        envelope("DELTA", None, payload)
    }
}

#[derive(Serialize)]
struct StatePayload<'a> {
    generation: i64,
    tick: i64,
    time: String,
    system_id: &'a SystemId,
    #[serde(flatten)]
    world: &'a World,
}

#[derive(Serialize)]
struct DeltaPayload<'a> {
    generation: i64,
    tick: i64,
    from_tick: i64,
    time: String,
    system_id: &'a SystemId,
    ships: Changes<'a, ShipId, ShipState>,
    bodies: Changes<'a, BodyName, StructureState>,
    stations: Changes<'a, StationId, StructureState>,
    jumpgates: Changes<'a, JumpgateId, StructureState>,
    removed: Removed<'a>,
}

/// Entities that are new or have changed, with the fields that have.
struct Changes<'a, K, V> {
    old: &'a BTreeMap<K, V>,
    new: &'a BTreeMap<K, V>,
}

impl<K: Ord + Serialize, V: Differs> Serialize for Changes<'_, K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let changed = self.new.iter().filter_map(|(id, new)| {
            let old = self.old.get(id);
            (old != Some(new)).then(|| (id, new.change(old)))
        });
        serializer.collect_map(changed)
    }
}

/// What has fields that may change.
trait Differs: PartialEq {
    type Change<'a>: Serialize
    where
        Self: 'a;

    fn change<'a>(&'a self, old: Option<&Self>) -> Self::Change<'a>;
}

/// The new value, if it is another one.
fn other<'a, T: PartialEq>(old: Option<&T>, new: &'a T) -> Option<&'a T> {
    (old != Some(new)).then_some(new)
}

/// The fields of a ship that have changed.
#[derive(Serialize)]
struct ShipChange<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    player_id: Option<&'a PlayerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_id: Option<&'a SystemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<&'a Vector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    velocity: Option<&'a Vector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attitude: Option<&'a Quaternion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    angular_velocity: Option<&'a Vector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fuel: Option<&'a f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wheel_momentum: Option<&'a Vector>,
}

impl Differs for ShipState {
    type Change<'a> = ShipChange<'a>;

    fn change<'a>(&'a self, old: Option<&ShipState>) -> ShipChange<'a> {
        let (new, was) = (&self.motion, old.map(|old| &old.motion));
        ShipChange {
            player_id: other(old.map(|old| &old.player_id), &self.player_id),
            system_id: other(old.map(|old| &old.system_id), &self.system_id),
            position: other(was.map(|was| &was.position), &new.position),
            velocity: other(was.map(|was| &was.velocity), &new.velocity),
            attitude: other(was.map(|was| &was.attitude), &new.attitude),
            angular_velocity: other(was.map(|was| &was.angular_velocity), &new.angular_velocity),
            fuel: other(was.map(|was| &was.fuel), &new.fuel),
            wheel_momentum: other(was.map(|was| &was.wheel_momentum), &new.wheel_momentum),
        }
    }
}

/// The fields of a body, a station or a jump gate that have changed.
#[derive(Serialize)]
struct PlaceChange<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_id: Option<&'a SystemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<&'a Vector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    velocity: Option<&'a Vector>,
}

impl Differs for StructureState {
    type Change<'a> = PlaceChange<'a>;

    fn change<'a>(&'a self, old: Option<&StructureState>) -> PlaceChange<'a> {
        PlaceChange {
            system_id: other(old.map(|old| &old.system_id), &self.system_id),
            position: other(old.map(|old| &old.position), &self.position),
            velocity: other(old.map(|old| &old.velocity), &self.velocity),
        }
    }
}

/// Entities that are gone, or in another system.
#[derive(Serialize)]
struct Removed<'a> {
    ships: Vec<&'a ShipId>,
    bodies: Vec<&'a BodyName>,
    stations: Vec<&'a StationId>,
    jumpgates: Vec<&'a JumpgateId>,
}

fn gone<'a, K: Ord, V>(old: &'a BTreeMap<K, V>, new: &BTreeMap<K, V>) -> Vec<&'a K> {
    old.keys().filter(|id| !new.contains_key(*id)).collect()
}

/// The worlds of some systems of a tick, in one pass.
pub(super) fn split(world: &World, systems: &[SystemId]) -> BTreeMap<SystemId, World> {
    let mut parts: BTreeMap<SystemId, World> =
        systems.iter().map(|system| (system.clone(), World::default())).collect();
    for (id, ship) in &world.ships {
        if let Some(part) = parts.get_mut(&ship.system_id) {
            part.ships.insert(*id, ship.clone());
        }
    }
    for (name, body) in &world.bodies {
        if let Some(part) = parts.get_mut(&body.system_id) {
            part.bodies.insert(name.clone(), body.clone());
        }
    }
    for (id, station) in &world.stations {
        if let Some(part) = parts.get_mut(&station.system_id) {
            part.stations.insert(*id, station.clone());
        }
    }
    for (id, gate) in &world.jumpgates {
        if let Some(part) = parts.get_mut(&gate.system_id) {
            part.jumpgates.insert(*id, gate.clone());
        }
    }
    parts
}
