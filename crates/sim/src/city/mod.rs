//! A city of DarkAges beside the fields: players log in, walk, change zones, fight and log out.
//!
//! Each player is played by one process, and is hit by all. Its book has what calls reported; history has what became of
//! them. In the end both are the same, and hot state has nothing left.

mod check;
mod history;
mod inspect;
mod ledger;
mod player;

pub(super) use check::{clean_up, judge};
pub(super) use history::CityHistory;
pub use history::TemporaryFolder;
pub(super) use inspect::serve as inspect;
pub(super) use ledger::CityLedger;
pub(super) use player::play;
