//! The view of players and spectators.

use super::snapshot::RoomSnapshot;
use crate::party::limits::SHOWN_EXPIRY_PRECISION;
use crate::party::model::*;
use crate::party::rules::{current, ranking};
use serde::{Deserialize, Serialize};

/// The state of a room for a client.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlayerSync {
    /// The code of the room.
    pub room_code: RoomCode,
    /// The protocol version of the room.
    pub protocol_version: u32,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
    /// When it expires unless it is used before, truncated to minutes.
    pub expires_at: i64,
    /// The store's time in milliseconds since 1970.
    pub now: i64,
    /// The sequence of the newest event that this state includes. Follow the log from here.
    pub sequence: u64,
    /// What the room is doing.
    pub phase: Phase,
    /// Whether devices that have not joined before are refused.
    pub locked: bool,
    /// All players of the room, also those who are not active.
    pub players_visible: Vec<VisiblePlayer>,
    /// All senders of the room, also those whom players cannot choose.
    pub senders_visible: Vec<VisibleSender>,
    /// The player of the requesting device.
    pub my_player_id: Option<PlayerId>,
    /// The game, once it has started.
    pub game: Option<GameView>,
    /// Points by player. Those of an item are added when it is revealed.
    pub scores: Points,
    /// When the open vote closes by itself. Request the state then.
    pub next_deadline: Option<i64>,
}

/// Whether a device has a player.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayerStatus {
    /// A device has it, or half a claim blocks it.
    Taken,
    /// It can be taken.
    Free,
}

/// A player in a view.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VisiblePlayer {
    /// The id, unique among the players of the room.
    pub player_id: PlayerId,
    /// The sender that this player is, if any.
    pub sender_id: Option<SenderId>,
    /// The name to show.
    pub name: String,
    /// Whether the player is active.
    pub active: bool,
    /// The address of a picture.
    pub avatar_url: Option<String>,
    /// Whether a device has it.
    pub status: PlayerStatus,
}

/// A sender in a view.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VisibleSender {
    /// The id, unique among the senders of the room.
    pub sender_id: SenderId,
    /// The name to show.
    pub name: String,
    /// Whether players can choose it.
    pub active: bool,
    /// The number of reels that it sent.
    pub reels_count: u32,
}

/// The game in a view.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GameView {
    /// What the game waits for.
    pub status: Status,
    /// The current round; `None` after the game.
    pub round_id: Option<RoundId>,
    /// Index of the round, from 0.
    pub round_index: u32,
    /// Number of rounds of the game.
    pub rounds: u32,
    /// Index of the item in its round, from 0; the number of items once all are done.
    pub item_index: u32,
    /// Number of items in the round.
    pub items: u32,
    /// The current item: open, or waiting for its reveal.
    pub item: Option<CurrentItem>,
    /// When the vote closes; set by a forced close.
    pub closes_at: Option<i64>,
    /// Whether the player of the requesting device has voted on the item.
    pub voted: bool,
    /// The result that was revealed last.
    pub revealed: Option<RevealedItem>,
    /// The ranking of the round while its points are shown; of all rounds after the game.
    pub ranking: Option<Vec<RankingEntry>>,
}

/// The item that is open for votes, or waits for its reveal. Without the right answer.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CurrentItem {
    /// The id, unique in its round.
    pub item_id: ItemId,
    /// The address of the reel.
    pub reel_url: String,
    /// How many senders a player may choose.
    pub k: u32,
    /// Senders that players can choose.
    pub selectable_sender_ids: Vec<SenderId>,
}

/// An entry of a ranking. Players with equal points have the same rank.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Ranked))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankingEntry {
    /// The rank; 1 is the best.
    pub rank: u32,
    /// The player with this rank.
    pub player_id: PlayerId,
    /// The points that the ranking counts: of a round, or of the game.
    pub score: i64,
}

