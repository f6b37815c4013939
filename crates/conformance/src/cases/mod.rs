//! The cases, by what they are about. Every public function here stands in [`CASES`](crate::CASES).

pub mod body;
pub mod bounds;
pub mod contests;
pub mod corrupt;
pub mod hash;
pub mod histories;
pub mod isolation;
pub mod lifetimes;
pub mod lists;
pub mod log;
pub mod many;
pub mod members;
pub mod messages;
pub mod mixed;
pub mod neighbours;
pub mod passing;
pub mod programs;
pub mod reads;
pub mod scans;
pub mod set;
pub mod sorted_set;
pub mod sums;
pub mod text;
pub mod types;
