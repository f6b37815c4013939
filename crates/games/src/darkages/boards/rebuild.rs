//! Boards from history: after they were lost, or on request.
//!
//! History has each board as it was sent, so a board is rebuilt at the position of its logs: what was applied stays
//! applied, and nothing is counted twice. Meanwhile the logs wait. Lost with hot state are the scores of its last second, which
//! had not been sent.

use super::super::archive::Archive;
use super::super::history::{BoardCategory, DailyScore};
use super::tables::{BoardScore, SLICES};
use super::{
    BOARD_BEGUN, BOARD_NAMES, Boards, CATEGORIES, DAY_STORED, Leaderboards, ShownName, category_name,
    day_board, day_name, ever_board,
};
use emberkeep_history::limits::PAGE_ROWS_MAX;
use emberkeep_history::outbox::DrainError;
use emberkeep_history::{Page, Query};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot};
use emberkeep_primitives::leaderboard::{Entry, LeaderboardError};
use emberkeep_schema::{Day, Table, Timestamp};

/// Why boards were not rebuilt. They take no scores until another rebuild has finished.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// History could not be read, or hot state could not be written.
    #[error(transparent)]
    Store(#[from] DrainError),
    /// A board could not be written.
    #[error(transparent)]
    Board(#[from] LeaderboardError),
    /// Scores that were sent are not in history yet.
    #[error("{waiting} updates of boards are not in history yet; run their consumer, and try again")]
    Behind {
        /// Updates that are not in history yet.
        waiting: u64,
    },
}

/// What a rebuild found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Scores of the boards of days.
    pub of_days: usize,
    /// Scores of all time.
    pub of_all_time: usize,
}

impl Boards {
    /// Rebuilds all boards of all time, of today and of yesterday from history. Scores wait in their logs meanwhile; call it
    /// without a running consumer of the boards.
    pub fn rebuild<'a>(&'a self, archive: &'a Archive) -> Pending<'a, Result<Rebuilt, RebuildError>> {
        Box::pin(async move {
            // From now on the logs wait.
            let forget = |tx: &mut hot::Tx<'_, Leaderboards>| tx.del(&BOARD_BEGUN.key());
            self.scope.transact::<(), hot::Error, _>(forget).await.map_err(DrainError::from)?;
            let consumer = self.plain_consumer(archive.history())?;
            while self.send_changes().await.map_err(DrainError::from)? > 0 {}
            consumer.drain_once().await?;
            let waiting = consumer.lag().await?.entries;
            if waiting > 0 {
                return Err(RebuildError::Behind { waiting });
            }
            self.restore(archive).await
        })
    }

    /// Begins boards that do not exist, or were lost, with what history has.
    pub(super) async fn begin(&self, archive: &Archive) -> Result<(), DrainError> {
        if self.scope.get(&BOARD_BEGUN.key()).await?.is_some() {
            return Ok(());
        }
        match self.restore(archive).await {
            Ok(_) => Ok(()),
            Err(RebuildError::Store(error)) => Err(error),
            Err(RebuildError::Board(LeaderboardError::Store(error))) => Err(error.into()),
            // Another process began at the same time: the next pass finds what it did.
            Err(RebuildError::Board(_) | RebuildError::Behind { .. }) => Ok(()),
        }
    }

    async fn restore(&self, archive: &Archive) -> Result<Rebuilt, RebuildError> {
        let mut rebuilt = Rebuilt::default();
        let now = self.scope.store().now().await.map_err(DrainError::from)?;
        let today = Timestamp(now).day();
        let yesterday = Day::from_number(today.number() - 1);
        for category in CATEGORIES {
            for day in yesterday.into_iter().chain([today]) {
                rebuilt.of_days += self.restore_day(archive, category, day, now).await?;
            }
            rebuilt.of_all_time += self.restore_ever(archive, category, now).await?;
        }
        let begun = self.scope.transact(|tx| {
            let now = tx.now();
            tx.put(&BOARD_BEGUN.key(), &now)
        });
        let begun: hot::Result<()> = begun.await;
        begun.map_err(DrainError::from)?;
        Ok(rebuilt)
    }

