//! Every bound of the reactors, units last.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Ids of reactors.
pub const IDS: RangeInclusive<i64> = 1_000_000_001..=2_000_000_000;
/// Longest delay of a reactor: what other services hold in 32 bits.
pub const DELAY_MS_MAX: i64 = u32::MAX as i64;
/// Longest cooldown: that of the longest delay, 49.7 days.
pub const COOLDOWN_MAX: Duration = Duration::from_millis(DELAY_MS_MAX as u64);
/// How long a field's index of cooldowns outlives the last one that entered it: at least as long as that one.
pub const COOLDOWNS_LIFE: Duration = Duration::from_secs(50 * 24 * 3_600);
/// Types of events that an item causes.
pub const ITEM_EVENTS: [i32; 2] = [100, 999];
/// Longest name of a reactor.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of what a reactor does, state by state, as it is stored: a page of them stays small enough to be sent.
pub const DATA_BYTES_MAX: usize = 32 * 1024;
/// Most reactors that a field takes: what one transaction may read.
pub const FIELD_REACTORS_MAX: usize = emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
/// Ids after the last one seen that a creation asks about beforehand, so that the one it gets is among them.
pub const FORESEEN_IDS: u32 = 4;
/// Reactors that one transaction destroys.
pub const DESTROYED_PER_TRANSACTION: usize = 64;
/// Keys that a teardown looks at in one go, about.
pub const TEARDOWN_KEYS: usize = 512;
/// Keys that one turn of the sweep looks at, about.
pub const SWEEP_KEYS: usize = 128;
/// Things that one transaction of the sweep mends.
pub const MENDED_PER_TRANSACTION: usize = 32;

const _: () = assert!(COOLDOWNS_LIFE.as_millis() >= COOLDOWN_MAX.as_millis());
