//! Ships: what they are, what moves them, and what a tick changes of them.

use super::fields::{Fields, Pairs, number_text, text_of};
use super::{
    AttitudeMode, DecimalText, PlayerId, Quaternion, ShipClass, ShipId, SystemId, TargetType, Vector,
};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::NAME_BYTES_MAX;
use crate::world::word_problem;
use emberkeep_hot as hot;
use serde::{Deserialize, Serialize};

/// The names of a ship's fields.
pub(crate) mod names {
    pub(crate) const PLAYER_ID: &str = "player_id";
    pub(crate) const NAME: &str = "name";
    pub(crate) const SHIP_CLASS: &str = "ship_class";
    pub(crate) const POSITION: &str = "position";
    pub(crate) const VELOCITY: &str = "velocity";
    pub(crate) const ATTITUDE: &str = "attitude";
    pub(crate) const ANGULAR_VELOCITY: &str = "angular_velocity";
    pub(crate) const ROTATION_INPUT: &str = "rotation_input";
    pub(crate) const THRUST_LEVEL: &str = "thrust_level";
    pub(crate) const ATTITUDE_HOLD: &str = "attitude_hold";
    pub(crate) const ATTITUDE_MODE: &str = "attitude_mode";
    pub(crate) const ATTITUDE_TARGET: [&str; 4] =
        ["attitude_target_w", "attitude_target_x", "attitude_target_y", "attitude_target_z"];
    pub(crate) const ATTITUDE_TARGET_ID: &str = "attitude_target_id";
    pub(crate) const ATTITUDE_TARGET_TYPE: &str = "attitude_target_type";
    pub(crate) const FUEL: &str = "fuel";
    pub(crate) const FUEL_CAPACITY: &str = "fuel_capacity";
    pub(crate) const DRY_MASS: &str = "dry_mass";
    pub(crate) const WHEEL_MOMENTUM: &str = "wheel_momentum";
    pub(crate) const SYSTEM_ID: &str = "system_id";
    /// Our own: the tick of which the tick fields are.
    pub(crate) const TICK: &str = "ember:tick";
    /// Our own: the number of the ship among all that were spawned.
    pub(crate) const SPAWN: &str = "ember:spawn";
}

/// What a tick changes of a ship.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Motion {
    /// Where it is, in metres.
    pub position: Vector,
    /// In metres per second.
    pub velocity: Vector,
    /// Where it points.
    pub attitude: Quaternion,
    /// In radians per second.
    pub angular_velocity: Vector,
    /// Fuel left, in kg.
    pub fuel: f64,
    /// Momentum of its reaction wheels, in newton metre seconds.
    pub wheel_momentum: Vector,
}

/// What a player asks of a ship.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Controls {
    /// Pitch, yaw and roll, each from -1 to 1.
    pub rotation_input: Vector,
    /// From 0 to 1.
    pub thrust_level: f64,
    /// Whether rotation is damped.
    pub attitude_hold: bool,
    /// What the attitude control does.
    pub attitude_mode: AttitudeMode,
    /// The attitude that is aimed at.
    pub attitude_target: Option<Quaternion>,
    /// What the attitude is directed at: the name of a body, an id, or the key of a Lagrange point.
    pub attitude_target_id: Option<String>,
    /// The kind of the target.
    pub attitude_target_type: Option<TargetType>,
}

/// A ship.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ship {
    /// Its id, as in the key.
    pub ship_id: ShipId,
    /// Whose it is.
    pub player_id: PlayerId,
    /// What players see.
    pub name: String,
    /// Its class.
    pub ship_class: ShipClass,
    /// What ticks change.
    #[serde(flatten)]
    pub motion: Motion,
    /// What its player asks of it.
    #[serde(flatten)]
    pub controls: Controls,
    /// The most fuel, in kg.
    pub fuel_capacity: f64,
    /// Mass without fuel, in kg.
    pub dry_mass: f64,
    /// The star system in which it is.
    pub system_id: SystemId,
    /// The tick of which [`motion`](Self::motion) is: at most one ahead of `game:tick`. `None` = another program wrote it.
    pub tick: Option<i64>,
    /// Its number among all that were spawned; 0 = another program spawned it.
    pub spawn_number: i64,
}

