//! The views of a room that clients get.
//!
//! There are two types, each made by one function. What only the master may see is in the fields of
//! [`MasterSync`]. The only way from a `VoteResults` into a [`PlayerSync`] is [`RevealedItem`], which
//! contains results that were revealed.

mod master;
mod player;
mod snapshot;

pub use master::{MasterSync, NextItem, VisibleBan};
pub use player::{
    CurrentItem, GameView, PlayerStatus, PlayerSync, RankingEntry, RevealedItem, RevealedPlayer,
    VisiblePlayer, VisibleSender,
};
pub use snapshot::RoomSnapshot;
