//! The limits of the party game. Units come last in a name.

use std::time::Duration;

/// How long a room lives after its last use.
pub const ROOM_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// How long the tombstone of an expired room exists. Until then its code is not reused.
pub const TOMBSTONE_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// From a forced close to the close of the vote.
pub const COUNTDOWN: Duration = Duration::from_secs(10);
/// The version of the protocol between rooms and clients.
pub const PROTOCOL_VERSION: u32 = 1;

/// Random bytes of a master key, and of a reconnect token.
pub const MASTER_KEY_BYTES: usize = 24;
/// Codes that a creation tries before it fails. Each is in use with a probability of rooms / 2^30.
pub const CODE_ATTEMPTS_MAX: usize = 16;

/// Longest id of a player, a sender, a device, a round or an item.
pub const ID_BYTES_MAX: usize = 64;
/// Longest name of a player or a sender.
pub const NAME_CHARS_MAX: usize = 64;
/// Longest address of a reel or an avatar.
pub const URL_BYTES_MAX: usize = 1_024;

/// Players of a room.
pub const PLAYERS_MAX: usize = 64;
/// Senders of a room.
pub const SENDERS_MAX: usize = 64;
/// Rounds of a game.
pub const ROUNDS_MAX: usize = 64;
/// Items of a game, in all its rounds.
pub const ITEMS_MAX: usize = 512;
/// Largest setup as JSON. With two results of every player it stays below what a transaction can read.
pub const SETUP_BYTES_MAX: usize = 256 * 1024;
/// Largest list of all players and senders of a room as JSON. Every view contains it.
pub const LOBBY_BYTES_MAX: usize = 32 * 1024;
/// Largest total of the selections in one result as JSON, if every player chooses as many senders as allowed.
pub const SELECTIONS_BYTES_MAX: usize = 64 * 1024;
/// Devices that a room remembers, in addition to those with a player.
pub const DEVICES_MAX: usize = 512;
/// Banned devices of a room.
pub const BANS_MAX: usize = 64;
/// The precision of `expires_at` in views. The exact time would reveal when a vote was received.
pub const SHOWN_EXPIRY_PRECISION: Duration = Duration::from_secs(60);
/// Active players that a game needs to start.
pub const PLAYERS_TO_START_MIN: usize = 2;

/// Events in a room's log. A client that missed more needs the state.
pub const EVENTS_MAX: usize = 1_000;
/// Events on one page.
pub const EVENTS_PER_PAGE_MAX: usize = 200;

/// Largest result: the selections, the true senders, and the id and points of each player.
const RESULT_BYTES_MAX: usize = SELECTIONS_BYTES_MAX + (PLAYERS_MAX + SENDERS_MAX) * (ID_BYTES_MAX + 64);
/// Largest ban: two ids, a name with four bytes per character, and the names of the fields.
const BAN_BYTES_MAX: usize = 2 * ID_BYTES_MAX + 4 * NAME_CHARS_MAX + 128;
const _: () = assert!(
    SETUP_BYTES_MAX + 2 * RESULT_BYTES_MAX + BANS_MAX * BAN_BYTES_MAX
        < emberkeep_hot::limits::REPLY_BYTES_MAX
);
const _: () = assert!(2 * LOBBY_BYTES_MAX < SETUP_BYTES_MAX);
const _: () = assert!(DEVICES_MAX + PLAYERS_MAX <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
const _: () = assert!(PLAYERS_MAX <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);
