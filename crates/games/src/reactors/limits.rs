//! The limits of the reactors game. Units come last in a name.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The range of reactor ids.
pub const IDS: RangeInclusive<i64> = 1_000_000_001..=2_000_000_000;
/// Longest delay of a reactor: 32 bits, as in other services.
pub const DELAY_MS_MAX: i64 = u32::MAX as i64;
/// Longest cooldown: 49.7 days, as the longest delay.
pub const COOLDOWN_MAX: Duration = Duration::from_millis(DELAY_MS_MAX as u64);
/// TTL of a field's index of cooldowns since its last write. Not shorter than any cooldown in it.
pub const COOLDOWNS_LIFE: Duration = Duration::from_secs(50 * 24 * 3_600);
/// Types of events that need an item.
pub const ITEM_EVENTS: [i32; 2] = [100, 999];
/// Longest name of a reactor.
pub const NAME_BYTES_MAX: usize = 256;
/// Largest `data` of a reactor as JSON. Keeps pages of reactors small enough for a reply.
pub const DATA_BYTES_MAX: usize = 32 * 1024;
/// Reactors of a field: as many as one transaction can read.
pub const FIELD_REACTORS_MAX: usize = emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
/// Ids after the last assigned one that a creation prefetches, so that its own is probably among them.
pub const PREFETCHED_IDS: u32 = 4;
/// Reactors that one transaction destroys.
pub const DESTROYED_PER_TRANSACTION: usize = 64;
/// About how many keys a teardown reads per page.
pub const TEARDOWN_KEYS: usize = 512;
/// About how many keys one turn of the sweep visits.
pub const SWEEP_KEYS: usize = 128;
/// Items that one transaction of the sweep repairs.
pub const REPAIRED_PER_TRANSACTION: usize = 32;

const _: () = assert!(COOLDOWNS_LIFE.as_millis() >= COOLDOWN_MAX.as_millis());
