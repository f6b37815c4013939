//! Setup of a room: senders, rounds and players.

use super::credentials::{MasterKeyParam, RoomMaster, RoomPath, RoomRateLimit};
use super::responses::{MasterErrors, RoomErrors};
use crate::error::ApiError;
use crate::extract::Json;
use crate::routes::responses::Conflict;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{
    ItemId, PlayerId, RoundId, SenderId, Setup, SetupItem, SetupPlayer, SetupRound, SetupSender,
};
use serde::Deserialize;
use utoipa::ToSchema;

/// The setup of a room.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "senders": [{"sender_id": "kim", "name": "Kim"}, {"sender_id": "lee", "name": "Lee"}],
    "rounds": [{"round_id": "r1", "items": [{"item_id": "i1", "reel_url": "https://reels.example/1", "k": 1,
        "true_sender_ids": ["kim"]}]}],
    "players": [{"player_id": "ann", "name": "Ann"}, {"player_id": "ben", "name": "Ben"}]}))]
pub(super) struct RoomSetup {
    /// The people whose reels are shown.
    senders: Vec<RoomSender>,
    /// The rounds in order.
    rounds: Vec<RoomRound>,
    /// The players; more can be added later.
    #[serde(default)]
    players: Vec<RoomPlayer>,
}

/// A person whose reels are shown.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoomSender {
    /// The id, unique among the senders of the room.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    sender_id: SenderId,
    /// The name to show.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// Whether it can be chosen; `true` if absent.
    #[serde(default = "yes")]
    active: bool,
    /// The number of its reels.
    #[serde(default)]
    reels_count: u32,
}

/// The items that are played together.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoomRound {
    /// The id, unique in the room.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    round_id: RoundId,
    /// Its items, in order.
    items: Vec<RoomItem>,
}

/// A reel to guess.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoomItem {
    /// Its id, unique in its round.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    item_id: ItemId,
    /// The URL of the reel.
    #[schema(max_length = 1024)]
    reel_url: String,
    /// The maximum number of senders that a player may choose.
    #[schema(minimum = 1)]
    k: u32,
    /// The senders who sent the reel: the right answer.
    #[schema(value_type = Vec<String>)]
    true_sender_ids: Vec<SenderId>,
}

/// A participant who guesses.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"player_id": "cem", "name": "Cem"}))]
pub(super) struct RoomPlayer {
    /// The id, unique among the players of the room.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    player_id: PlayerId,
    /// The sender that this player is, if any.
    #[schema(value_type = Option<String>)]
    sender_id: Option<SenderId>,
    /// The name to show.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// Whether the player takes part; `true` if absent.
    #[serde(default = "yes")]
    active: bool,
    /// The URL of a picture.
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

/// Sets up a room: senders, rounds and players. Possible once per game.
#[utoipa::path(post, path = "/v1/rooms/{code}/setup", tag = "rooms", params(RoomPath, MasterKeyParam),
    request_body = RoomSetup,
    responses((status = 204, description = "The room is set up"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn set_up_room(
    State(app): State<AppState>,
    _: RoomRateLimit,
    RoomMaster(master): RoomMaster,
    Json(body): Json<RoomSetup>,
) -> Result<StatusCode, ApiError> {
    app.rooms.setup(&master, body.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets up a room, at the path of the game's clients.
#[utoipa::path(post, path = "/room/{code}/setup", tag = "rooms", params(RoomPath, MasterKeyParam),
    request_body = RoomSetup,
    responses((status = 204, description = "The room is set up"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn set_up_room_of_client(
    app: State<AppState>,
    limit: RoomRateLimit,
    master: RoomMaster,
    body: Json<RoomSetup>,
) -> Result<StatusCode, ApiError> {
    set_up_room(app, limit, master, body).await
}