/// A ship that is to be spawned.
#[derive(Clone, Debug, PartialEq)]
pub struct NewShip {
    /// Its id.
    pub ship_id: ShipId,
    /// Whose it is.
    pub player_id: PlayerId,
    /// 1 to 64 bytes; by default the player's name.
    pub name: String,
    /// Its class.
    pub ship_class: ShipClass,
    /// Where it begins. The fuel is at most the capacity.
    pub motion: Motion,
    /// The most fuel, in kg; `None` = that of its class.
    pub fuel_capacity: Option<f64>,
    /// Mass without fuel, in kg; `None` = that of its class.
    pub dry_mass: Option<f64>,
    /// The star system.
    pub system_id: SystemId,
}

impl ShipClass {
    /// The most fuel of a ship that names none, in kg.
    pub fn fuel_capacity(self) -> f64 {
        match self {
            ShipClass::FastFrigate => 30_000.0,
            ShipClass::CargoHauler => 120_000.0,
        }
    }

    /// The mass without fuel of a ship that names none, in kg.
    pub fn dry_mass(self) -> f64 {
        match self {
            ShipClass::FastFrigate => 10_000.0,
            ShipClass::CargoHauler => 80_000.0,
        }
    }
}

impl NewShip {
    /// A ship of the default class at rest in Sol, with full tanks.
    pub fn new(ship_id: ShipId, player_id: PlayerId, name: impl Into<String>) -> NewShip {
        let ship_class = ShipClass::default();
        let motion = Motion { fuel: ship_class.fuel_capacity(), ..Motion::default() };
        NewShip {
            ship_id,
            player_id,
            name: name.into(),
            ship_class,
            motion,
            fuel_capacity: None,
            dry_mass: None,
            system_id: SystemId::sol(),
        }
    }

    /// The same ship with another class and full tanks.
    pub fn of_class(mut self, ship_class: ShipClass) -> NewShip {
        self.ship_class = ship_class;
        self.motion.fuel = self.fuel_capacity.unwrap_or(ship_class.fuel_capacity());
        self
    }

    /// Refuses what no ship can have.
    pub(crate) fn check(&self) -> Result<()> {
        check_name("ship name", &self.name)?;
        let capacity = self.fuel_capacity.unwrap_or(self.ship_class.fuel_capacity());
        let dry_mass = self.dry_mass.unwrap_or(self.ship_class.dry_mass());
        check_positive("fuel capacity", capacity)?;
        check_positive("dry mass", dry_mass)?;
        self.motion.check()?;
        check_fuel(self.motion.fuel, capacity)
    }

    /// All fields of the hash.
    pub(crate) fn pairs(&self, spawn_number: i64, tick: i64) -> hot::Result<Pairs> {
        let class = self.ship_class;
        let mut pairs = self.motion.pairs(tick)?;
        pairs.extend(Controls::default().pairs()?);
        let number = |what, value: Option<f64>, default| number_text(what, value.unwrap_or(default));
        for (field, text) in [
            (names::PLAYER_ID, self.player_id.to_string()),
            (names::NAME, self.name.clone()),
            (names::SHIP_CLASS, class.to_string()),
            (names::FUEL_CAPACITY, number("fuel capacity", self.fuel_capacity, class.fuel_capacity())?),
            (names::DRY_MASS, number("dry mass", self.dry_mass, class.dry_mass())?),
            (names::SYSTEM_ID, self.system_id.to_string()),
            (names::SPAWN, spawn_number.to_string()),
        ] {
            pairs.push((field.to_owned(), text));
        }
        Ok(pairs)
    }
}

