//! The setup of a room.

use super::model::{ItemId, PlayerId, RoundId, SenderId};
use serde::{Deserialize, Serialize};

/// Rounds, senders and players of a game. [`Rooms::setup`](super::Rooms::setup) checks it as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The people whose reels are shown.
    pub senders: Vec<SetupSender>,
    /// The rounds in order.
    pub rounds: Vec<SetupRound>,
    /// The players; more can be added later.
    #[serde(default)]
    pub players: Vec<SetupPlayer>,
}

/// A person whose reels are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupSender {
    /// The id, unique among the senders of the room.
    pub sender_id: SenderId,
    /// The displayed name, 1 to 64 characters.
    pub name: String,
    /// Whether players can choose it.
    #[serde(default = "yes")]
    pub active: bool,
    /// The number of reels that it sent.
    #[serde(default)]
    pub reels_count: u32,
}

/// The items that are played together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupRound {
    /// The id, unique in the room.
    pub round_id: RoundId,
    /// The items in order.
    pub items: Vec<SetupItem>,
}

/// An item: one reel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupItem {
    /// The id, unique in its round.
    pub item_id: ItemId,
    /// The address of the reel: http or https.
    pub reel_url: String,
    /// How many senders a player may choose.
    pub k: u32,
    /// The senders who sent the reel: the right answer. Each of them once.
    pub true_sender_ids: Vec<SenderId>,
}

/// A participant who guesses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupPlayer {
    /// The id, unique among the players of the room.
    pub player_id: PlayerId,
    /// The sender that this player is, if any.
    #[serde(default)]
    pub sender_id: Option<SenderId>,
    /// The displayed name, 1 to 64 characters.
    pub name: String,
    /// Whether the player is active.
    #[serde(default = "yes")]
    pub active: bool,
    /// The address of a picture: http or https.
    #[serde(default)]
    pub avatar_url: Option<String>,
}

impl SetupPlayer {
    /// An active player without a picture.
    pub fn new(player_id: PlayerId, name: impl Into<String>) -> SetupPlayer {
        SetupPlayer { player_id, sender_id: None, name: name.into(), active: true, avatar_url: None }
    }
}

fn yes() -> bool {
    true
}
