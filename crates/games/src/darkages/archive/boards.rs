//! Leaderboards in history: projections of the boards in hot state, which can be rebuilt from them.
//!
//! A position orders the writes of a board: each is above the one before, and the same write has the same position however
//! often it is delivered. The highest position wins, in whatever order writes arrive.

use super::super::history::{AllTimeBoard, BoardCategory, DailyScore};
use super::error::{Error, Result};
use super::limits::ALL_TIME_ENTRIES_MAX;
use super::{Answer, Archive};
use emberkeep_history::limits::PAGE_ROWS_MAX;
use emberkeep_history::{Cursor, Page};
use emberkeep_hot::Scope;
use emberkeep_primitives::leaderboard::{Entry, Leaderboard, LeaderboardError, Ranked, RebuildReport};
use emberkeep_schema::{Automatic, Day, Family, Hash, Id, Number, Partition, RowKey, SortedSet, Utf8};
use std::collections::HashSet;

/// A score of a daily board that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreChange {
    /// Whose score changed.
    pub player_id: i64,
    /// The name when it scored.
    pub player_name: String,
    /// The score before; `None` if the player was not on the board.
    pub before: Option<i64>,
    /// The score after the change.
    pub score: i64,
}

/// Why a board in hot state was not rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum DailyRebuildError {
    /// History could not be read. The board refuses changes until another rebuild has finished.
    #[error(transparent)]
    Archive(#[from] Error),
    /// The board could not be written.
    #[error(transparent)]
    Board(#[from] LeaderboardError),
}

impl From<emberkeep_history::Error> for DailyRebuildError {
    fn from(error: emberkeep_history::Error) -> DailyRebuildError {
        DailyRebuildError::Archive(error.into())
    }
}

/// The keys of the old rows and the new rows of players that moved. Of a row that stays at its key only the new one is written: a
/// removal of the same position would win over it.
pub(crate) fn daily_changes(
    category: BoardCategory,
    day: Day,
    changes: Vec<ScoreChange>,
) -> (Vec<RowKey<DailyScore>>, Vec<DailyScore>) {
    let moved = |change: &&ScoreChange| change.before != Some(change.score);
    let before = |change: &ScoreChange| {
        change.before.map(|score| DailyScore::key(category, day, score, change.player_id))
    };
    let removed = changes.iter().filter(moved).filter_map(before).collect();
    let row = |ScoreChange { player_id, player_name, score, .. }| DailyScore {
        category,
        day,
        player_id,
        player_name,
        score,
    };
    (removed, changes.into_iter().map(row).collect())
}

impl Archive {
    /// Moves players on a daily board: the rows of their old scores go and those of the new ones come, together. Each player
    /// may stand once.
    pub fn write_daily_scores(
        &self,
        category: BoardCategory,
        day: Day,
        changes: Vec<ScoreChange>,
        position: i64,
    ) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut players = HashSet::with_capacity(changes.len());
            if let Some(twice) = changes.iter().find(|change| !players.insert(change.player_id)) {
                let problem = format!("player {} stands twice; merge its changes into one", twice.player_id);
                return Err(Error::invalid("score changes", problem));
            }
            let (removed, rows) = daily_changes(category, day, changes);
            self.history.replace_at(removed, rows, position).await?;
            Ok(())
        })
    }

    /// Writes the best of an all-time board: player, name and score, the best first, at most 100.
    pub fn write_all_time_board(
        &self,
        category: BoardCategory,
        entries: Vec<(i64, String, i64)>,
        position: i64,
    ) -> Answer<'_, ()> {
        Box::pin(async move {
            if entries.len() > ALL_TIME_ENTRIES_MAX || !entries.is_sorted_by(|one, next| one.2 >= next.2) {
                let problem = format!("expected at most {ALL_TIME_ENTRIES_MAX} entries, the best first");
                return Err(Error::invalid("all-time board", problem));
            }
            self.history.upsert_at(AllTimeBoard { category, entries }, position).await?;
            Ok(())
        })
    }

    /// The best of a day, the best first: a page of at most 1,000, or the one after a cursor. Equal scores stand by player.
    pub fn daily_board(
        &self,
        category: BoardCategory,
        day: Day,
        rows_max: usize,
        after: Option<Cursor>,
    ) -> Answer<'_, Page<DailyScore>> {
        Box::pin(async move {
            let rows = self.history.range(DailyScore::partition(category, day)).rows_max(rows_max);
            Ok(rows.page(after.as_ref()).await?)
        })
    }

    /// Player, name and score of the best ever, at most 100, the best first.
    pub fn all_time_board(&self, category: BoardCategory) -> Answer<'_, Vec<(i64, String, i64)>> {
        Box::pin(async move {
            let board = self.history.get(AllTimeBoard::key(category)).await?;
            Ok(board.map_or_else(Vec::new, |board| board.entries))
        })
    }

    /// Rebuilds a daily board in hot state from history. The positions are those of the board's sources whose entries
    /// history has: entries after them are applied to the board afterwards.
    ///
    /// History has no times of scores: of players with equal scores the one with the lower id stands first afterwards, as in
    /// the rows of history, until one of them scores again.
    pub async fn rebuild_daily_board<P, O, M, S>(
        &self,
        board: &Leaderboard<O, M, S>,
        scope: &Scope<P>,
        (category, day): (BoardCategory, Day),
        positions: &[(String, u64)],
    ) -> Result<RebuildReport, DailyRebuildError>
    where
        P: Partition,
        O: Family<Partition = P, Kind = SortedSet<Ranked<i64>>, Ttl: Automatic>,
        M: Family<Partition = P, Kind = Hash<Id<i64>, Ranked<i64>>, Ttl: Automatic>,
        S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    {
        let mut rebuild = board.begin_rebuild(scope).await?;
        let rows = self.history.range(DailyScore::partition(category, day)).rows_max(PAGE_ROWS_MAX);
        let mut after = None;
        loop {
            let page = rows.page(after.as_ref()).await?;
            after = page.next.clone();
            let entry = |row: DailyScore| Entry {
                player: row.player_id,
                score: row.score,
                reached_at: day.start().0,
            };
            rebuild.put(page.into_rows()?.into_iter().map(entry)).await?;
            if after.is_none() {
                return Ok(rebuild.finish(positions).await?);
            }
        }
    }
}
