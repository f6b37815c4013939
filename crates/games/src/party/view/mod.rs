//! What clients see of a room.
//!
//! Two types, made by two functions. What only the master may see is in fields of [`MasterSync`], and there is no way
//! from a [`VoteResults`] into a [`PlayerSync`] but [`Revealed`], which is made of what was shown to everybody.

mod look;
mod master;
mod player;

pub use look::Look;
pub use master::{MasterSync, NextItem, VisibleBan};
pub use player::{
    CurrentItem, GameView, PlayerStatus, PlayerSync, Ranked, Revealed, RevealedPlayer, VisiblePlayer,
    VisibleSender,
};
