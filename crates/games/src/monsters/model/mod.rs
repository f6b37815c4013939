//! What is stored of monsters. The JSON names are those that other services read and write.

mod effect;
mod monster;
mod timer;

pub use effect::{SourceType, StatusEffect, Statuses};
pub use monster::{DamageEntry, Monster, MonsterId, SkillId};
pub use timer::DropTimer;
