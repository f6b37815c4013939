//! What everybody sees.

use crate::party::limits::SHOWN_END_TRANSACTION;
use crate::party::model::*;
use crate::party::rules::{current, ranking};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The state of a room for a client.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayerStatus {
    /// Some device has it, or is about to.
    Taken,
    /// It can be taken.
    Free,
}

/// A player as everybody sees it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    pub revealed: Option<Revealed>,
    /// While a round's points are shown: of this round. After the game: of all rounds.
    pub ranking: Option<Vec<Ranked>>,
}

/// The item that is on.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Ranked))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranked {
    /// 1 is the best.
    pub rank: u32,
    /// The player.
    pub player_id: PlayerId,
    /// Its points.
    pub score: i64,
}

/// The result of an item that was shown to everybody.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Revealed))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revealed {
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevealedPlayer {
    /// The player.
    pub player_id: PlayerId,
    /// Whom the player chose.
    pub selections: Vec<SenderId>,
    /// One for each that is right.
    pub points: i64,
}

impl Revealed {
    /// What the game shows; the result of the current item is not it.
    pub(crate) fn of(game: &Game) -> Option<Revealed> {
        let shown = game.revealed.as_ref()?;
        let players = shown.players.iter().map(|player| RevealedPlayer {
            player_id: player.player_id.clone(),
            selections: player.selections.0.clone(),
            points: player.points,
        });
        Some(Revealed {
            round_id: shown.round_id.clone(),
            item_id: shown.item_id.clone(),
            true_sender_ids: shown.true_sender_ids.0.clone(),
            players: players.collect(),
        })
    }
}

/// What a transaction found, of which views are made.
pub(crate) struct Seen<'a> {
    pub(crate) meta: &'a Meta,
    pub(crate) state: &'a State,
    pub(crate) now: i64,
    pub(crate) sequence: u64,
    /// Claims that both maps say.
    pub(crate) claims: &'a [(DeviceId, PlayerId)],
    /// Players that nobody else can take: those that are claimed, and those with half a claim that may become whole.
    pub(crate) held: &'a BTreeSet<PlayerId>,
    /// Who has voted on the current item.
    pub(crate) voters: &'a BTreeSet<PlayerId>,
}

impl Seen<'_> {
    /// The player of a device: it must be there and take part.
    pub(crate) fn player_of(&self, device: &DeviceId) -> Option<PlayerId> {
        let (_, player) = self.claims.iter().find(|(held_by, _)| held_by == device)?;
        self.state.player(player).filter(|player| player.active).map(|player| player.player_id.clone())
    }

    fn status_of(&self, player: &PlayerId) -> PlayerStatus {
        match self.held.contains(player) {
            true => PlayerStatus::Taken,
            false => PlayerStatus::Free,
        }
    }
}

/// The state as a device sees it.
pub(crate) fn player_sync(seen: &Seen<'_>, device: Option<&DeviceId>) -> PlayerSync {
    let my_player_id = device.and_then(|device| seen.player_of(device));
    let voted = my_player_id.as_ref().is_some_and(|player| seen.voters.contains(player));
    let (meta, state) = (seen.meta, seen.state);
    PlayerSync {
        room_code: meta.room_code,
        protocol_version: meta.protocol_version,
        created_at: meta.created_at,
        expires_at: meta.expires_at - meta.expires_at.rem_euclid(SHOWN_END_TRANSACTION.as_millis() as i64),
        now: seen.now,
        sequence: seen.sequence,
        phase: state.phase,
        locked: state.is_locked(),
        players_visible: players(seen),
        senders_visible: state.lobby.senders.iter().map(sender).collect(),
        my_player_id,
        game: state.game.as_ref().map(|game| game_view(state, game, voted)),
        scores: state.scores.clone(),
        next_deadline: state.closes_at(),
    }
}

pub(super) fn players(seen: &Seen<'_>) -> Vec<VisiblePlayer> {
    let visible = |player: &Player| VisiblePlayer {
        player_id: player.player_id.clone(),
        sender_id: player.sender_id.clone(),
        name: player.name.clone(),
        active: player.active,
        avatar_url: player.avatar_url.clone(),
        status: seen.status_of(&player.player_id),
    };
    seen.state.lobby.players.iter().map(visible).collect()
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
        revealed: Revealed::of(game),
        ranking: ranked,
    }
}
