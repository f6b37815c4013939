//! DarkAges, an MMO with zones: so far the tables of its history.

pub mod history;