/// The revealed result of an item.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Revealed))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevealedItem {
    /// The round that contains the item.
    pub round_id: RoundId,
    /// The item, unique in its round.
    pub item_id: ItemId,
    /// The senders who sent the reel: the right answer.
    pub true_sender_ids: Vec<SenderId>,
    /// The result of each player that voted.
    pub players: Vec<RevealedPlayer>,
}

/// The result of one player's vote.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevealedPlayer {
    /// The player who voted.
    pub player_id: PlayerId,
    /// The senders that the player chose.
    pub selections: Vec<SenderId>,
    /// One point for each true sender among them.
    pub points: i64,
}

impl RevealedItem {
    /// The last revealed result. It never contains the result of the current item.
    pub(crate) fn of(game: &Game) -> Option<RevealedItem> {
        let shown = game.revealed.as_ref()?;
        let players = shown.players.iter().map(|player| RevealedPlayer {
            player_id: player.player_id.clone(),
            selections: player.selections.0.clone(),
            points: player.points,
        });
        Some(RevealedItem {
            round_id: shown.round_id.clone(),
            item_id: shown.item_id.clone(),
            true_sender_ids: shown.true_sender_ids.0.clone(),
            players: players.collect(),
        })
    }
}

/// The view of a device.
pub(crate) fn player_sync(room: &RoomSnapshot, device: Option<&DeviceId>) -> PlayerSync {
    let my_player_id = device.and_then(|device| room.player_of(device));
    let voted = my_player_id.as_ref().is_some_and(|player| room.voters.contains(player));
    let (meta, state) = (&room.meta, &room.state);
    PlayerSync {
        room_code: meta.room_code,
        protocol_version: meta.protocol_version,
        created_at: meta.created_at,
        expires_at: meta.expires_at - meta.expires_at.rem_euclid(SHOWN_EXPIRY_PRECISION.as_millis() as i64),
        now: room.now,
        sequence: room.sequence,
        phase: state.phase,
        locked: state.is_locked(),
        players_visible: players(room),
        senders_visible: state.lobby.senders.iter().map(sender).collect(),
        my_player_id,
        game: state.game.as_ref().map(|game| game_view(state, game, voted)),
        scores: state.scores.clone(),
        next_deadline: state.closes_at(),
    }
}

pub(super) fn players(room: &RoomSnapshot) -> Vec<VisiblePlayer> {
    let visible = |player: &Player| VisiblePlayer {
        player_id: player.player_id.clone(),
        sender_id: player.sender_id.clone(),
        name: player.name.clone(),
        active: player.active,
        avatar_url: player.avatar_url.clone(),
        status: room.status_of(&player.player_id),
    };
    room.state.lobby.players.iter().map(visible).collect()
}

pub(super) fn sender(sender: &Sender) -> VisibleSender {
    VisibleSender {
        sender_id: sender.sender_id.clone(),
        name: sender.name.clone(),
        active: sender.active,
        reels_count: sender.reels_count,
    }
}

fn game_view(state: &State, game: &Game, voted: bool) -> GameView {
    let plan = state.plan.as_ref();
    let round = plan.and_then(|plan| plan.rounds.get(game.round as usize));
    let item = current(state).map(|(_, item)| CurrentItem {
        item_id: item.item_id.clone(),
        reel_url: item.reel_url.clone(),
        k: item.k,
        selectable_sender_ids: state.selectable().cloned().collect(),
    });
    let ranked = match (state.phase, game.status) {
        (Phase::GameOver, _) => Some(ranking(state, &state.scores)),
        (_, Status::RoundScore) => Some(ranking(state, &game.round_scores)),
        _ => None,
    };
    GameView {
        status: game.status,
        round_id: round.map(|round| round.round_id.clone()),
        round_index: game.round,
        rounds: plan.map_or(0, |plan| plan.rounds.len() as u32),
        item_index: game.item,
        items: round.map_or(0, |round| round.items.len() as u32),
        item,
        closes_at: game.closes_at,
        voted,
        revealed: RevealedItem::of(game),
        ranking: ranked,
    }
}
