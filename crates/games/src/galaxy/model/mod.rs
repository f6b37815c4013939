//! What Galaxy stores: ids, vectors, game time, and its entities with their documented stored forms.
//!
//! Entities are hashes of texts. A field that is absent reads as its default; a text that is not of its type is
//! [`Corrupt`](emberkeep_hot::Error::Corrupt), with key and field named. Fields that are not documented are left alone.

mod body;
mod fields;
mod game_time;
mod ids;
mod modes;
mod ship;
mod station;
mod texts;
mod vectors;

pub use body::Body;
pub(crate) use body::body_motion;
pub(crate) use fields::{Fields, Pairs};
pub use game_time::GameTime;
pub use ids::{BodyName, JumpgateId, PlayerId, RuleId, ShipId, StationId, SystemId};
pub use modes::{AttitudeMode, EntityKind, RuleMode, ShipClass, TargetType};
pub(crate) use ship::names as ship_fields;
pub use ship::{Controls, Motion, NewShip, Ship};
pub(crate) use ship::{check_fuel, check_name, check_vector};
pub(crate) use station::structure_motion;
pub use station::{Jumpgate, Station};
pub use texts::{DecimalText, TrueFalse};
pub use vectors::{Quaternion, Vector};
