//! Monsters: instances on a map, their ids, and who hurt them.
//!
//! Promises: a hit is never lost and never counted twice; exactly one caller sees that it killed; the id of a
//! living monster is never handed out; a monster and its place in the field's index come and go together.

pub mod model;
pub mod rules;
mod schema;
mod service;

pub use model::{DamageEntry, Monster, MonsterId, SourceType, StatusEffect, Statuses};
pub use rules::Hit;
pub use schema::{MONSTER, MONSTER_ID_FREE, MONSTER_ID_NEXT, MONSTER_MAP, field_key, schema};
pub use service::{Error, Monsters, Result, SpawnRequest};
