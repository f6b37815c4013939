//! What happened in a room, as its log tells it.
//!
//! Everything in an event may be told to its [`Audience`]: no vote, no true sender before the reveal, and no device but
//! to itself (who knows a device's id can speak for it). Single votes are no events: their number would show in the
//! sequences, which every client sees. Who has voted is part of the master's state.

use super::model::{DeviceId, ItemId, PlayerId, RoundId};
use super::view::{Look, Ranked, Revealed};
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The room was created.
    RoomCreated,
    /// The master said what is played, and by whom.
    SetUp,
    /// A device took a player.
    PlayerTaken {
        /// Which player.
        player_id: PlayerId,
    },
    /// A device gave its player up.
    PlayerReleased {
        /// Which player.
        player_id: PlayerId,
    },
    /// A device lost its player, and did not ask for it.
    SlotInvalidated {
        /// The device.
        device_id: DeviceId,
        /// The player that it had.
        player_id: PlayerId,
        /// Why.
        reason: Invalidation,
    },
    /// There is a new player.
    PlayerAdded {
        /// Which player.
        player_id: PlayerId,
        /// Its name.
        name: String,
    },
    /// A player has another name.
    PlayerRenamed {
        /// Which player.
        player_id: PlayerId,
        /// Its name.
        name: String,
    },
    /// A player is gone.
    PlayerDeleted {
        /// Which player.
        player_id: PlayerId,
    },
    /// A player takes part, or does not any more.
    PlayerToggled {
        /// Which player.
        player_id: PlayerId,
        /// Whether the player takes part.
        active: bool,
    },
    /// All players are free.
    ClaimsReset,
    /// The game began.
    GameStarted,
    /// An item can be voted on.
    VoteStarted {
        /// The round.
        round_id: RoundId,
        /// The item.
        item_id: ItemId,
        /// Where the reel is.
        reel_url: String,
        /// How many senders a player may choose.
        k: u32,
    },
    /// The master wants the vote to end.
    VoteClosing {
        /// The round.
        round_id: RoundId,
        /// The item.
        item_id: ItemId,
        /// When it ends.
        closes_at: i64,
    },
    /// The vote is over. The master finds the result in the state.
    VoteClosed {
        /// The round.
        round_id: RoundId,
        /// The item.
        item_id: ItemId,
        /// When it ended.
        closed_at: i64,
        /// Why.
        reason: Closing,
    },
    /// The result of an item is shown.
    ItemRevealed {
        /// Who sent it, and who knew.
        results: Revealed,
    },
    /// A round is over.
    RoundScored {
        /// The round.
        round_id: RoundId,
        /// By the points of this round.
        ranking: Vec<Ranked>,
    },
    /// A round began.
    RoundStarted {
        /// The round.
        round_id: RoundId,
    },
    /// The game is over.
    GameOver {
        /// By all points.
        ranking: Vec<Ranked>,
    },
    /// The lobby was locked or unlocked.
    LobbyLocked {
        /// Whether unknown devices are refused from now on.
        locked: bool,
    },
    /// The device that had a player was banned.
    DeviceBanned {
        /// The id with which the ban is lifted.
        ban_id: String,
        /// The player that the device had.
        player_id: PlayerId,
    },
    /// A ban was lifted.
    DeviceUnbanned {
        /// The ban.
        ban_id: String,
    },
    /// The room is back in the lobby, for another game of the same players.
    BackToLobby {
        /// Whether the same rounds are played again; otherwise the room must be set up again.
        keep_rounds: bool,
    },
    /// Something that this version does not know: a later one wrote it, or an external client. The state says what came of it.
    #[serde(other)]
    Unknown,
}

/// Why a device lost its player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Invalidation {
    /// The master made all players free.
    ClaimsReset,
    /// The player was deleted.
    PlayerDeleted,
    /// The player takes no part any more.
    PlayerDeactivated,
    /// Another device has the player: the maps of an external service disagreed.
    Replaced,
    /// The master banned the device.
    Banned,
}

/// Why a vote ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// Everybody who could vote has voted.
    AllVoted,
    /// The countdown of the master's forced close has passed.
    Forced,
}

/// Who may be told of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience<'a> {
    /// Everybody in the room.
    Everyone,
    /// One device.
    Device(&'a DeviceId),
    /// Nobody: what it says is not known here.
    Nobody,
}

impl Event {
    /// Who may be told of it.
    pub fn audience(&self) -> Audience<'_> {
        match self {
            Event::SlotInvalidated { device_id, .. } => Audience::Device(device_id),
            Event::Unknown => Audience::Nobody,
            _ => Audience::Everyone,
        }
    }
}

/// An event as the log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it happened.
    pub at: i64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// An event in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Its place in the room's log; the first is 1.
    pub sequence: u64,
    /// What happened, and when.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What is new in a room, and the room itself, as of one moment.
#[derive(Clone, Debug)]
pub struct Followed {
    /// In order, without holes, up to the state's sequence.
    pub events: Vec<Recorded>,
    /// Whether these are all events since the asked place. If not, only the state tells the rest.
    pub is_whole: bool,
    /// The room that they led to.
    pub look: Look,
}

/// Events from a place on.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventPage {
    /// In order, without holes.
    pub events: Vec<Recorded>,
    /// The newest sequence, whether or not it is on this page.
    pub last: u64,
    /// 0 if the page begins right after the asked place. Otherwise so many events are missing in between, or the room has
    /// so many less than the caller knows of, as after a failover: whoever follows asks for the state, and goes on from
    /// its sequence.
    pub missed: u64,
    /// When the room was created: after another time it is another room of the same code.
    pub created_at: i64,
}
