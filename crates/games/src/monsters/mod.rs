//! Monsters: instances on a map, their ids, who hurt them, what weighs on them, what they drop.
//!
//! Promises:
//! 1. A hit is never lost and never counted twice; exactly one caller sees that it killed.
//! 2. The id of a living monster is never handed out, and one that was released is released once.
//! 3. A monster comes, moves and goes whole: record, index of its field, cooldowns, drop timer, deadlines, id.
//! 4. A tick of an effect and a drop are handed to exactly one caller, of all processes, and survive a restart.
//! 5. Each of these also holds beside a service in another language that writes the same keys. Only the hints under
//!    `ember:` know nothing of what it wrote, until [`Monsters::sweep`] has seen it.

mod error;
pub mod limits;
pub mod model;
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
