//! What the master sees besides.

use super::player::{PlayerSync, Seen, VisiblePlayer, VisibleSender, player_sync, players, sender};
use crate::party::model::*;
use crate::party::rules::next_item;
use serde::Serialize;

/// The state of a room for its master: what everybody sees, and more.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MasterSync {
    /// What everybody sees.
    #[serde(flatten)]
    pub visible: PlayerSync,
    /// All players.
    pub players_all: Vec<VisiblePlayer>,
    /// All senders.
    pub senders_all: Vec<VisibleSender>,
    /// Whether the room was set up.
    pub is_set_up: bool,
    /// Banned devices, by the player that each had.
    pub bans: Vec<VisibleBan>,
    /// While a vote is open: who has voted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub votes_received_player_ids: Option<Vec<PlayerId>>,
    /// From the end of a vote until its item is left behind: what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub current_vote_results: Option<VoteResults>,
    /// The item that can be opened now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub next_item: Option<NextItem>,
}

/// A banned device, without its id.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VisibleBan {
    /// The id with which the ban is lifted.
    pub ban_id: String,
    /// The player that the device had.
    pub player_id: PlayerId,
    /// The name of the player at that time.
    pub name: String,
    /// When it was banned, in milliseconds since 1970.
    pub at: i64,
}

/// An item that was not opened yet.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextItem {
    /// Its round.
    pub round_id: RoundId,
    /// Its id.
    pub item_id: ItemId,
    /// Where the reel is.
    pub reel_url: String,
    /// How many senders a player may choose.
    pub k: u32,
}

fn ban(ban: &Ban) -> VisibleBan {
    let Ban { ban_id, player_id, name, at, .. } = ban.clone();
    VisibleBan { ban_id, player_id, name, at }
}

/// The state as the master sees it.
pub(crate) fn master_sync(seen: &Seen<'_>, device: Option<&DeviceId>) -> MasterSync {
    let state = seen.state;
    let status = state.game.as_ref().map(|game| game.status);
    let results = state.game.as_ref().and_then(|game| game.results.clone());
    MasterSync {
        visible: player_sync(seen, device),
        players_all: players(seen),
        senders_all: state.lobby.senders.iter().map(sender).collect(),
        is_set_up: state.plan.is_some(),
        bans: state.bans().iter().map(ban).collect(),
        votes_received_player_ids: (status == Some(Status::Vote))
            .then(|| seen.voters.iter().cloned().collect()),
        current_vote_results: results.filter(|_| status == Some(Status::RevealWait)),
        next_item: next_item(state).map(|(round, item)| NextItem {
            round_id: round.round_id.clone(),
            item_id: item.item_id.clone(),
            reel_url: item.reel_url.clone(),
            k: item.k,
        }),
    }
}
