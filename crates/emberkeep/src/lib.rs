//! The state layer for multiplayer games: one crate to depend on.
