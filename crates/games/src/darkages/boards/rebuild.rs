//! Boards from history: after they were lost, or on request.
//!
//! History has each board as it was sent, so a board is rebuilt at the position of its logs: what was applied stays
//! applied, and nothing is counted twice. Boards that are new or were lost take scores until history answers; these are
//! added to its scores. While a board is written the logs wait. Lost with hot state are the scores of its last second,
//! which had not been sent. If history is away for longer than the board of a day lives, its rows of that day have the scores
//! that had been sent, and those of all time have all of them.

use super::super::archive::Archive;
use super::super::history::{BoardCategory, DailyScore};
use super::tables::{BoardScore, SLICES};
use super::taken::{self, Taken};
use super::{
    BOARD_BEGUN, BOARD_NAMES, Boards, CATEGORIES, DAY_STORED, Leaderboards, Period, ShownName, category_name,
    day_board, day_name, ever_board, on_board,
};
use emberkeep_history::limits::PAGE_ROWS_MAX;
use emberkeep_history::outbox::DrainError;
use emberkeep_history::{Page, Query};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot};
use emberkeep_primitives::leaderboard::{Entry, LeaderboardError};
use emberkeep_schema::{Day, Table, Timestamp};

/// Why boards were not rebuilt. Those that had begun take no scores until a rebuild has finished; their consumer tries it again.
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
            // From now on the logs wait. Boards that were not restored have nothing to send.
            let hold = |tx: &mut hot::Tx<'_, Leaderboards>| {
                let is_begun = tx.get(&BOARD_BEGUN.key())?.is_some();
                if is_begun {
                    tx.put(&BOARD_BEGUN.key(), &REBUILDING)?;
                }
                Ok::<_, hot::Error>(is_begun)
            };
            if self.scope.transact(hold).await.map_err(DrainError::from)? {
                let consumer = self.plain_consumer(archive.history())?;
                while self.send_changes().await.map_err(DrainError::from)? > 0 {}
                consumer.drain_once().await?;
                let waiting = consumer.lag().await?.entries;
                if waiting > 0 {
                    return Err(RebuildError::Behind { waiting });
                }
            }
            self.restore(archive).await
        })
    }

    /// Begins boards that do not exist, or were lost, with what history has, and ends a rebuild that was not finished.
    pub(super) async fn begin(&self, archive: &Archive) -> Result<(), DrainError> {
        let restored = match self.scope.get(&BOARD_BEGUN.key()).await? {
            None => self.restore(archive).await,
            Some(REBUILDING) => self.rebuild(archive).await,
            Some(_) => return Ok(()),
        };
        match restored {
            Ok(_) => Ok(()),
            Err(RebuildError::Store(error)) => Err(error),
            Err(RebuildError::Board(LeaderboardError::Store(error))) => Err(error.into()),
            // Another process began at the same time: the next pass finds what it did.
            Err(RebuildError::Board(_) | RebuildError::Behind { .. }) => Ok(()),
        }
    }

    async fn restore(&self, archive: &Archive) -> Result<Rebuilt, RebuildError> {
        let restored = self.restore_all(archive).await;
        if matches!(restored, Err(RebuildError::Store(_) | RebuildError::Board(LeaderboardError::Store(_)))) {
            // The boards go on with what they have. An error of hot state is that of the restore, too.
            let _ = self.let_go().await;
        }
        restored
    }

    async fn restore_all(&self, archive: &Archive) -> Result<Rebuilt, RebuildError> {
        let mut rebuilt = Rebuilt::default();
        let now = self.scope.store().now().await.map_err(DrainError::from)?;
        let today = Timestamp(now).day();
        // Before the first board waits for it.
        let asked = archive.history().range(DailyScore::partition(CATEGORIES[0], today)).rows_max(1);
        asked.page(None).await.map_err(DrainError::from)?;
        for category in CATEGORIES {
            for day in days_of(today) {
                rebuilt.of_days += self.restore_day(archive, category, (day, today), now).await?;
            }
            rebuilt.of_all_time += self.restore_ever(archive, category, now).await?;
        }
        self.restored(today).await?;
        Ok(rebuilt)
    }

    /// All boards have what history has. What they took is forgotten, unless one of them is being restored again.
    async fn restored(&self, today: Day) -> Result<(), LeaderboardError> {
        let restored = self.scope.transact(move |tx| {
            for (category, period) in boards_of(today) {
                if on_board!(category, period, |board| board.is_rebuilding(tx))? {
                    return Err(superseded(category));
                }
                taken::forget(tx, (category, period))?;
            }
            let now = tx.now();
            Ok(tx.put(&BOARD_BEGUN.key(), &now)?)
        });
        restored.await
    }

    /// Boards that were not restored take scores again.
    async fn let_go(&self) -> Result<(), LeaderboardError> {
        let today = Timestamp(self.scope.store().now().await?).day();
        let let_go = self.scope.transact(move |tx| {
            if tx.get(&BOARD_BEGUN.key())?.is_none() {
                for (category, period) in boards_of(today) {
                    on_board!(category, period, |board| board.cancel_rebuild(tx))?;
                }
            }
            Ok::<_, LeaderboardError>(())
        });
        let_go.await
    }

    /// Marks a board as being rebuilt, unless all are restored already.
    async fn mark(&self, category: BoardCategory, period: Period) -> Result<u64, LeaderboardError> {
        let marked = self.scope.transact(move |tx| {
            if tx.get(&BOARD_BEGUN.key())?.is_some_and(|begun| begun != REBUILDING) {
                return Err(superseded(category));
            }
            on_board!(category, period, |board| board.mark_rebuild(tx))
        });
        marked.await
    }

    async fn restore_day(
        &self,
        archive: &Archive,
        category: BoardCategory,
        (day, today): (Day, Day),
        now: i64,
    ) -> Result<usize, RebuildError> {
        let board = (category, Period::Day(day));
        let is_shown = (0..=1).contains(&(today.number() - day.number()));
        if !is_shown && self.taken(board, now).await?.is_empty() {
            return Ok(0);
        }
        let token = self.mark(category, board.1).await?;
        let mut rebuild = day_board(category, day).marked_rebuild(&self.scope, token);
        let mut taken = self.taken(board, now).await?;
        let rows = archive.history().range(DailyScore::partition(category, day)).rows_max(PAGE_ROWS_MAX);
        let mut pages = Pages::new(rows);
        while let Some(rows) = pages.next().await? {
            let entry = |row: &DailyScore| Entry {
                player: row.player_id,
                score: row.score,
                reached_at: day.start().0,
            };
            rebuild.put(rows.iter().map(|row| taken.joined(entry(row)))).await?;
            self.note_stored(category, day, &rows, now).await?;
        }
        rebuild.put(taken.rest()).await?;
        Ok(rebuild.finish(&[]).await?.players)
    }

    /// Notes what history has of a day.
    async fn note_stored(
        &self,
        category: BoardCategory,
        day: Day,
        rows: &[DailyScore],
        now: i64,
    ) -> Result<(), DrainError> {
        let stored = DAY_STORED.key(category_name(category), day_name(day));
        for rows in rows.chunks(ROWS_PER_TRANSACTION) {
            let (rows, stored) = (rows.to_vec(), stored.clone());
            let write = self.scope.transact_with(rows, move |tx, rows| {
                tx.hset_many(&stored, rows.iter().map(|row| (&row.player_id, &row.score)))?;
                let name = |row: &DailyScore| (row.player_id, row.player_name.clone());
                set_names(tx, rows.iter().map(name), now)
            });
            write.await?;
        }
        Ok(())
    }

    async fn taken(&self, board: (BoardCategory, Period), now: i64) -> Result<Taken, DrainError> {
        Ok(Taken::read(&self.scope, board, now).await?)
    }

    async fn restore_ever(
        &self,
        archive: &Archive,
        category: BoardCategory,
        now: i64,
    ) -> Result<usize, RebuildError> {
        let token = self.mark(category, Period::AllTime).await?;
        let mut rebuild = ever_board(category).marked_rebuild(&self.scope, token);
        let mut taken = self.taken((category, Period::AllTime), now).await?;
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
                rebuild.put(rows.iter().map(|row| taken.joined(entry(row)))).await?;
                for rows in rows.chunks(ROWS_PER_TRANSACTION) {
                    let write = self.scope.transact_with(rows.to_vec(), move |tx, rows| {
                        let name = |row: &BoardScore| (row.player_id, row.player_name.clone());
                        set_names(tx, rows.iter().map(name), now)
                    });
                    write.await.map_err(DrainError::from)?;
                }
            }
        }
        rebuild.put(taken.rest()).await?;
        Ok(rebuild.finish(&[]).await?.players)
    }
}

/// The days whose boards may have scores: that of the day before yesterday may still live, and clocks of servers differ.
fn days_of(today: Day) -> impl Iterator<Item = Day> {
    (-2..=1).filter_map(move |days| Day::from_number(today.number() + days))
}

fn boards_of(today: Day) -> impl Iterator<Item = (BoardCategory, Period)> {
    let periods = move || days_of(today).map(Period::Day).chain([Period::AllTime]);
    CATEGORIES.into_iter().flat_map(move |category| periods().map(move |period| (category, period)))
}

fn superseded(category: BoardCategory) -> LeaderboardError {
    LeaderboardError::Superseded { key: format!("of {}", category.text()) }
}

/// What stands in place of the time at which boards were restored while they are rebuilt on request.
pub(super) const REBUILDING: i64 = 0;

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
