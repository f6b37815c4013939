//! Monsters: creatures in a field, with ids, damage, status effects, cooldowns and drop timers.
//!
//! Promises:
//! 1. A hit is never lost and never counted twice. Exactly one caller learns that its hit killed.
//! 2. The id of a living monster is never assigned again. A released id is released once.
//! 3. Spawn, move and removal are atomic: record, index of the field, cooldowns, drop timer, deadlines, id.
//! 4. A tick and a drop are handed to exactly one caller among all processes, and survive a restart.
//! 5. This also holds while a service in another language writes the same keys. Only the auxiliary indexes
//!    under `ember:` learn of its writes later, from [`Monsters::sweep`].

mod error;
pub mod limits;
pub mod model;
#[cfg(feature = "openapi")]
mod openapi;
pub mod rules;
mod schema;
mod service;

pub use error::{Error, Result};
pub use model::{
    DamageEntries, DamageEntry, DropTimer, Monster, MonsterId, SkillId, SourceType, StatusEffect, Statuses,
};
pub use rules::{EffectRequest, Healing, Hit, ManaUse, PoisonRule, Position, Tick};
pub use schema::{
    ByField, DROP_TIMER, DROP_TIMERS, MONSTER, MONSTER_COOLDOWN, MONSTER_COOLDOWNS, MONSTER_EFFECTS,
    MONSTER_ID_FREE, MONSTER_ID_NEXT, MONSTER_ID_RESTING, MONSTER_MAP, field_key, schema,
};
pub use service::{
    AppliedEffect, DropDue, DropTimerRequest, Due, EffectsRun, FieldDestruction, Monsters, SpawnRequest,
    Sweep, SweepReport, TeardownReport,
};