impl Motion {
    /// Refuses NaN, infinities and negative fuel.
    pub(crate) fn check(&self) -> Result<()> {
        let Motion { position, velocity, attitude, angular_velocity, fuel, wheel_momentum } = self;
        for (what, vector) in [
            ("position", position),
            ("velocity", velocity),
            ("angular velocity", angular_velocity),
            ("wheel momentum", wheel_momentum),
        ] {
            check_vector(what, vector)?;
        }
        if !attitude.is_finite() {
            return Err(Error::invalid("attitude", "not finite, expected four finite numbers"));
        }
        check_fuel(*fuel, f64::MAX)
    }

    /// The tick fields of the hash, with the tick that they are of.
    pub(crate) fn pairs(&self, tick: i64) -> hot::Result<Pairs> {
        let vector = |what, vector| text_of::<Vector>(what, vector);
        Ok(vec![
            (names::POSITION.to_owned(), vector("position", &self.position)?),
            (names::VELOCITY.to_owned(), vector("velocity", &self.velocity)?),
            (names::ATTITUDE.to_owned(), text_of::<Quaternion>("attitude", &self.attitude)?),
            (names::ANGULAR_VELOCITY.to_owned(), vector("angular velocity", &self.angular_velocity)?),
            (names::FUEL.to_owned(), number_text("fuel", self.fuel)?),
            (names::WHEEL_MOMENTUM.to_owned(), vector("wheel momentum", &self.wheel_momentum)?),
            (names::TICK.to_owned(), tick.to_string()),
        ])
    }
}

impl Controls {
    /// Refuses what is out of range, and target modes without a target.
    pub(crate) fn check(&self) -> Result<()> {
        let Vector { x, y, z } = self.rotation_input;
        if ![x, y, z].iter().all(|input| (-1.0..=1.0).contains(input)) {
            return Err(Error::invalid("rotation input", format!("{:?}, expected -1 to 1 each", [x, y, z])));
        }
        if !(0.0..=1.0).contains(&self.thrust_level) {
            return Err(Error::invalid("thrust level", format!("{}, expected 0 to 1", self.thrust_level)));
        }
        if self.attitude_target.is_some_and(|target| !target.is_finite()) {
            return Err(Error::invalid("attitude target", "not finite, expected four finite numbers"));
        }
        if let Some(id) = &self.attitude_target_id {
            check_name("attitude target id", id)?;
        }
        let has_target = self.attitude_target_id.is_some() && self.attitude_target_type.is_some();
        if self.attitude_mode.needs_target() && !has_target {
            let problem = format!("the mode {} needs the target's id and type", self.attitude_mode);
            return Err(Error::invalid("attitude mode", problem));
        }
        Ok(())
    }

    /// The fields that are set.
    pub(crate) fn pairs(&self) -> hot::Result<Pairs> {
        let mut pairs = vec![
            (names::ROTATION_INPUT.to_owned(), text_of::<Vector>("rotation input", &self.rotation_input)?),
            (names::THRUST_LEVEL.to_owned(), text_of::<DecimalText>("thrust level", &self.thrust_level)?),
            (names::ATTITUDE_HOLD.to_owned(), self.attitude_hold.to_string()),
            (names::ATTITUDE_MODE.to_owned(), self.attitude_mode.to_string()),
        ];
        if let Some(target) = self.attitude_target {
            for (field, number) in names::ATTITUDE_TARGET.into_iter().zip(<[f64; 4]>::from(target)) {
                pairs.push((field.to_owned(), number_text("attitude target", number)?));
            }
        }
        let texts = [
            (names::ATTITUDE_TARGET_ID, self.attitude_target_id.clone()),
            (names::ATTITUDE_TARGET_TYPE, self.attitude_target_type.map(|kind| kind.to_string())),
        ];
        pairs.extend(texts.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text?))));
        Ok(pairs)
    }

    /// The fields that are removed, because the controls have no such value.
    pub(crate) fn absent(&self) -> Vec<String> {
        let mut absent: Vec<&str> = Vec::new();
        if self.attitude_target.is_none() {
            absent.extend(names::ATTITUDE_TARGET);
        }
        if self.attitude_target_id.is_none() {
            absent.push(names::ATTITUDE_TARGET_ID);
        }
        if self.attitude_target_type.is_none() {
            absent.push(names::ATTITUDE_TARGET_TYPE);
        }
        absent.into_iter().map(str::to_owned).collect()
    }

    fn read(fields: &Fields<'_>) -> hot::Result<Controls> {
        let mode = fields.parsed(names::ATTITUDE_MODE, "an attitude mode", AttitudeMode::parse)?;
        let kind = fields.parsed(names::ATTITUDE_TARGET_TYPE, "a target type", TargetType::parse)?;
        let [w, x, y, z] = names::ATTITUDE_TARGET;
        let attitude_target = match fields.text(w) {
            None => None,
            Some(_) => Some(Quaternion::new(
                fields.number(w, 1.0)?,
                fields.number(x, 0.0)?,
                fields.number(y, 0.0)?,
                fields.number(z, 0.0)?,
            )),
        };
        Ok(Controls {
            rotation_input: fields.vector(names::ROTATION_INPUT)?,
            thrust_level: fields.number(names::THRUST_LEVEL, 0.0)?,
            attitude_hold: fields.flag(names::ATTITUDE_HOLD, false)?,
            attitude_mode: mode.unwrap_or_default(),
            attitude_target,
            attitude_target_id: fields.text(names::ATTITUDE_TARGET_ID).map(str::to_owned),
            attitude_target_type: kind,
        })
    }
}

