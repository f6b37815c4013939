//! The cases, by what they are about. Every public function here stands in [`CASES`](crate::CASES).

pub mod bounds;
pub mod corrupt;
pub mod hash;
pub mod lifetimes;
pub mod lists;
pub mod set;
pub mod sorted_set;
pub mod text;
pub mod types;
