//! The stored types of the monsters. Their JSON names are those that other services read and write.

mod damage;
mod effect;
mod monster;
mod timer;

pub use damage::{DamageEntries, DamageEntry};
pub use effect::{SourceType, StatusEffect, Statuses};
pub use monster::{Monster, MonsterId, SkillId};
pub use timer::DropTimer;
