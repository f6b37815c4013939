//! The view of the master.

use super::player::{PlayerSync, VisiblePlayer, VisibleSender, player_sync, players, sender};
use super::snapshot::RoomSnapshot;
use crate::party::model::*;
use crate::party::rules::next_item;
use serde::Serialize;

/// The state of a room for its master: the view of a player, and more.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MasterSync {
    /// The view of a player.
    #[serde(flatten)]
    pub visible: PlayerSync,
    /// All players of the room, also those who are not active.
    pub players_all: Vec<VisiblePlayer>,
    /// All senders of the room, also those whom players cannot choose.
    pub senders_all: Vec<VisibleSender>,
    /// Whether the room is set up.
    pub is_set_up: bool,
    /// Banned devices, identified by the player that each had.
    pub bans: Vec<VisibleBan>,
    /// While a vote is open: the players that have voted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub votes_received_player_ids: Option<Vec<PlayerId>>,
    /// From the close of a vote to its reveal: the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub current_vote_results: Option<VoteResults>,
    /// The item that can be opened next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub next_item: Option<NextItem>,
}

/// A banned device, without its id.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VisibleBan {
    /// The id to lift the ban with.
    pub ban_id: String,
    /// The player that the device had.
    pub player_id: PlayerId,
    /// The name of the player at that time.
    pub name: String,
    /// When it was banned, in milliseconds since 1970.
    pub at: i64,
}

/// An item that is not open yet.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextItem {
    /// The round that contains the item.
    pub round_id: RoundId,
    /// The id, unique in its round.
    pub item_id: ItemId,
    /// The address of the reel.
    pub reel_url: String,
    /// How many senders a player may choose.
    pub k: u32,
}

fn ban(ban: &Ban) -> VisibleBan {
    let Ban { ban_id, player_id, name, at, .. } = ban.clone();
    VisibleBan { ban_id, player_id, name, at }
}

/// The view of the master.
pub(crate) fn master_sync(room: &RoomSnapshot, device: Option<&DeviceId>) -> MasterSync {
    let state = &room.state;
    let status = state.game.as_ref().map(|game| game.status);
    let results = state.game.as_ref().and_then(|game| game.results.clone());
    MasterSync {
        visible: player_sync(room, device),
        players_all: players(room),
        senders_all: state.lobby.senders.iter().map(sender).collect(),
        is_set_up: state.plan.is_some(),
        bans: state.bans().iter().map(ban).collect(),
        votes_received_player_ids: (status == Some(Status::Vote))
            .then(|| room.voters.iter().cloned().collect()),
        current_vote_results: results.filter(|_| status == Some(Status::RevealWait)),
        next_item: next_item(state).map(|(round, item)| NextItem {
            round_id: round.round_id.clone(),
            item_id: item.item_id.clone(),
            reel_url: item.reel_url.clone(),
            k: item.k,
        }),
    }
}
