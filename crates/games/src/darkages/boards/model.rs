//! What leaderboards store and return.

use super::super::history::BoardCategory;
use emberkeep_schema::{Day, record};
use serde::{Deserialize, Serialize};

record! {
    /// The name of a player on boards.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ShownName {
        /// The name as boards show it.
        pub name: String => "name",
        /// Since when, in milliseconds since 1970: events before that do not change it.
        pub since: i64 => "since",
    }
}

/// What a board spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Period {
    /// One day in UTC.
    Day(Day),
    /// Everything since the first event.
    AllTime,
}

/// What an event adds to a player's score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    /// The player who scores.
    pub player_id: i64,
    /// The player's name at that time; `None` if the event does not tell.
    pub player_name: Option<String>,
    /// The category in which it scores.
    pub category: BoardCategory,
    /// How much; 0 is no score.
    pub amount: i64,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// A player on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRow {
    /// From 1, the best.
    pub rank: u64,
    /// The player of the row.
    pub player_id: i64,
    /// The name; the id as text if no name is known.
    pub player_name: String,
    /// Kills, damage dealt, wins, or milliseconds of play.
    pub score: i64,
    /// When the score was reached, in milliseconds since 1970. Of equal scores the earlier one stands first.
    pub reached_at: i64,
}

/// Changes of one board on their way to history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardUpdate {
    /// Orders the changes of all boards: the highest wins.
    pub position: i64,
    /// The category, in the words of the tables.
    pub category: String,
    /// The rows that changed, of a day or of all time.
    pub change: BoardChange,
}

/// What [`BoardUpdate`] carries: the rows of one table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BoardChange {
    /// Scores of a day (days since 1970).
    Day(i32, Vec<Moved>),
    /// Scores of all time.
    Ever(Vec<Moved>),
    /// The best of all time: player, name, score.
    Top(Vec<(i64, String, i64)>),
}

/// A score that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// The player whose score changed.
    pub player_id: i64,
    /// The name that boards show.
    pub name: String,
    /// The score that history has; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    /// The score after the change.
    pub score: i64,
    /// When it was reached.
    pub reached_at: i64,
}
