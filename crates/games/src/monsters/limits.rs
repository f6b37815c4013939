//! The limits of the monsters game. Units and qualifiers come last in a name.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The range of monster ids.
pub const IDS: RangeInclusive<i64> = 1_000_000_000..=2_000_000_000;

/// Damage entries of a monster. Beyond this number the oldest are merged.
pub const DAMAGE_ENTRIES_MAX: usize = 512;
/// Entries that are left unmerged by a merge, so that merges are rare.
pub const DAMAGE_ENTRIES_KEPT: usize = DAMAGE_ENTRIES_MAX / 2;

/// Entries of 32 bits into which one wider stored entry is split. No version ever wrote a larger one: it is
/// corrupt.
pub const DAMAGE_SPLIT_ENTRIES_MAX: usize = 256;
/// The same for all wide entries of a monster together.
pub const DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX: usize = 4 * DAMAGE_ENTRIES_MAX;

/// Status effects on a monster at the same time.
pub const EFFECTS_MAX: usize = 64;
/// Statuses of one effect.
pub const STATUSES_MAX: usize = 16;
/// Longest name of a status.
pub const STATUS_NAME_BYTES_MAX: usize = 64;
/// Longest `sourceType` of an effect.
pub const SOURCE_TYPE_BYTES_MAX: usize = 64;
/// VENOM effects on a monster at the same time.
pub const VENOMS_MAX: usize = 3;
/// POISON by share of full health takes `maxHp / (POISON_DIVISOR - level)`.
pub const POISON_DIVISOR: u32 = 70;
/// Longest duration of an effect.
pub const EFFECT_DURATION_MAX: Duration = DAYS_7;

/// Longest cooldown of a skill.
pub const COOLDOWN_MAX: Duration = DAYS_7;
/// Longest time between two drops.
pub const DROP_PERIOD_MAX: Duration = DAYS_7;
/// Longest time for which a released id is not used again.
pub const REUSE_AFTER_MAX: Duration = DAYS_7;

/// Due effects or drops that one call handles. Timers that become due again meanwhile must not keep the call
/// running.
pub const DUE_PER_CALL_MAX: usize = 10_000;
/// Monsters that one transaction removes, or whose due effects or drops it runs. Keeps transactions short.
pub const MONSTERS_PER_TRANSACTION: usize = 32;
/// Cooldown markers that one transaction removes together with monsters. Each is a write, and a transaction
/// has a few thousand.
pub const MARKERS_PER_TRANSACTION: usize = 1_024;
/// About how many keys one turn of the sweep visits.
pub const SWEEP_KEYS: usize = 256;

const DAYS_7: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const _: () = assert!(DAMAGE_SPLIT_ENTRIES_MAX <= DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX);
// An entry is less than 64 bytes of JSON.
const _: () = assert!(DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX * 64 < emberkeep_hot::limits::VALUE_BYTES_MAX / 8);
const _: () = assert!(DAMAGE_ENTRIES_KEPT < DAMAGE_ENTRIES_MAX);
const _: () = assert!(VENOMS_MAX <= EFFECTS_MAX);
