//! What a master brings to set a room up.

use super::model::{ItemId, PlayerId, RoundId, SenderId};
use serde::{Deserialize, Serialize};

/// What is played, and by whom. Checked as a whole by [`Rooms::setup`](super::Rooms::setup).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Whose reels are shown.
    pub senders: Vec<SetupSender>,
    /// What is played, in order.
    pub rounds: Vec<SetupRound>,
    /// Who guesses; more can be added.
    #[serde(default)]
    pub players: Vec<SetupPlayer>,
}

/// Whose reels are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupSender {
    /// Its id.
    pub sender_id: SenderId,
    /// What people read.
    pub name: String,
    /// Whether it can be chosen.
    #[serde(default = "yes")]
    pub active: bool,
    /// How many reels it sent.
    #[serde(default)]
    pub reels_count: u32,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupRound {
    /// Its id.
    pub round_id: RoundId,
    /// Its items, in order.
    pub items: Vec<SetupItem>,
}

/// One reel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupItem {
    /// Its id, unique in its round.
    pub item_id: ItemId,
    /// Where the reel is.
    pub reel_url: String,
    /// How many senders a player may choose.
    pub k: u32,
    /// Who sent it.
    pub true_sender_ids: Vec<SenderId>,
}

/// Who guesses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupPlayer {
    /// Its id.
    pub player_id: PlayerId,
    /// The sender that the player is, if it is one.
    #[serde(default)]
    pub sender_id: Option<SenderId>,
    /// What people read.
    pub name: String,
    /// Whether the player takes part.
    #[serde(default = "yes")]
    pub active: bool,
    /// A picture.
    #[serde(default)]
    pub avatar_url: Option<String>,
}

impl SetupPlayer {
    /// A player that takes part, without a picture.
    pub fn new(player_id: PlayerId, name: impl Into<String>) -> SetupPlayer {
        SetupPlayer { player_id, sender_id: None, name: name.into(), active: true, avatar_url: None }
    }
}

fn yes() -> bool {
    true
}
