//! Changing boards: scores of events, and names.

use super::super::archive::recorder::Record;
use super::super::error::Result;
use super::super::limits::{BOARD_CLOCK_SKEW, DAY_BOARD_LIFE};
use super::super::service::check_text;
use super::model::{Period, Score, ShownName};
use super::project::changed_member;
use super::rebuild::REBUILDING;
use super::taken;
use super::{
    BOARD_APPLIED, BOARD_BEGUN, BOARD_CHANGED, BOARD_FED, BOARD_NAMES, Boards, CATEGORIES, Leaderboards,
    day_board, ever_board, of_record, on_board,
};
use crate::darkages::history::BoardCategory;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::leaderboard::Change;
use emberkeep_primitives::log_feed::{
    EntryFeed, EntryReader, FedEntry, Feed, FeedError, LogFeed, LogReader, NumberedFeed,
};
use emberkeep_schema::{Codec, Day, Family, Json, Key, Log, LogBound, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Boards {
    /// Feeds the boards by a log: what each event adds is computed by a pure function. Give it to the log's consumer
    /// ([`with_reader`](emberkeep_history::outbox::Consumer::with_reader)), or run it.
    pub fn fed_by<L, C, B>(
        &self,
        scope: &Scope<L::Partition>,
        log: Key<L>,
        scores_of: impl Fn(&C::Value, &mut Vec<Score>) + Send + Sync + 'static,
    ) -> Arc<dyn LogReader>
    where
        L: Family<Kind = Log<C, B>>,
        C: Codec,
        C::Value: Sync,
        B: LogBound,
    {
        let feed: LogFeed<Leaderboards, L, BOARD_FED, BOARD_APPLIED, C::Value> =
            LogFeed::new(scope, log, self.feed_of(scores_of));
        Arc::new(feed)
    }

    /// Feeds the boards by what a [recorder](crate::darkages::archive::recorder) takes: give it to the recorder's consumer.
    pub fn fed_by_records(&self) -> Arc<dyn EntryReader> {
        let feed = NumberedFeed::<Leaderboards, BOARD_FED, BOARD_APPLIED, Json<Record>>::from(
            self.feed_of(of_record),
        );
        Arc::new(feed)
    }

    fn feed_of<E: Send + Sync + 'static>(
        &self,
        scores_of: impl Fn(&E, &mut Vec<Score>) + Send + Sync + 'static,
    ) -> EntryFeed<Leaderboards, BOARD_FED, BOARD_APPLIED, E> {
        let feed = Feed::new(BOARD_FED.key(), BOARD_APPLIED.key());
        EntryFeed::new(&self.scope, feed, move |tx, entries: &[FedEntry<E>]| {
            let mut scores = Vec::new();
            entries.iter().for_each(|entry| scores_of(&entry.event, &mut scores));
            apply(tx, &scores)
        })
    }

    /// Gives a player another name on today's boards and on those of all time. What happened before now does not change it
    /// again; boards of earlier days keep the name of their day.
    pub fn rename<'a>(&'a self, player_id: i64, name: &'a str) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            check_text("player name", name)?;
            let name = name.to_owned();
            let scope = self.named("darkages.board.rename");
            let renamed = scope.transact(move |tx| {
                let (now, name) = (tx.now(), name.clone());
                tx.hset(&BOARD_NAMES.key(), &player_id, &ShownName::new(name, now))?;
                let today = Timestamp(now).day();
                for category in CATEGORIES {
                    for period in [Period::Day(today), Period::AllTime] {
                        if on_board!(category, period, |board| board.score(tx, &player_id))?.is_some() {
                            tx.sadd(&BOARD_CHANGED.key(), &changed_member(category, period, player_id))?;
                        }
                    }
                }
                Ok::<_, hot::Error>(())
            });
            Ok(renamed.await?)
        })
    }
}

/// Adds scores to their boards.
pub(super) fn apply(tx: &mut Tx<'_, Leaderboards>, scores: &[Score]) -> std::result::Result<(), FeedError> {
    let now = tx.now();
    let begun = tx.get(&BOARD_BEGUN.key())?;
    if begun == Some(REBUILDING) {
        let reason = "the leaderboards are rebuilt from history first".to_owned();
        return Err(FeedError::Waits { reason });
    }
    let mut boards: BTreeMap<(usize, Period), Vec<Change<i64>>> = BTreeMap::new();
    for Score { player_id, category, amount, at, .. } in scores {
        let place = CATEGORIES.iter().position(|one| one == category).unwrap_or_default();
        let change = Change::Add { player: *player_id, delta: *amount, at: *at };
        let day = Timestamp(*at).day();
        if takes_events(day, *at, now) {
            boards.entry((place, Period::Day(day))).or_default().push(change.clone());
        }
        boards.entry((place, Period::AllTime)).or_default().push(change);
    }
    rename(tx, scores)?;
    for ((place, period), changes) in &boards {
        let board = (CATEGORIES[*place], *period);
        add(tx, board, changes)?;
        if begun.is_none() {
            taken::note(tx, board, changes)?;
        }
    }
    Ok(())
}

fn add(
    tx: &mut Tx<'_, Leaderboards>,
    (category, period): (BoardCategory, Period),
    changes: &[Change<i64>],
) -> std::result::Result<(), FeedError> {
    on_board!(category, period, |board| board.change(tx, changes))?;
    let mut players: Vec<i64> = changes.iter().map(|change| *change.player()).collect();
    players.sort_unstable();
    players.dedup();
    let members: Vec<_> = players.iter().map(|player| changed_member(category, period, *player)).collect();
    Ok(tx.sadd_many(&BOARD_CHANGED.key(), &members)?)
}

/// Whether the board of a day certainly lives, if it was begun: it must not begin anew with a part of its scores. The
/// clocks of servers may differ a little.
fn takes_events(day: Day, at: i64, now: i64) -> bool {
    let (life, skew) = (DAY_BOARD_LIFE.as_millis() as i64, BOARD_CLOCK_SKEW.as_millis() as i64);
    at <= now + skew && now < day.start().0 + life - skew
}

/// The names of those who scored, where they are not those that the boards know.
fn rename(tx: &mut Tx<'_, Leaderboards>, scores: &[Score]) -> hot::Result<()> {
    let mut latest: BTreeMap<i64, (&str, i64)> = BTreeMap::new();
    for Score { player_id, player_name, at, .. } in scores {
        let Some(name) = player_name.as_deref() else { continue };
        let known = latest.entry(*player_id).or_insert((name, *at));
        if known.1 <= *at {
            *known = (name, *at);
        }
    }
    let known = tx.hmget(&BOARD_NAMES.key(), latest.keys())?;
    for ((player, (name, at)), known) in latest.iter().zip(known) {
        if known.is_none_or(|known| known.name != *name && known.since <= *at) {
            tx.hset(&BOARD_NAMES.key(), player, &ShownName::new((*name).to_owned(), *at))?;
        }
    }
    Ok(())
}