    async fn restore_day(
        &self,
        archive: &Archive,
        category: BoardCategory,
        day: Day,
        now: i64,
    ) -> Result<usize, RebuildError> {
        let mut rebuild = day_board(category, day).begin_rebuild(&self.scope).await?;
        let stored = DAY_STORED.key(category_name(category), day_name(day));
        let rows = archive.history().range(DailyScore::partition(category, day)).rows_max(PAGE_ROWS_MAX);
        let mut pages = Pages::new(rows);
        while let Some(rows) = pages.next().await? {
            let entry = |row: &DailyScore| Entry {
                player: row.player_id,
                score: row.score,
                reached_at: day.start().0,
            };
            rebuild.put(rows.iter().map(entry)).await?;
            for rows in rows.chunks(ROWS_PER_TRANSACTION) {
                let (rows, stored) = (rows.to_vec(), stored.clone());
                let write = self.scope.transact_with(rows, move |tx, rows| {
                    tx.hset_many(&stored, rows.iter().map(|row| (&row.player_id, &row.score)))?;
                    let name = |row: &DailyScore| (row.player_id, row.player_name.clone());
                    set_names(tx, rows.iter().map(name), now)
                });
                write.await.map_err(DrainError::from)?;
            }
        }
        Ok(rebuild.finish(&[]).await?.players)
    }

    async fn restore_ever(
        &self,
        archive: &Archive,
        category: BoardCategory,
        now: i64,
    ) -> Result<usize, RebuildError> {
        let mut rebuild = ever_board(category).begin_rebuild(&self.scope).await?;
        for slice in 0..SLICES {
            let rows =
                archive.history().range(BoardScore::partition(category, slice)).rows_max(PAGE_ROWS_MAX);
            let mut pages = Pages::new(rows);
            while let Some(rows) = pages.next().await? {
                let entry = |row: &BoardScore| Entry {
                    player: row.player_id,
                    score: row.score,
                    reached_at: row.reached_at.0,
                };
                rebuild.put(rows.iter().map(entry)).await?;
                for rows in rows.chunks(ROWS_PER_TRANSACTION) {
                    let write = self.scope.transact_with(rows.to_vec(), move |tx, rows| {
                        let name = |row: &BoardScore| (row.player_id, row.player_name.clone());
                        set_names(tx, rows.iter().map(name), now)
                    });
                    write.await.map_err(DrainError::from)?;
                }
            }
        }
        Ok(rebuild.finish(&[]).await?.players)
    }
}

/// Rows that one transaction writes to hot state.
const ROWS_PER_TRANSACTION: usize = 250;

/// Gives players the names that history has, unless boards know one already.
fn set_names(
    tx: &mut hot::Tx<'_, Leaderboards>,
    names: impl Iterator<Item = (i64, String)>,
    now: i64,
) -> hot::Result<()> {
    let names: Vec<_> = names.collect();
    let known = tx.hmget(&BOARD_NAMES.key(), names.iter().map(|(player, _)| player))?;
    let unknown = names.iter().zip(known).filter(|(_, known)| known.is_none());
    let unknown: Vec<_> =
        unknown.map(|((player, name), _)| (*player, ShownName::new(name.clone(), now))).collect();
    tx.hset_many(&BOARD_NAMES.key(), unknown.iter().map(|(player, shown)| (player, shown)))
}

/// The pages of a range, one after the other.
struct Pages<T: Table> {
    rows: Query<T>,
    after: Option<emberkeep_history::Cursor>,
    is_first: bool,
}

impl<T: Table> Pages<T> {
    fn new(rows: Query<T>) -> Pages<T> {
        Pages { rows, after: None, is_first: true }
    }

    async fn next(&mut self) -> Result<Option<Vec<T>>, RebuildError> {
        if !std::mem::take(&mut self.is_first) && self.after.is_none() {
            return Ok(None);
        }
        let page: Page<T> = self.rows.page(self.after.as_ref()).await.map_err(DrainError::from)?;
        self.after = page.next.clone();
        Ok(Some(page.into_rows().map_err(DrainError::from)?))
    }
}
