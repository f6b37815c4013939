//! Reading boards: top, rank, and the players around one.

use super::super::error::{Error, Result};
use super::super::limits::BOARD_ROWS_MAX;
use super::model::{BoardRow, Period};
use super::{BOARD_NAMES, BoardCategory, Boards, Leaderboards, day_board, ever_board, on_board};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, ReadTx};
use emberkeep_primitives::leaderboard::Standing;
use emberkeep_schema::Timestamp;

impl Boards {
    /// The best `rows_max` of a board, at most 1,000. Of a day before yesterday it is empty: read
    /// [`daily_board`](crate::darkages::archive::Archive::daily_board) from history.
    pub fn top(
        &self,
        category: BoardCategory,
        period: Period,
        rows_max: usize,
    ) -> Pending<'_, Result<Vec<BoardRow>>> {
        Box::pin(async move {
            check_rows(rows_max, BOARD_ROWS_MAX)?;
            let scope = self.named("darkages.board.top");
            let read = scope.read(move |tx| {
                let standings = on_board!(category, period, |board| board.top(tx, rows_max))?;
                rows(tx, standings)
            });
            Ok(read.await?)
        })
    }

    /// A player's rank and score; `None` if the player is not on the board.
    pub fn standing(
        &self,
        category: BoardCategory,
        period: Period,
        player_id: i64,
    ) -> Pending<'_, Result<Option<BoardRow>>> {
        Box::pin(async move {
            let scope = self.named("darkages.board.rank");
            let read = scope.read(move |tx| {
                let standing = on_board!(category, period, |board| board.standing(tx, &player_id))?;
                Ok::<_, hot::Error>(rows(tx, standing.into_iter().collect())?.pop())
            });
            Ok(read.await?)
        })
    }

    /// A player with up to `each_side` players before and after, at most 499; empty if the player is not on the board.
    pub fn around(
        &self,
        category: BoardCategory,
        period: Period,
        player_id: i64,
        each_side: usize,
    ) -> Pending<'_, Result<Vec<BoardRow>>> {
        Box::pin(async move {
            check_rows(each_side, (BOARD_ROWS_MAX - 1) / 2)?;
            let scope = self.named("darkages.board.around");
            let read = scope.read(move |tx| {
                let standings = on_board!(category, period, |board| board.around(tx, &player_id, each_side))?;
                rows(tx, standings)
            });
            Ok(read.await?)
        })
    }

    /// How many players are on a board.
    pub fn count(&self, category: BoardCategory, period: Period) -> Pending<'_, Result<u64>> {
        Box::pin(async move {
            let read = self.scope().read(move |tx| on_board!(category, period, |board| board.count(tx)));
            Ok(read.await?)
        })
    }

    /// Today's board, by the store's clock.
    pub fn today(&self) -> Pending<'_, Result<Period>> {
        Box::pin(async move { Ok(Period::Day(Timestamp(self.scope.store().now().await?).day())) })
    }
}

fn check_rows(asked: usize, max: usize) -> Result<()> {
    if asked <= max {
        return Ok(());
    }
    Err(Error::invalid("number of rows", format!("{asked}, at most {max}")))
}

/// Standings with their names.
fn rows(tx: &mut ReadTx<'_, Leaderboards>, standings: Vec<Standing<i64>>) -> hot::Result<Vec<BoardRow>> {
    let names = tx.hmget(&BOARD_NAMES.key(), standings.iter().map(|standing| &standing.player))?;
    let row =
        |(Standing { rank, player, score, reached_at }, name): (Standing<i64>, Option<super::ShownName>)| {
            let player_name = name.map_or_else(|| player.to_string(), |shown| shown.name);
            BoardRow { rank, player_id: player, player_name, score, reached_at }
        };
    Ok(standings.into_iter().zip(names).map(row).collect())
}
