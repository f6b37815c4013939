//! The game in a room: items, votes, results and rounds.

use super::credentials::{MasterKeyParam, ReconnectToken, ReconnectTokenParam, RoomMaster, RoomPath};
use super::responses::{DeviceErrors, MasterErrors, RoomErrors};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::responses::Conflict;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::party::{DeviceId, ItemId, PlayerId, RoundId, SenderId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Starts the game. The room must be set up, and at least two players take part, all of them claimed.
#[utoipa::path(post, path = "/v1/rooms/{code}/start", tag = "rooms", params(RoomPath, MasterKeyParam),
    responses((status = 204, description = "The game has started"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn start_game(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
) -> Result<StatusCode, ApiError> {
    app.rooms.start_game(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An item of a round.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"round_id": "r1", "item_id": "i1"}))]
pub(super) struct OneItem {
    /// The round that contains the item.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    round_id: RoundId,
    /// The item, unique in its round.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    item_id: ItemId,
}

/// Opens the next item of the round for votes.
#[utoipa::path(post, path = "/v1/rooms/{code}/open", tag = "rooms", params(RoomPath, MasterKeyParam),
    request_body = OneItem,
    responses((status = 204, description = "The vote is open"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn open_item(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
    Json(body): Json<OneItem>,
) -> Result<StatusCode, ApiError> {
    app.rooms.open_item(&master, &body.round_id, &body.item_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The choice of one player for the open item.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"device_id": "a4c7b1e2-93d5-4f60-8a1b-2c3d4e5f6a7b", "round_id": "r1",
    "item_id": "i1", "selections": ["kim"]}))]
pub(super) struct Vote {
    /// The device whose player votes.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    device_id: DeviceId,
    /// The round that contains the item.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    round_id: RoundId,
    /// The item, unique in its round.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    item_id: ItemId,
    /// One to `k` different senders.
    #[schema(value_type = Vec<String>)]
    selections: Vec<SenderId>,
}

/// A vote that was stored.
#[derive(Serialize, ToSchema)]
pub(super) struct AcceptedVote {
    /// The player that voted.
    #[schema(value_type = String, example = "ann")]
    player_id: PlayerId,
    /// Whether it was the last missing vote, which closes the vote.
    closed: bool,
}

/// Submits the vote of a device's player. Only the first vote counts; the last missing vote closes the vote.
#[utoipa::path(post, path = "/v1/rooms/{code}/votes", tag = "rooms", params(RoomPath, ReconnectTokenParam),
    request_body = Vote,
    responses((status = 200, description = "The vote is accepted", body = AcceptedVote),
        RoomErrors, DeviceErrors, Conflict))]
pub(super) async fn submit_vote(
    State(app): State<AppState>,
    Path(path): Path<RoomPath>,
    token: ReconnectToken,
    Json(body): Json<Vote>,
) -> Result<Answer<AcceptedVote>, ApiError> {
    let Vote { device_id, round_id, item_id, selections } = body;
    let code = token.verify(&app, &path, &device_id).await?;
    let voted = app.rooms.submit_vote(code, &device_id, &round_id, &item_id, selections).await?;
    Ok(Answer(AcceptedVote { player_id: voted.player_id, closed: voted.closed }))
}

/// The end of a vote.
#[derive(Serialize, ToSchema)]
pub(super) struct Closes {
    /// When it closes, in milliseconds since 1970.
    #[schema(example = 1_700_000_010_000_i64)]
    closes_at: i64,
}

/// Closes the vote in ten seconds. A second call does not restart the countdown.
#[utoipa::path(post, path = "/v1/rooms/{code}/force-close", tag = "rooms", params(RoomPath, MasterKeyParam),
    responses((status = 200, description = "When the vote closes", body = Closes),
        RoomErrors, MasterErrors, Conflict))]
pub(super) async fn force_close_vote(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
) -> Result<Answer<Closes>, ApiError> {
    Ok(Answer(Closes { closes_at: app.rooms.force_close_vote(&master).await? }))
}

/// Reveals the result of the closed vote to all clients, and adds the points.
#[utoipa::path(post, path = "/v1/rooms/{code}/reveal", tag = "rooms", params(RoomPath, MasterKeyParam),
    responses((status = 204, description = "The result is revealed"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn reveal_item(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
) -> Result<StatusCode, ApiError> {
    app.rooms.reveal(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Continues after the last item of a round: first to its ranking, then to the next round or the end.
#[utoipa::path(post, path = "/v1/rooms/{code}/next-round", tag = "rooms", params(RoomPath, MasterKeyParam),
    responses((status = 204, description = "The game continues"), RoomErrors, MasterErrors, Conflict))]
pub(super) async fn start_next_round(
    State(app): State<AppState>,
    RoomMaster(master): RoomMaster,
) -> Result<StatusCode, ApiError> {
    app.rooms.start_next_round(&master).await?;
    Ok(StatusCode::NO_CONTENT)
}