impl Ship {
    /// The ship of a hash's fields.
    pub(crate) fn read(ship_id: ShipId, fields: &Fields<'_>) -> hot::Result<Ship> {
        let class = fields.parsed(names::SHIP_CLASS, "a ship class", ShipClass::parse)?.unwrap_or_default();
        let tick = fields.text(names::TICK).map(|_| fields.integer(names::TICK, 0)).transpose()?;
        Ok(Ship {
            ship_id,
            player_id: fields.part(names::PLAYER_ID)?.unwrap_or(PlayerId(uuid::Uuid::nil())),
            name: fields.text_or(names::NAME, ""),
            ship_class: class,
            motion: Motion {
                position: fields.vector(names::POSITION)?,
                velocity: fields.vector(names::VELOCITY)?,
                attitude: fields.quaternion(names::ATTITUDE)?,
                angular_velocity: fields.vector(names::ANGULAR_VELOCITY)?,
                fuel: fields.number(names::FUEL, 0.0)?,
                wheel_momentum: fields.vector(names::WHEEL_MOMENTUM)?,
            },
            controls: Controls::read(fields)?,
            fuel_capacity: fields.number(names::FUEL_CAPACITY, class.fuel_capacity())?,
            dry_mass: fields.number(names::DRY_MASS, class.dry_mass())?,
            system_id: fields.part(names::SYSTEM_ID)?.unwrap_or_default(),
            tick,
            spawn_number: fields.integer(names::SPAWN, 0)?,
        })
    }
}

/// Refuses a name that is empty, longer than 64 bytes, or has control characters.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::invalid(what, format!("empty, expected 1 to {NAME_BYTES_MAX} bytes")));
    }
    match word_problem(name, NAME_BYTES_MAX) {
        Some(problem) => Err(Error::invalid(what, problem)),
        None => Ok(()),
    }
}

/// Refuses vectors with NaN or infinities.
pub(crate) fn check_vector(what: &'static str, vector: &Vector) -> Result<()> {
    if vector.is_finite() {
        return Ok(());
    }
    Err(Error::invalid(what, "not finite, expected three finite numbers"))
}

/// Refuses what is not a finite number above 0.
pub(crate) fn check_positive(what: &'static str, number: f64) -> Result<()> {
    if number.is_finite() && number > 0.0 {
        return Ok(());
    }
    Err(Error::invalid(what, format!("{number}, expected a finite number above 0")))
}

/// Refuses fuel below 0 and above the capacity.
pub(crate) fn check_fuel(fuel: f64, capacity: f64) -> Result<()> {
    if (0.0..=capacity).contains(&fuel) {
        return Ok(());
    }
    Err(Error::invalid("fuel", format!("{fuel} kg, expected 0 to {capacity}")))
}
