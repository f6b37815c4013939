//! DarkAges, an MMO with zones: so far its history.

pub mod archive;
pub mod history;
