//! What everybody sees.

use super::snapshot::RoomSnapshot;
use crate::party::limits::SHOWN_EXPIRY_PRECISION;
use crate::party::model::*;
use crate::party::rules::{current, ranking};
use serde::{Deserialize, Serialize};

/// The state of a room for a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlayerSync {
    /// The room.
    pub room_code: RoomCode,
    /// The version of the protocol that it speaks.
    pub protocol_version: u32,
    /// When it was created.
    pub created_at: i64,
    /// When it ends, unless it is used before; cut to whole minutes.
    pub expires_at: i64,
    /// The store's time.
    pub now: i64,
    /// The newest event of the room's log that this state includes: follow from here.
    pub sequence: u64,
    /// Where the room is.
    pub phase: Phase,
    /// Whether devices that have not joined before are refused.
    pub locked: bool,
    /// All players.
    pub players_visible: Vec<VisiblePlayer>,
    /// All senders.
    pub senders_visible: Vec<VisibleSender>,
    /// The player of the device that asks.
    pub my_player_id: Option<PlayerId>,
    /// The game, from its start on.
    pub game: Option<GameView>,
    /// Points of each player. Those of an item are added when its result is shown.
    pub scores: Points,
    /// When the next thing happens by itself: ask for the state then.
    pub next_deadline: Option<i64>,
}

/// Whether a device has a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayerStatus {
    /// Some device has it, or is about to.
    Taken,
    /// It can be taken.
    Free,
}

/// A player as everybody sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VisiblePlayer {
    /// Its id.
    pub player_id: PlayerId,
    /// The sender that the player is, if it is one.
    pub sender_id: Option<SenderId>,
    /// What people read.
    pub name: String,
    /// Whether the player takes part.
    pub active: bool,
    /// A picture.
    pub avatar_url: Option<String>,
    /// Whether a device has it.
    pub status: PlayerStatus,
}

/// A sender as everybody sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VisibleSender {
    /// Its id.
    pub sender_id: SenderId,
    /// What people read.
    pub name: String,
    /// Whether it can be chosen.
    pub active: bool,
    /// How many reels it sent.
    pub reels_count: u32,
}

/// The game as everybody sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GameView {
    /// What it waits for.
    pub status: Status,
    /// The round; none if the game is over.
    pub round_id: Option<RoundId>,
    /// Which round, counted from 0.
    pub round_index: u32,
    /// How many rounds there are.
    pub rounds: u32,
    /// Which item of the round, counted from 0; as many as the round has once all are left behind.
    pub item_index: u32,
    /// How many items the round has.
    pub items: u32,
    /// The item, from its opening until it is left behind.
    pub item: Option<CurrentItem>,
    /// When the vote closes, once the master has said so.
    pub closes_at: Option<i64>,
    /// Whether the player of the device that asks has voted on the item.
    pub voted: bool,
    /// The result that was shown last.
    pub revealed: Option<RevealedItem>,
    /// While a round's points are shown: of this round. After the game: of all rounds.
    pub ranking: Option<Vec<RankingEntry>>,
}

/// The item that is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CurrentItem {
    /// Its id.
    pub item_id: ItemId,
    /// Where the reel is.
    pub reel_url: String,
    /// How many senders a player may choose.
    pub k: u32,
    /// Senders that can be chosen.
    pub selectable_sender_ids: Vec<SenderId>,
}

/// A place in a ranking. Who has as many points has the same rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankingEntry {
    /// 1 is the best.
    pub rank: u32,
    /// The player.
    pub player_id: PlayerId,
    /// Its points.
    pub score: i64,
}

/// The result of an item that was shown to everybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevealedItem {
    /// The round.
    pub round_id: RoundId,
    /// The item.
    pub item_id: ItemId,
    /// Who sent it.
    pub true_sender_ids: Vec<SenderId>,
    /// Each player that voted.
    pub players: Vec<RevealedPlayer>,
}

/// What came of one player's vote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevealedPlayer {
    /// The player.
    pub player_id: PlayerId,
    /// Whom the player chose.
    pub selections: Vec<SenderId>,
    /// One for each that is right.
    pub points: i64,
}

impl RevealedItem {
    /// What the game shows; the result of the current item is not it.
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

/// The state as a device sees it.
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
