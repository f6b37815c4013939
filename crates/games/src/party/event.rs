//! The events of a room's log.
//!
//! An event contains nothing that its [`Audience`] must not see: no vote, no true sender before the reveal,
//! and no device id except to that device (the id is a secret). A single vote is not an event, because
//! sequences are visible to every client and would reveal the number of votes. The master's view contains who
//! has voted.

use super::model::{DeviceId, ItemId, PlayerId, RoundId};
use super::view::{RankingEntry, RevealedItem, RoomSnapshot};
use serde::{Deserialize, Serialize};

/// Something that happened in a room, as its log stores it and clients read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The room was created.
    RoomCreated,
    /// The master set up the rounds and players.
    SetUp,
    /// A device took a player.
    PlayerTaken {
        /// The player that was free before.
        player_id: PlayerId,
    },
    /// A device released its player.
    PlayerReleased {
        /// The player, which is free now.
        player_id: PlayerId,
    },
    /// A device lost its player without its own request.
    SlotInvalidated {
        /// The device that lost it.
        device_id: DeviceId,
        /// The player that it had.
        player_id: PlayerId,
        /// Why it lost the player.
        reason: Invalidation,
    },
    /// A player was added.
    PlayerAdded {
        /// The id of the new player.
        player_id: PlayerId,
        /// The displayed name of the new player.
        name: String,
    },
    /// A player was renamed.
    PlayerRenamed {
        /// The player, whose id stays the same.
        player_id: PlayerId,
        /// The new displayed name.
        name: String,
    },
    /// A player was deleted.
    PlayerDeleted {
        /// The player, which no longer exists.
        player_id: PlayerId,
    },
    /// A player was activated or deactivated.
    PlayerToggled {
        /// The player that was changed.
        player_id: PlayerId,
        /// Whether the player is active now.
        active: bool,
    },
    /// All claims were released.
    ClaimsReset,
    /// The game started with its first round, whose first item is not open yet.
    GameStarted,
    /// An item was opened for votes.
    VoteStarted {
        /// The round that contains the item.
        round_id: RoundId,
        /// The item, unique in its round.
        item_id: ItemId,
        /// The address of the reel.
        reel_url: String,
        /// How many senders a player may choose.
        k: u32,
    },
    /// The master forced the close of the vote: the countdown runs.
    VoteClosing {
        /// The round that contains the item.
        round_id: RoundId,
        /// The item, unique in its round.
        item_id: ItemId,
        /// When the vote closes, in milliseconds since 1970.
        closes_at: i64,
    },
    /// The vote has closed. The result is in the master's view.
    VoteClosed {
        /// The round that contains the item.
        round_id: RoundId,
        /// The item, unique in its round.
        item_id: ItemId,
        /// When the vote closed, in milliseconds since 1970.
        closed_at: i64,
        /// Why it closed.
        reason: CloseReason,
    },
    /// The result of an item was revealed.
    ItemRevealed {
        /// The true senders and the result of each player.
        results: RevealedItem,
    },
    /// The points of a round are shown.
    RoundScored {
        /// The round that is over.
        round_id: RoundId,
        /// The ranking by the points of this round.
        ranking: Vec<RankingEntry>,
    },
    /// A round started; its first item is not open yet.
    RoundStarted {
        /// The round that started.
        round_id: RoundId,
    },
    /// The game is over.
    GameOver {
        /// The ranking by all points.
        ranking: Vec<RankingEntry>,
    },
    /// The lobby was locked or unlocked.
    LobbyLocked {
        /// Whether devices that have not joined before are refused now.
        locked: bool,
    },
    /// The device of a player was banned.
    DeviceBanned {
        /// The id to lift the ban with.
        ban_id: String,
        /// The player that the device had.
        player_id: PlayerId,
    },
    /// A ban was lifted.
    DeviceUnbanned {
        /// The id of the ban that ended.
        ban_id: String,
    },
    /// The room returned to the lobby for another game of the same players.
    BackToLobby {
        /// Whether the same rounds are played again. Otherwise the room must be set up again.
        keep_rounds: bool,
    },
    /// An event of a later version or of an external client. The state contains its effect.
    #[serde(other)]
    Unknown,
}

/// Why a device lost its player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Invalidation {
    /// The master released all claims.
    ClaimsReset,
    /// The player was deleted.
    PlayerDeleted,
    /// The player was deactivated.
    PlayerDeactivated,
    /// Another device has the player: the two maps of an external service disagreed.
    Replaced,
    /// The master banned the device.
    Banned,
}

/// Why a vote closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// Every voter has voted.
    AllVoted,
    /// The countdown of a forced close has passed.
    Forced,
}

/// Which clients may receive an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience<'a> {
    /// Every client in the room.
    Everyone,
    /// Only this device.
    Device(&'a DeviceId),
    /// No client: this version does not know its contents.
    None,
}

impl Event {
    /// Which clients may receive it.
    pub fn audience(&self) -> Audience<'_> {
        match self {
            Event::SlotInvalidated { device_id, .. } => Audience::Device(device_id),
            Event::Unknown => Audience::None,
            _ => Audience::Everyone,
        }
    }
}

/// An event with its time, as the log stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// An event with its position in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SequencedEvent {
    /// The position in the room's log; the first event has 1.
    pub sequence: u64,
    /// The event and its time.
    #[serde(flatten)]
    pub entry: Entry,
}

/// The new events of a room, and the room after them, read at one moment.
#[derive(Clone, Debug)]
pub struct RoomUpdate {
    /// Consecutive events, up to the sequence of the snapshot.
    pub events: Vec<SequencedEvent>,
    /// Whether these are all events since the requested position. If not, the client needs the state.
    pub is_whole: bool,
    /// The room after these events.
    pub snapshot: RoomSnapshot,
}

/// A page of events after a position.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventPage {
    /// Events in the order of their sequences, without a gap between them.
    pub events: Vec<SequencedEvent>,
    /// The newest sequence of the log, whether or not it is on this page.
    pub last: u64,
    /// 0 if the page starts right after the requested position. Otherwise the number of events that are
    /// missing in between, or by which the requested position is ahead of the log, as after a failover. The
    /// client then needs the state, and continues from its sequence.
    pub missed: u64,
    /// When the room was created. Another value means another room with the same code.
    pub created_at: i64,
}
