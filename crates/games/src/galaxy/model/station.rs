//! Stations and jump gates. Their vectors are stored as one field per coordinate; their attitude never changes.

use super::fields::{Fields, Pairs, number_text};
use super::ship::{check_name, check_positive, check_vector, names};
use super::{JumpgateId, StationId, SystemId, Vector};
use crate::galaxy::error::Result;
use emberkeep_hot as hot;
use serde::{Deserialize, Serialize};

const POSITION: [&str; 3] = ["position_x", "position_y", "position_z"];
const VELOCITY: [&str; 3] = ["velocity_x", "velocity_y", "velocity_z"];
const ATTITUDE: [(&str, &str); 4] =
    [("attitude_w", "1"), ("attitude_x", "0"), ("attitude_y", "0"), ("attitude_z", "0")];
const MASS: &str = "mass";
const RADIUS: &str = "radius";
const PARENT_BODY: &str = "parent_body";

/// Declares a kind of entity with the fields of a station.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident, $id:ty, $id_field:ident, $mass:literal, $radius:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            /// Its id, as in the key.
            pub $id_field: $id,
            /// What players see.
            pub name: String,
            /// Where it is, in metres.
            pub position: Vector,
            /// In metres per second.
            pub velocity: Vector,
            /// In kg.
            pub mass: f64,
            /// How near others may come, in metres.
            pub radius: f64,
            /// The body that it belongs to.
            pub parent_body: String,
            /// Its star system.
            pub system_id: SystemId,
        }


        impl $name {
            /// The mass if none is named, in kg.
            pub const MASS: f64 = $mass;
            /// The radius if none is named, in metres.
            pub const RADIUS: f64 = $radius;

            /// One at rest in Sol, with the default mass and radius.
            pub fn new($id_field: $id, name: impl Into<String>, parent_body: impl Into<String>) -> $name {
                $name {
                    $id_field,
                    name: name.into(),
                    position: Vector::ZERO,
                    velocity: Vector::ZERO,
                    mass: Self::MASS,
                    radius: Self::RADIUS,
                    parent_body: parent_body.into(),
                    system_id: SystemId::sol(),
                }
            }

            pub(crate) fn check(&self) -> Result<()> {
                check_name("name", &self.name)?;
                check_name("parent body", &self.parent_body)?;
                check_vector("position", &self.position)?;
                check_vector("velocity", &self.velocity)?;
                check_positive("mass", self.mass)?;
                check_positive("radius", self.radius)
            }

            /// All fields of the hash.
            pub(crate) fn pairs(&self) -> hot::Result<Pairs> {
                let mut pairs = structure_motion(&self.position, &self.velocity)?;
                pairs.extend(ATTITUDE.map(|(field, text)| (field.to_owned(), text.to_owned())));
                for (field, text) in [
                    (stringify!($id_field), self.$id_field.to_string()),
                    (names::NAME, self.name.clone()),
                    (MASS, number_text(MASS, self.mass)?),
                    (RADIUS, number_text(RADIUS, self.radius)?),
                    (PARENT_BODY, self.parent_body.clone()),
                    (names::SYSTEM_ID, self.system_id.to_string()),
                ] {
                    pairs.push((field.to_owned(), text));
                }
                Ok(pairs)
            }

            pub(crate) fn read($id_field: $id, fields: &Fields<'_>) -> hot::Result<$name> {
                Ok($name {
                    $id_field,
                    name: fields.text_or(names::NAME, ""),
                    position: split(fields, POSITION)?,
                    velocity: split(fields, VELOCITY)?,
                    mass: fields.number(MASS, Self::MASS)?,
                    radius: fields.number(RADIUS, Self::RADIUS)?,
                    parent_body: fields.text_or(PARENT_BODY, ""),
                    system_id: fields.part(names::SYSTEM_ID)?.unwrap_or_default(),
                })
            }
        }
    )* };
}

structures! {
    /// A station.
    Station, StationId, station_id, 420_000.0, 50.0;
    /// A jump gate.
    Jumpgate, JumpgateId, jumpgate_id, 500_000.0, 150.0;
}

/// The fields that a tick changes of a station or a jump gate.
pub(crate) fn structure_motion(position: &Vector, velocity: &Vector) -> hot::Result<Pairs> {
    let mut pairs = Pairs::with_capacity(6);
    for (fields, vector) in [(POSITION, position), (VELOCITY, velocity)] {
        for (field, number) in fields.into_iter().zip(<[f64; 3]>::from(*vector)) {
            pairs.push((field.to_owned(), number_text("coordinate", number)?));
        }
    }
    Ok(pairs)
}

fn split(fields: &Fields<'_>, [x, y, z]: [&str; 3]) -> hot::Result<Vector> {
    Ok(Vector::new(fields.number(x, 0.0)?, fields.number(y, 0.0)?, fields.number(z, 0.0)?))
}
