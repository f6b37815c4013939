//! What the star system begins with: its bodies, stations, jump gates and ships with their rules.

use super::orbit::{Motion as Place, Orbit};
use super::sky::Sky;
use super::vector::Vector;
use anyhow::Context;
use emberkeep::games::galaxy::{
    Body, BodyName, ClockChange, Error, GalaxyState, Jumpgate, JumpgateId, Motion, NewRule, NewShip,
    PlayerId, RuleMode, ShipClass, ShipId, Station, StationId, SystemId,
};
use emberkeep::schema::Name;
use std::f64::consts::TAU;
use uuid::Uuid;

/// Ticks per second, and seconds of game time in a second: orbits take minutes.
const TICK_RATE: f64 = 4.0;
const TIME_SCALE: f64 = 20.0;
/// Ships, and ships of one player.
const SHIPS: u32 = 240;
const SHIPS_PER_PLAYER: u32 = 4;
/// Ids of the demo: their kind and their number.
const SHIP_IDS: u128 = 0x0000_0000_0000_4000_8000_0001_0000_0000;
const PLAYER_IDS: u128 = 0x0000_0000_0000_4000_8000_0002_0000_0000;
const STATION_IDS: u128 = 0x0000_0000_0000_4000_8000_0003_0000_0000;
const GATE_IDS: u128 = 0x0000_0000_0000_4000_8000_0004_0000_0000;
/// Bodies that ships circle.
const HOSTS: [&str; 8] = ["Earth", "Luna", "Mars", "Jupiter", "Europa", "Titan", "Ceres", "Venus"];

/// A station or a gate on a circle about a body, in radii of it.
pub(super) struct Structure {
    name: &'static str,
    pub(super) parent: &'static str,
    radii: f64,
}

const STATIONS: [Structure; 6] = [
    Structure { name: "Highport", parent: "Earth", radii: 1.3 },
    Structure { name: "Tycho Yard", parent: "Luna", radii: 1.5 },
    Structure { name: "Deimos Dock", parent: "Mars", radii: 2.0 },
    Structure { name: "Galilei", parent: "Europa", radii: 1.6 },
    Structure { name: "Kraken Deep", parent: "Titan", radii: 1.8 },
    Structure { name: "Piazzi", parent: "Ceres", radii: 2.5 },
];

const GATES: [Structure; 2] = [
    Structure { name: "Inner Gate", parent: "Venus", radii: 6.0 },
    Structure { name: "Outer Gate", parent: "Neptune", radii: 5.0 },
];

impl Structure {
    /// Where it is at the end of the sky's tick, so many seconds after the epoch of its orbit.
    pub(super) fn place(&self, sky: &Sky, seconds: f64) -> Place {
        let parent = sky.body(self.parent).unwrap_or(0);
        let body = &sky.bodies()[parent];
        let orbit = Orbit::circle(body.radius * self.radii, self.radii);
        sky.motion(parent).plus(orbit.at(seconds, body.gravity))
    }
}

/// The stations with their ids.
pub(super) fn stations() -> impl Iterator<Item = (StationId, &'static Structure)> {
    STATIONS
        .iter()
        .zip(1..)
        .map(|(structure, number)| (StationId(Uuid::from_u128(STATION_IDS + number)), structure))
}

/// The jump gates with their ids.
pub(super) fn gates() -> impl Iterator<Item = (JumpgateId, &'static Structure)> {
    GATES
        .iter()
        .zip(1..)
        .map(|(structure, number)| (JumpgateId(Uuid::from_u128(GATE_IDS + number)), structure))
}

/// Creates everything. What an interrupted earlier start has created is left as it is.
pub(super) async fn populate(galaxy: &GalaxyState, sky: &Sky, seconds: f64) -> anyhow::Result<()> {
    let clock = ClockChange {
        tick_rate: Some(TICK_RATE),
        time_scale: Some(TIME_SCALE),
        time_sync: Some(false),
        ..ClockChange::default()
    };
    galaxy.tick_engine().set_clock(clock).await?;
    for (number, body) in sky.bodies().iter().enumerate() {
        create_body(galaxy, body.name, sky.motion(number)).await?;
    }
    for (id, structure) in stations() {
        let Place { position, velocity } = structure.place(sky, seconds);
        let station = Station::new(id, structure.name, structure.parent);
        let station = Station { position: position.into(), velocity: velocity.into(), ..station };
        if galaxy.station(&id).await?.is_none() {
            galaxy.physics().spawn_station(station).await?;
        }
    }
    for (id, structure) in gates() {
        let Place { position, velocity } = structure.place(sky, seconds);
        let gate = Jumpgate::new(id, structure.name, structure.parent);
        let gate = Jumpgate { position: position.into(), velocity: velocity.into(), ..gate };
        if galaxy.jumpgate(&id).await?.is_none() {
            galaxy.physics().spawn_jumpgate(gate).await?;
        }
    }
    for number in 0..SHIPS {
        let id = ShipId(Uuid::from_u128(SHIP_IDS + u128::from(number)));
        if galaxy.ship(&id).await?.is_none() {
            spawn(galaxy, sky, id, number).await?;
        }
    }
    Ok(())
}

