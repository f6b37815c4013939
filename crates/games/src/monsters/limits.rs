//! Every bound of the monsters, units and qualifiers last.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Ids of monsters.
pub const IDS: RangeInclusive<i64> = 1_000_000_000..=2_000_000_000;

/// Entries that a monster remembers before the oldest are merged.
pub const DAMAGE_ENTRIES_MAX: usize = 512;
/// Entries that stay single when others are merged, so that merging is rare.
pub const DAMAGE_ENTRIES_KEPT: usize = DAMAGE_ENTRIES_MAX / 2;

/// Entries of 32 bits into which a wider stored one is split. A larger one was not written by any version: it is corrupt.
pub const DAMAGE_SPLIT_ENTRIES_MAX: usize = 256;
/// Entries into which all wider ones of a monster are split together.
pub const DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX: usize = 4 * DAMAGE_ENTRIES_MAX;

/// Effects that one monster bears at the same time.
pub const EFFECTS_MAX: usize = 64;
/// Statuses of one effect.
pub const STATUSES_MAX: usize = 16;
/// Longest name of a status.
pub const STATUS_NAME_BYTES_MAX: usize = 64;
/// Longest text that says where an effect came from.
pub const SOURCE_TYPE_BYTES_MAX: usize = 64;
/// VENOM effects that one monster bears at the same time.
pub const VENOMS_MAX: usize = 3;
/// What the level of a skill is taken from, where POISON takes a share of the full health.
pub const POISON_DIVISOR: u32 = 70;
/// Longest life of an effect.
pub const EFFECT_DURATION_MAX: Duration = DAYS_7;

/// Longest cooldown of a skill.
pub const COOLDOWN_MAX: Duration = DAYS_7;
/// Longest time between two drops.
pub const DROP_PERIOD_MAX: Duration = DAYS_7;
/// Longest rest of an id.
pub const REUSE_AFTER_MAX: Duration = DAYS_7;

/// Due effects or drops that one call hands out: timers that come due again while it works must not keep it for ever.
pub const DUE_PER_CALL_MAX: usize = 10_000;
/// Monsters that one transaction removes, or whose due effects or drops it runs: keeps a transaction short.
pub const MONSTERS_PER_TRANSACTION: usize = 32;
/// Cooldown markers that one transaction removes together with monsters: each is a write, and a transaction has few thousand.
pub const MARKERS_PER_TRANSACTION: usize = 1_024;
/// Keys that one call of the sweep looks at, about.
pub const SWEEP_KEYS: usize = 256;

const DAYS_7: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const _: () = assert!(DAMAGE_SPLIT_ENTRIES_MAX <= DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX);
// An entry is less than 64 bytes of JSON.
const _: () = assert!(DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX * 64 < emberkeep_hot::limits::VALUE_BYTES_MAX / 8);
const _: () = assert!(DAMAGE_ENTRIES_KEPT < DAMAGE_ENTRIES_MAX);
const _: () = assert!(VENOMS_MAX <= EFFECTS_MAX);
