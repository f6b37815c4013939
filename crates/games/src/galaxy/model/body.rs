//! Celestial bodies.

use super::fields::{Fields, Pairs, text_of};
use super::ship::{check_vector, names};
use super::{BodyName, SystemId, Vector};
use crate::galaxy::error::Result;
use emberkeep_hot as hot;
use serde::{Deserialize, Serialize};

/// A celestial body. Mass, radius and colour are settings of the game and not stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// Its name, as in the key.
    pub name: BodyName,
    /// Where it is, in metres.
    pub position: Vector,
    /// In metres per second.
    pub velocity: Vector,
    /// Its star system.
    pub system_id: SystemId,
}

impl Body {
    pub(crate) fn check(&self) -> Result<()> {
        check_vector("position", &self.position)?;
        check_vector("velocity", &self.velocity)
    }

    /// All fields of the hash.
    pub(crate) fn pairs(&self) -> hot::Result<Pairs> {
        let mut pairs = body_motion(&self.position, &self.velocity)?;
        pairs.push((names::SYSTEM_ID.to_owned(), self.system_id.to_string()));
        Ok(pairs)
    }

    pub(crate) fn read(name: BodyName, fields: &Fields<'_>) -> hot::Result<Body> {
        Ok(Body {
            name,
            position: fields.vector(names::POSITION)?,
            velocity: fields.vector(names::VELOCITY)?,
            system_id: fields.part(names::SYSTEM_ID)?.unwrap_or_default(),
        })
    }
}

/// The fields that a tick changes of a body.
pub(crate) fn body_motion(position: &Vector, velocity: &Vector) -> hot::Result<Pairs> {
    Ok(vec![
        (names::POSITION.to_owned(), text_of::<Vector>("position", position)?),
        (names::VELOCITY.to_owned(), text_of::<Vector>("velocity", velocity)?),
    ])
}
