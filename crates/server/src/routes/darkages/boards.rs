//! Leaderboards in hot state, by day and of all time.

use super::page::archive;
use super::rows::RowPage;
use super::sessions::bounded;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Path, Query};
use crate::limits::{BOARD_AROUND_DEFAULT, BOARD_AROUND_MAX, PAGE_ENTRIES_DEFAULT, PAGE_ENTRIES_MAX};
use crate::routes::path::{BoardDayPath, BoardPath, BoardPlayerPath};
use crate::routes::responses::NotFound;
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::darkages::boards::{self, Period};
use emberkeep_games::darkages::history::DailyScore;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which board of a category.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct BoardQuery {
    /// A UTC day such as 2026-01-31, or `all-time`; today if absent.
    #[param(example = "all-time")]
    period: Option<String>,
    /// At most this many players, or so many on each side of a player; 100 and 5 if absent.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u16>,
}

impl BoardQuery {
    async fn period(&self, app: &AppState) -> Result<Period, ApiError> {
        match self.period.as_deref() {
            None => Ok(app.boards.today().await?),
            Some("all-time") => Ok(Period::AllTime),
            Some(day) => day.parse().map(Period::Day).map_err(|error| {
                ApiError::invalid(format!("period: {error}; or all-time")).with("what", "period")
            }),
        }
    }
}

/// A player on a board.
#[derive(Serialize, ToSchema)]
pub(super) struct BoardRow {
    /// From 1, the best.
    #[schema(example = 1)]
    rank: u64,
    /// The player of the row.
    player_id: i64,
    /// The name; the id if no name is known.
    player_name: String,
    /// Kills, damage dealt, wins, or milliseconds of play.
    score: i64,
    /// When the score was reached, in milliseconds since 1970. Of equal scores the earlier one stands first.
    reached_at: i64,
}

impl From<boards::BoardRow> for BoardRow {
    fn from(row: boards::BoardRow) -> BoardRow {
        let boards::BoardRow { rank, player_id, player_name, score, reached_at } = row;
        BoardRow { rank, player_id, player_name, score, reached_at }
    }
}

/// A part of a board.
#[derive(Serialize, ToSchema)]
pub(super) struct BoardPart {
    /// The players, the best first.
    rows: Vec<BoardRow>,
}

impl From<Vec<boards::BoardRow>> for BoardPart {
    fn from(rows: Vec<boards::BoardRow>) -> BoardPart {
        BoardPart { rows: rows.into_iter().map(Into::into).collect() }
    }
}

/// Returns the best of a leaderboard.
#[utoipa::path(get, path = "/v1/darkages/boards/{category}", tag = "darkages",
    params(BoardPath, BoardQuery), responses((status = 200, description = "The best", body = BoardPart)))]
pub(super) async fn get_board(
    State(app): State<AppState>,
    Path(category): BoardPath,
    Query(query): Query<BoardQuery>,
) -> Result<Answer<BoardPart>, ApiError> {
    let limit = bounded(query.limit.map_or(PAGE_ENTRIES_DEFAULT, usize::from), PAGE_ENTRIES_MAX)?;
    let period = query.period(&app).await?;
    Ok(Answer(app.boards.top(category, period, limit).await?.into()))
}

type DailyScorePage = RowPage<DailyScore>;

/// Which part of a board in history.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DailyBoardQuery {
    /// At most this many rows; 100 if absent.
    #[param(minimum = 1, maximum = 1_000, example = 100)]
    limit: Option<u16>,
    /// The `next` of the page before; absent for the first page.
    cursor: Option<String>,
}

/// Lists the leaderboard of a day as history has it, also of days long ago: the best first, equal scores by player.
#[utoipa::path(get, path = "/v1/darkages/boards/{category}/days/{day}", tag = "darkages",
    params(BoardDayPath, DailyBoardQuery), responses((status = 200, description = "A page", body = DailyScorePage)))]
pub(super) async fn list_daily_board(
    State(app): State<AppState>,
    Path((category, day)): BoardDayPath,
    Query(query): Query<DailyBoardQuery>,
) -> Result<Answer<DailyScorePage>, ApiError> {
    let limit = bounded(query.limit.map_or(PAGE_ENTRIES_DEFAULT, usize::from), PAGE_ENTRIES_MAX)?;
    let after = query.cursor.as_deref().map(str::parse).transpose()?;
    Ok(Answer(archive(&app)?.daily_board(category, day.0, limit, after).await?.into()))
}

/// Returns the rank and the score of a player.
#[utoipa::path(get, path = "/v1/darkages/boards/{category}/players/{player}", tag = "darkages",
    params(BoardPlayerPath, BoardQuery),
    responses((status = 200, description = "The player", body = BoardRow), NotFound))]
pub(super) async fn get_rank(
    State(app): State<AppState>,
    Path((category, player)): BoardPlayerPath,
    Query(query): Query<BoardQuery>,
) -> Result<Answer<BoardRow>, ApiError> {
    let period = query.period(&app).await?;
    let row = app.boards.standing(category, period, player.0).await?;
    row.map(|row| Answer(row.into()))
        .ok_or_else(|| ApiError::not_found(format!("player {} is not on this board", player.0)))
}

/// Returns a player with those before and after. It is empty if the player is not on the board.
#[utoipa::path(get, path = "/v1/darkages/boards/{category}/players/{player}/around", tag = "darkages",
    params(BoardPlayerPath, BoardQuery), responses((status = 200, description = "The players", body = BoardPart)))]
pub(super) async fn get_board_around(
    State(app): State<AppState>,
    Path((category, player)): BoardPlayerPath,
    Query(query): Query<BoardQuery>,
) -> Result<Answer<BoardPart>, ApiError> {
    let limit = bounded(query.limit.map_or(BOARD_AROUND_DEFAULT, usize::from), BOARD_AROUND_MAX)?;
    let period = query.period(&app).await?;
    Ok(Answer(app.boards.around(category, period, player.0, limit).await?.into()))
}
