//! Positions of many players in one call.

use super::sessions::bounded;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{BulkJson, Json};
use crate::limits::{POSITIONS_READ_MAX, POSITIONS_SET_MAX};
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::darkages::{EntityId, Position};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a player is.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PlayerPosition {
    /// The entity of the player.
    #[schema(example = 12_345)]
    entity_id: i64,
    /// The coordinate to the east.
    #[schema(example = 1234.5)]
    x: f64,
    /// The coordinate upwards.
    #[schema(example = 0.0)]
    y: f64,
    /// The coordinate to the north.
    #[schema(example = 6789.0)]
    z: f64,
    /// When the player was there, in milliseconds since 1970. An older position never replaces a newer one.
    #[schema(example = 1_704_067_260_000_i64)]
    timestamp: i64,
}

/// Where players are, as of one tick of a zone server.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"positions": [
    {"entity_id": 12_345, "x": 1234.5, "y": 0.0, "z": 6789.0, "timestamp": 1_704_067_260_000_i64}]}))]
pub(super) struct PositionUpdates {
    /// At most 10,000 positions, and 1 MiB.
    #[schema(max_items = 10_000)]
    positions: Vec<PlayerPosition>,
}

/// What became of the positions.
#[derive(Serialize, ToSchema)]
pub(super) struct PositionsSet {
    /// Positions that were written.
    written: usize,
    /// Positions that were older than the stored one, or as old.
    outdated: usize,
    /// Where shards are partitions of their own: positions of players who are not logged in. They were not written.
    absent: usize,
}

/// Sets the positions of many players. Each is atomic by itself and lives for two minutes.
#[utoipa::path(put, path = "/v1/darkages/positions", tag = "darkages",
    request_body = PositionUpdates,
    responses((status = 200, description = "What became of them", body = PositionsSet)))]
pub(super) async fn set_positions(
    State(app): State<AppState>,
    BulkJson(body): BulkJson<PositionUpdates>,
) -> Result<Answer<PositionsSet>, ApiError> {
    let count = body.positions.len();
    if count > POSITIONS_SET_MAX {
        let message = format!("{count} positions, expected at most {POSITIONS_SET_MAX}");
        return Err(ApiError::invalid(message).with("what", "positions"));
    }
    let position = |PlayerPosition { entity_id, x, y, z, timestamp }| {
        (EntityId(entity_id), Position { x, y, z, at: timestamp })
    };
    let done = app.darkages.set_positions(body.positions.into_iter().map(position).collect()).await?;
    Ok(Answer(PositionsSet { written: done.written, outdated: done.outdated, absent: done.absent }))
}

/// The players whose positions are read.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"entities": [12_345, 12_346]}))]
pub(super) struct PositionsOf {
    /// The entities, at most 1,000.
    #[schema(min_items = 1, max_items = 1_000)]
    entities: Vec<i64>,
}

/// Positions of the players that were asked for.
#[derive(Serialize, ToSchema)]
pub(super) struct Positions {
    /// Those that are known, in the order of the request.
    positions: Vec<PlayerPosition>,
    /// Positions of other programs that cannot be read.
    unreadable: usize,
}

/// Returns the positions of many players. Players without one are left out.
#[utoipa::path(post, path = "/v1/darkages/positions/read", tag = "darkages",
    request_body = PositionsOf,
    responses((status = 200, description = "The positions", body = Positions)))]
pub(super) async fn get_positions(
    State(app): State<AppState>,
    Json(body): Json<PositionsOf>,
) -> Result<Answer<Positions>, ApiError> {
    bounded(body.entities.len(), POSITIONS_READ_MAX)?;
    let entities: Vec<_> = body.entities.into_iter().map(EntityId).collect();
    let found = app.darkages.positions(&entities).await?;
    let (mut positions, mut unreadable) = (Vec::new(), 0);
    for (EntityId(entity_id), position) in entities.into_iter().zip(found) {
        match position {
            Ok(Some(Position { x, y, z, at })) => {
                positions.push(PlayerPosition { entity_id, x, y, z, timestamp: at });
            }
            Ok(None) => {}
            Err(error) if error.is_corrupt() => unreadable += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Answer(Positions { positions, unreadable }))
}
