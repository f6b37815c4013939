//! The limits of the archive. Units and qualifiers come last in a name.

use std::time::Duration;

/// Longest username, in characters.
pub const USERNAME_CHARS_MAX: usize = 32;
/// Longest e-mail address; that of RFC 5321.
pub const EMAIL_BYTES_MAX: usize = 254;
/// How long a claim of a name waits for its profile before another player can take it over.
pub const CLAIM_PENDING_MAX: Duration = Duration::from_secs(60);
/// How often a compare and set is tried before the caller gets `Conflict`.
pub const CHANGE_TRIES_MAX: usize = 64;
/// Longest pause between two tries; the pause is random.
pub const CHANGE_PAUSE_MAX: Duration = Duration::from_millis(20);
/// Largest settings of a player.
pub const SETTINGS_BYTES_MAX: usize = 64 * 1024;
/// Longest reason of a ban.
pub const BAN_REASON_BYTES_MAX: usize = 1_024;
/// Longest version of a client.
pub const CLIENT_VERSION_BYTES_MAX: usize = 128;
/// Versions of clients that a profile remembers. Beyond them the first in the order of texts is forgotten.
pub const CLIENT_VERSIONS_MAX: usize = 256;
/// Largest details of an audit entry.
pub const DETAILS_BYTES_MAX: usize = 64 * 1024;
/// Longest name of a server.
pub const SERVER_INSTANCE_BYTES_MAX: usize = 128;
/// Longest name of an ability.
pub const ABILITY_NAME_BYTES_MAX: usize = 128;
/// Longest name of a player on leaderboards.
pub const PLAYER_NAME_BYTES_MAX: usize = 128;
/// Entries of an all-time board in history.
pub const ALL_TIME_ENTRIES_MAX: usize = 100;
/// Relative error of a quantile of tick times.
pub const SKETCH_RELATIVE_ERROR: f64 = 0.01;
/// Bins of a sketch; beyond them the lowest are merged. They span a factor of 10^17.
pub const SKETCH_BINS_MAX: usize = 2_048;
/// Longest tick that a sample may have: a day.
pub const TICK_TIME_MS_MAX: f32 = 86_400_000.0;
/// Whole hours before the current one that a reporter holds. Samples of earlier ones are refused.
pub const REPORTER_HOURS_BEHIND_MAX: i64 = 2;
/// Whole hours after the current one that a reporter holds, for clocks that differ.
pub const REPORTER_HOURS_AHEAD_MAX: i64 = 1;
/// Events of one call of `record_events`, as in the storage document.
pub const RECORD_EVENTS_MAX: usize = 1_000;
/// Largest amount of one delta of statistics: millions of them stay within 64 bits.
pub const STATS_DELTA_MAX: i64 = 1_000_000_000_000;
/// Ids of recorded events that a recorder recognises when they are recorded again.
pub const RECENT_IDS_MAX: usize = 1 << 17;

const _: () = assert!(
    CLIENT_VERSIONS_MAX * CLIENT_VERSION_BYTES_MAX + SETTINGS_BYTES_MAX
        < emberkeep_history::limits::ROW_BYTES_MAX
);
