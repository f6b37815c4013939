//! What is played in a room, and by whom.

use super::leader::{Key, KeyHeader, RoomPath};
use super::problems::{OfMaster, OfRoom};
use crate::access::Paced;
use crate::app::App;
use crate::extract::Json;
use crate::problem::Problem;
use crate::routes::answers::Conflict;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{
    ItemId, PlayerId, RoundId, SenderId, Setup, SetupItem, SetupPlayer, SetupRound, SetupSender,
};
use serde::Deserialize;
use utoipa::ToSchema;

/// What is played, and by whom.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "senders": [{"sender_id": "kim", "name": "Kim"}, {"sender_id": "lee", "name": "Lee"}],
    "rounds": [{"round_id": "r1", "items": [{"item_id": "i1", "reel_url": "https://reels.example/1", "k": 1,
        "true_sender_ids": ["kim"]}]}],
    "players": [{"player_id": "ann", "name": "Ann"}, {"player_id": "ben", "name": "Ben"}]}))]
pub(super) struct RoomSetup {
    /// Whose reels are shown.
    senders: Vec<RoomSender>,
    /// What is played, in order.
    rounds: Vec<RoomRound>,
    /// Who guesses; more can be added.
    #[serde(default)]
    players: Vec<RoomPlayer>,
}

/// Whose reels are shown.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoomSender {
    /// Its id.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    sender_id: SenderId,
    /// What people read.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// Whether it can be chosen; yes if not given.
    #[serde(default = "yes")]
    active: bool,
    /// How many reels it sent.
    #[serde(default)]
    reels_count: u32,
}

/// One round.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoomRound {
    /// Its id.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    round_id: RoundId,
    /// Its items, in order.
    items: Vec<RoomItem>,
}

/// One reel.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoomItem {
    /// Its id, unique in its round.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    item_id: ItemId,
    /// Where the reel is.
    #[schema(max_length = 1024)]
    reel_url: String,
    /// How many senders a player may choose.
    #[schema(minimum = 1)]
    k: u32,
    /// Who sent it.
    #[schema(value_type = Vec<String>)]
    true_sender_ids: Vec<SenderId>,
}

/// Who guesses.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"player_id": "cem", "name": "Cem"}))]
pub(super) struct RoomPlayer {
    /// Its id.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    player_id: PlayerId,
    /// The sender that the player is, if it is one.
    #[schema(value_type = Option<String>)]
    sender_id: Option<SenderId>,
    /// What people read.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// Whether the player takes part; yes if not given.
    #[serde(default = "yes")]
    active: bool,
    /// A picture.
    avatar_url: Option<String>,
}

fn yes() -> bool {
    true
}

impl From<RoomPlayer> for SetupPlayer {
    fn from(player: RoomPlayer) -> SetupPlayer {
        let RoomPlayer { player_id, sender_id, name, active, avatar_url } = player;
        SetupPlayer { player_id, sender_id, name, active, avatar_url }
    }
}

impl From<RoomSetup> for Setup {
    fn from(setup: RoomSetup) -> Setup {
        let sender = |RoomSender { sender_id, name, active, reels_count }| SetupSender {
            sender_id,
            name,
            active,
            reels_count,
        };
        let item = |RoomItem { item_id, reel_url, k, true_sender_ids }| SetupItem {
            item_id,
            reel_url,
            k,
            true_sender_ids,
        };
        let round = |RoomRound { round_id, items }| SetupRound {
            round_id,
            items: items.into_iter().map(item).collect(),
        };
        Setup {
            senders: setup.senders.into_iter().map(sender).collect(),
            rounds: setup.rounds.into_iter().map(round).collect(),
            players: setup.players.into_iter().map(SetupPlayer::from).collect(),
        }
    }
}

/// Says what is played in a room and by whom, once per room.
#[utoipa::path(post, path = "/v1/rooms/{code}/setup", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "The room is set up"), OfRoom, OfMaster, Conflict))]
pub(super) async fn set_up_room(
    State(app): State<App>,
    _: Paced,
    Key(master): Key,
    Json(body): Json<RoomSetup>,
) -> Result<StatusCode, Problem> {
    app.rooms.setup(&master, body.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Says what is played in a room, where the game's clients expect it.
#[utoipa::path(post, path = "/room/{code}/setup", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "The room is set up"), OfRoom, OfMaster, Conflict))]
pub(super) async fn set_up_room_of_client(
    app: State<App>,
    paced: Paced,
    key: Key,
    body: Json<RoomSetup>,
) -> Result<StatusCode, Problem> {
    set_up_room(app, paced, key, body).await
}