async fn create_body(galaxy: &GalaxyState, name: &str, at: Place) -> anyhow::Result<()> {
    let name = BodyName(Name::new(name).context("the name of a body")?);
    if galaxy.body(&name).await?.is_some() {
        return Ok(());
    }
    let (position, velocity) = (at.position.into(), at.velocity.into());
    let body = Body { name, position, velocity, system_id: SystemId::sol() };
    Ok(galaxy.initializer().create_body(body).await?)
}

/// A ship on a low circle about one of the hosts, with the rules that every ship has.
async fn spawn(galaxy: &GalaxyState, sky: &Sky, id: ShipId, number: u32) -> anyhow::Result<()> {
    let host = HOSTS[number as usize % HOSTS.len()];
    let player = PlayerId(Uuid::from_u128(PLAYER_IDS + u128::from(number / SHIPS_PER_PLAYER)));
    let class = if number.is_multiple_of(3) { ShipClass::CargoHauler } else { ShipClass::FastFrigate };
    let mut ship = NewShip::new(id, player, format!("{host} {}", number + 1)).of_class(class);
    let (position, velocity) = low_orbit(sky, host);
    ship.motion = Motion { position: position.into(), velocity: velocity.into(), ..ship.motion };
    let capacity = class.fuel_capacity();
    match galaxy.physics().spawn_ship(ship).await {
        // An administrator deleted the player: its ships stay away.
        Err(Error::PlayerDeleted { .. }) => return Ok(()),
        result => result?,
    };
    for rule in rules(host, capacity) {
        galaxy.api_gateway().create_rule(player, id, rule).await?;
    }
    Ok(())
}

/// Somewhere on a low circle about a body.
pub(super) fn low_orbit(sky: &Sky, host: &str) -> (Vector, Vector) {
    let place = sky.body(host).unwrap_or(0);
    let body = &sky.bodies()[place];
    let circle = Orbit::circle(body.radius * (1.1 + 0.3 * fastrand::f64()), TAU * fastrand::f64());
    let orbit = Orbit { inclination: 0.5 * fastrand::f64(), node: TAU * fastrand::f64(), ..circle };
    let Place { position, velocity } = sky.motion(place).plus(orbit.at(0.0, body.gravity));
    (position, velocity)
}

/// A reserve of fuel, a floor, and a greeting for the station of the host.
fn rules(host: &str, fuel_capacity: f64) -> Vec<NewRule> {
    let rule = |id: &str, name: &str, mode, priority, condition: String, actions: &str| NewRule {
        rule_id: id.to_owned(),
        name: name.to_owned(),
        enabled: true,
        mode,
        priority,
        trigger_json: format!(r#"{{"conditions":[{condition}],"logic":"AND"}}"#),
        actions_json: format!("[{actions}]"),
    };
    let reserve = format!(r#"{{"field":"fuel","op":"<","value":{}}}"#, fuel_capacity / 10.0);
    let floor = r#"{"field":"altitude","op":"<","value":50000}"#.to_owned();
    let stop = r#"{"action":"set_thrust","level":0}"#;
    let up = r#"{"action":"transfer","altitude":400000}"#;
    let mut rules = vec![
        rule("reserve", "Keep a reserve of fuel", RuleMode::Continuous, 0, reserve, stop),
        rule("floor", "Climb before it is too low", RuleMode::Continuous, 1, floor, up),
    ];
    if let Some((id, _)) = stations().find(|(_, station)| station.parent == host) {
        let near = format!(r#"{{"field":"distance","op":"<","value":1500000,"args":{{"target":"{id}"}}}}"#);
        let greet = r#"{"action":"set_attitude","mode":"radial"}"#;
        rules.push(rule("station", "Show the belly to the station", RuleMode::Once, 50, near, greet));
    }
    rules
}
