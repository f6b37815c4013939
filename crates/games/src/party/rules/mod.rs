//! The rules of a room: pure functions on its state. Time, claims and votes are arguments.

mod game;
mod lobby;
mod names;
mod ranking;
mod setup;
#[cfg(test)]
mod tests;
mod vote;

pub use game::{close, current, force_close, next_item, next_round, open, play_again, reveal, start};
pub use lobby::{add_player, ban, delete_player, has_name, lock, rename_player, toggle_player, unban};
pub use names::{checked_name, checked_url};
pub use ranking::ranking;
pub use setup::set_up;
pub use vote::{Ballots, checked_selections, count, is_complete, voting};
