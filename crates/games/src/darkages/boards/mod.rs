//! Leaderboards in hot state: daily and of all time, by kills, damage, wins and playtime.
//!
//! Promises:
//! 1. The logs of hits and of play sessions feed the boards, and so does a recorder's spool: each event once, within a
//!    second, whether or not history can be reached ([`emberkeep_primitives::log_feed`] says how).
//! 2. A day is the UTC day of the event; of equal scores the one that was reached first stands first, by the times of events. A
//!    board of a day lives for 48 hours, and takes events of today and yesterday. Older ones, which a spool may bring
//!    late, count for all time only.
//! 3. Changed scores go to history about once a second, through an outbox: their rows of `leaderboard_daily`, the best
//!    100 of `leaderboard_alltime`, and all of `ember_board_scores`, from which boards are rebuilt.
//! 4. Boards that are new, or were lost, begin with what history has. While it cannot be reached they take scores all the
//!    same, and show these alone; its scores are added when it answers, each once, and nothing is sent before that.
//! 5. A row shows the name that the player had when it scored. A rename changes today's boards and those of all time.

mod apply;
mod keys;
mod model;
mod project;
mod read;
mod rebuild;
mod scores;
mod tables;
mod taken;

pub use keys::{
    BOARD_APPLIED, BOARD_BEGUN, BOARD_CHANGED, BOARD_FED, BOARD_NAMES, BOARD_POSITION, BOARDS_DRAINER,
    BOARDS_LOG, DAY_ORDER, DAY_PLAYERS, DAY_SOURCES, DAY_STORED, DAY_TAKEN, EVER_ORDER, EVER_PLAYERS,
    EVER_SOURCES, EVER_TAKEN, Leaderboards,
};
pub use model::{BoardChange, BoardRow, BoardUpdate, Moved, Period, Score, ShownName};
pub use rebuild::{RebuildError, Rebuilt};
pub use tables::BoardScore;

pub(crate) use scores::{of_hit, of_play, of_record};

use super::history::BoardCategory;
use emberkeep_hot::{Scope, Store};
use emberkeep_primitives::Leaderboard;
use emberkeep_schema::{Day, Name};

/// The board of a day.
type DayBoard = Leaderboard<DAY_ORDER, DAY_PLAYERS, DAY_SOURCES>;
/// The board of all time.
type EverBoard = Leaderboard<EVER_ORDER, EVER_PLAYERS, EVER_SOURCES>;

/// The categories, each with a board of a day and one of all time.
pub const CATEGORIES: [BoardCategory; 4] =
    [BoardCategory::Kills, BoardCategory::Damage, BoardCategory::Wins, BoardCategory::Playtime];

/// The leaderboards on a store. Cheap to clone.
#[derive(Clone)]
pub struct Boards {
    scope: Scope<Leaderboards>,
}

impl Boards {
    /// The leaderboards on a store.
    pub fn new(store: &Store) -> Boards {
        Boards { scope: store.scope(Leaderboards) }
    }

    /// The partition of all boards.
    pub fn scope(&self) -> &Scope<Leaderboards> {
        &self.scope
    }

    fn named(&self, operation: &'static str) -> Scope<Leaderboards> {
        self.scope.clone().named(operation)
    }
}

fn category_name(category: BoardCategory) -> Name {
    Name::new(category.text()).expect("the categories are words of letters")
}

fn day_name(day: Day) -> Name {
    Name::new(day.to_string()).expect("a day is digits and dashes")
}

fn day_board(category: BoardCategory, day: Day) -> DayBoard {
    let (category, day) = (category_name(category), day_name(day));
    Leaderboard::new(
        DAY_ORDER.key(category.clone(), day.clone()),
        DAY_PLAYERS.key(category.clone(), day.clone()),
        DAY_SOURCES.key(category, day),
    )
}

fn ever_board(category: BoardCategory) -> EverBoard {
    let category = category_name(category);
    Leaderboard::new(
        EVER_ORDER.key(category.clone()),
        EVER_PLAYERS.key(category.clone()),
        EVER_SOURCES.key(category),
    )
}

/// Calls a function of a board, whatever its type.
macro_rules! on_board {
    ($category:expr, $period:expr, |$board:ident| $call:expr) => {
        match $period {
            Period::Day(day) => {
                let $board = day_board($category, day);
                $call
            }
            Period::AllTime => {
                let $board = ever_board($category);
                $call
            }
        }
    };
}
use on_board;
