//! The scores of all time in history, of every player: what boards are rebuilt from.

use super::super::history::BoardCategory;
use emberkeep_schema::{Timestamp, table};

table! {
    /// All scores of all time. `leaderboard_alltime` has the best of them.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BoardScore = "ember_board_scores" {
        /// What is counted: kills, damage, wins or playtime.
        pub category: BoardCategory,
        /// A part of the players: it bounds the rows of a partition.
        pub slice: i32,
        /// The player, who stands once in a category.
        pub player_id: i64,
        /// The player's name when it scored.
        pub player_name: String,
        /// Kills, health, wins or milliseconds, of all time.
        pub score: i64,
        /// When it was reached.
        pub reached_at: Timestamp,
    }
    partition: (category, slice),
    clustering: (player_id asc),
    ttl: persistent,
    writes: versioned,
    owner: "leaderboards",
}

/// Slices of a category. Another number would need all rows to be written again.
pub(super) const SLICES: i32 = 64;

impl BoardScore {
    /// The row of a player.
    pub(super) fn new(
        category: BoardCategory,
        player_id: i64,
        player_name: String,
        score: i64,
        reached_at: i64,
    ) -> BoardScore {
        let slice = player_id.rem_euclid(i64::from(SLICES)) as i32;
        BoardScore { category, slice, player_id, player_name, score, reached_at: Timestamp(reached_at) }
    }
}
