//! The rules of the monsters: pure functions on stored types.

mod damage;
mod drops;
mod effects;
mod life;
mod ticks;

pub use super::limits::DAMAGE_ENTRIES_MAX;
pub use damage::{Hit, damage_leader, drain, merge_oldest, strike, totals};
pub use drops::{drop_if_due, next_drop_ms, record_hit};
pub use effects::{EffectRequest, EffectSelector, POISON, VENOM, apply, cancel};
pub use life::{Healing, ManaUse, Position, control, heal, living, release_control, relocate, use_mp, walk};
pub use ticks::{Advance, PoisonRule, Tick, advance, next_due_ms};

#[cfg(test)]
mod fixture;
