//! The game in a room: items, votes, results, rounds.

use super::leader::{Key, KeyHeader, RoomPath, Token, TokenHeader};
use super::problems::{OfDevice, OfMaster, OfRoom};
use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::Conflict;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{DeviceId, ItemId, PlayerId, RoundId, SenderId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Starts the game: the room is set up, two players at least take part, and all of them are taken.
#[utoipa::path(post, path = "/v1/rooms/{code}/start", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "It has begun"), OfRoom, OfMaster, Conflict))]
pub(super) async fn start_game(State(app): State<App>, Key(master): Key) -> Result<StatusCode, Problem> {
    app.rooms.start_game(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An item of a round.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"round_id": "r1", "item_id": "i1"}))]
pub(super) struct OneItem {
    /// The round.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    round_id: RoundId,
    /// The item.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    item_id: ItemId,
}

/// Opens an item for the vote. It must be the next one of the round.
#[utoipa::path(post, path = "/v1/rooms/{code}/open", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "The vote is open"), OfRoom, OfMaster, Conflict))]
pub(super) async fn open_item(
    State(app): State<App>,
    Key(master): Key,
    Json(body): Json<OneItem>,
) -> Result<StatusCode, Problem> {
    app.rooms.open_item(&master, &body.round_id, &body.item_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A vote.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "round_id": "r1", "item_id": "i1", "selections": ["kim"]}))]
pub(super) struct Vote {
    /// The device, whose player votes.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The round.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    round_id: RoundId,
    /// The item.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    item_id: ItemId,
    /// One to `k` different senders.
    #[schema(value_type = Vec<String>)]
    selections: Vec<SenderId>,
}

/// A vote that counts.
#[derive(Serialize, ToSchema)]
pub(super) struct Voted {
    /// Whose it is.
    #[schema(value_type = String, example = "ann")]
    player_id: PlayerId,
    /// Whether it was the last one that was waited for.
    closed: bool,
}

/// Votes for the player of a device. The first vote counts; with the last one the vote ends.
#[utoipa::path(post, path = "/v1/rooms/{code}/votes", tag = "rooms", params(RoomPath, TokenHeader),
    responses((status = 200, description = "The vote counts", body = Voted), OfRoom, OfDevice, Conflict))]
pub(super) async fn submit_vote(
    State(app): State<App>,
    Path(path): Path<RoomPath>,
    token: Token,
    Json(body): Json<Vote>,
) -> Result<Answer<Voted>, Problem> {
    let Vote { device_id, round_id, item_id, selections } = body;
    let code = token.prove(&app, &path, &device_id).await?;
    let voted = app.rooms.submit_vote(code, &device_id, &round_id, &item_id, selections).await?;
    Ok(Answer(Voted { player_id: voted.player_id, closed: voted.closed }))
}

/// When a vote closes.
#[derive(Serialize, ToSchema)]
pub(super) struct Closes {
    /// Milliseconds since 1970.
    #[schema(example = 1_700_000_010_000_i64)]
    closes_at: i64,
}

/// Lets the vote end in ten seconds. Said again, the first countdown goes on.
#[utoipa::path(post, path = "/v1/rooms/{code}/force-close", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 200, description = "When it ends", body = Closes), OfRoom, OfMaster, Conflict))]
pub(super) async fn force_close_vote(
    State(app): State<App>,
    Key(master): Key,
) -> Result<Answer<Closes>, Problem> {
    Ok(Answer(Closes { closes_at: app.rooms.force_close_vote(&master).await? }))
}

/// Shows everybody the result of the item whose vote is over, and adds its points.
#[utoipa::path(post, path = "/v1/rooms/{code}/reveal", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "It is shown"), OfRoom, OfMaster, Conflict))]
pub(super) async fn reveal_item(State(app): State<App>, Key(master): Key) -> Result<StatusCode, Problem> {
    app.rooms.reveal(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Goes on after the last item of a round: to its points, then to the next round, after the last one to the end.
#[utoipa::path(post, path = "/v1/rooms/{code}/next-round", tag = "rooms", params(RoomPath, KeyHeader),
    responses((status = 204, description = "The game goes on"), OfRoom, OfMaster, Conflict))]
pub(super) async fn start_next_round(
    State(app): State<App>,
    Key(master): Key,
) -> Result<StatusCode, Problem> {
    app.rooms.start_next_round(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}
