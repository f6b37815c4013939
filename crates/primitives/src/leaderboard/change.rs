//! Changing a board: one player, several, or the changes of a log's entry.

use super::{Entry, Leaderboard, LeaderboardError, PlayerId, REBUILD_MARK, Ranked};
use crate::encode::part_bytes;
use crate::limits::{BOARD_CHANGES_MAX, SOURCE_BYTES_MAX};
use emberkeep_hot::{Error, Result, Tx, show};
use emberkeep_schema::{Automatic, Family, Hash, Id, Number, Partition, SortedSet, Utf8};
use std::collections::HashMap;

/// One change of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<I> {
    /// The player has this score, higher or lower than before.
    Set {
        /// Whose score it is.
        player: I,
        /// The new score; it replaces the old one.
        score: i64,
        /// When it was reached. Ignored if the player has this score already.
        at: i64,
    },
    /// The player's score changes by so much; a player who is not on the board begins at 0.
    Add {
        /// Whose score changes.
        player: I,
        /// What is added, possibly below 0.
        delta: i64,
        /// When the new score was reached. Ignored if the score stays the same.
        at: i64,
    },
    /// The player leaves the board.
    Remove {
        /// Who leaves.
        player: I,
    },
}

impl<I> Change<I> {
    /// The player whose entry changes.
    pub fn player(&self) -> &I {
        match self {
            Change::Set { player, .. } | Change::Add { player, .. } | Change::Remove { player } => player,
        }
    }
}

/// An entry before and after changes.
pub(super) struct EntryMove<I> {
    pub(super) before: Option<Entry<I>>,
    pub(super) after: Option<Entry<I>>,
}

impl<P, O, M, S, I> Leaderboard<O, M, S>
where
    P: Partition,
    O: Family<Partition = P, Kind = SortedSet<Ranked<I>>, Ttl: Automatic>,
    M: Family<Partition = P, Kind = Hash<Id<I>, Ranked<I>>, Ttl: Automatic>,
    S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    I: PlayerId,
{
    /// Sets a player's score, which was reached at this time. A player who has this score keeps the time at
    /// which it was reached first.
    pub fn set(
        &self,
        tx: &mut Tx<'_, P>,
        player: &I,
        score: i64,
        reached_at: i64,
    ) -> Result<(), LeaderboardError> {
        self.change(tx, &[Change::Set { player: player.clone(), score, at: reached_at }])
    }

    /// Adds to a player's score, from 0 if the player is not on the board, and returns the new one. A sum that
    /// leaves 64 bits is [`Error::Overflow`].
    pub fn add(&self, tx: &mut Tx<'_, P>, player: &I, delta: i64, at: i64) -> Result<i64, LeaderboardError> {
        let moved =
            self.moved(tx, &[Change::Add { player: player.clone(), delta, at }], None)?.unwrap_or_default();
        self.write(tx, &moved)?;
        Ok(moved.first().and_then(|moved| moved.after.as_ref()).map_or(0, |entry| entry.score))
    }

    /// Removes a player; `true` if the player was on the board.
    pub fn remove(&self, tx: &mut Tx<'_, P>, player: &I) -> Result<bool, LeaderboardError> {
        let moved = self.moved(tx, &[Change::Remove { player: player.clone() }], None)?.unwrap_or_default();
        self.write(tx, &moved)?;
        Ok(moved.iter().any(|moved| moved.before.is_some()))
    }

    /// Several changes, in order, with one read: at most [`BOARD_CHANGES_MAX`].
    pub fn change(&self, tx: &mut Tx<'_, P>, changes: &[Change<I>]) -> Result<(), LeaderboardError> {
        let moved = self.moved(tx, changes, None)?.unwrap_or_default();
        Ok(self.write(tx, &moved)?)
    }

    /// The changes of a log's entry, once: `false` if the entry at this position of the source, or a later one,
    /// was applied before. At most [`BOARD_CHANGES_MAX`] changes.
    pub fn apply(
        &self,
        tx: &mut Tx<'_, P>,
        source: &str,
        position: u64,
        changes: &[Change<I>],
    ) -> Result<bool, LeaderboardError> {
        check_source(source)?;
        let Some(moved) = self.moved(tx, changes, Some((source, position)))? else { return Ok(false) };
        self.write(tx, &moved)?;
        tx.hset(&self.sources, &source.to_owned(), &position)?;
        Ok(true)
    }

    /// Removes all players. What was applied of each source stays applied.
    ///
    /// Two keys are deleted at once, which takes time in proportion to their size: a rebuild from nothing removes the
    /// players of a large board in small transactions instead.
    pub fn reset(&self, tx: &mut Tx<'_, P>) -> Result<(), LeaderboardError> {
        if self.is_rebuilding(tx)? {
            return Err(self.rebuilding(tx));
        }
        tx.del(&self.order)?;
        Ok(tx.del(&self.players)?)
    }

    fn rebuilding(&self, tx: &Tx<'_, P>) -> LeaderboardError {
        LeaderboardError::Rebuilding { key: show(&tx.raw_name(&self.sources)) }
    }

    /// What becomes of each player, in the order of the first change of each; `None` if the source has been applied
    /// up to this position.
    fn moved(
        &self,
        tx: &mut Tx<'_, P>,
        changes: &[Change<I>],
        position: Option<(&str, u64)>,
    ) -> Result<Option<Vec<EntryMove<I>>>, LeaderboardError> {
        if changes.len() > BOARD_CHANGES_MAX {
            let problem = format!("{}, at most {BOARD_CHANGES_MAX} at once", changes.len());
            return Err(Error::Invalid { what: "changes of a leaderboard", problem }.into());
        }
        let mut places = HashMap::with_capacity(changes.len());
        let mut players = Vec::with_capacity(changes.len());
        for change in changes {
            places.entry(part_bytes(change.player())).or_insert_with(|| {
                players.push(change.player());
                players.len() - 1
            });
        }
        let sources: Vec<String> =
            [REBUILD_MARK].into_iter().chain(position.map(|(source, _)| source)).map(str::to_owned).collect();
        let (entries, sources) = tx.together(|tx| {
            (tx.hmget(&self.players, players.iter().copied()), tx.hmget(&self.sources, &sources))
        })?;
        if sources[0].is_some() {
            return Err(self.rebuilding(tx));
        }
        if position.is_some_and(|(_, position)| sources[1].is_some_and(|applied| position <= applied)) {
            return Ok(None);
        }
        for (player, entry) in players.iter().zip(&entries) {
            self.check_owner(tx, player, entry.as_ref())?;
        }
        let unchanged = |before: Option<Entry<I>>| EntryMove { after: before.clone(), before };
        let mut moved: Vec<_> = entries.into_iter().map(unchanged).collect();
        for change in changes {
            let after = &mut moved[places[&part_bytes(change.player())]].after;
            *after = self.changed(tx, after.take(), change)?;
        }
        Ok(Some(moved))
    }

    /// An entry after a change.
    fn changed(
        &self,
        tx: &Tx<'_, P>,
        before: Option<Entry<I>>,
        change: &Change<I>,
    ) -> Result<Option<Entry<I>>> {
        let (player, score, at) = match change {
            Change::Remove { .. } => return Ok(None),
            Change::Set { player, score, at } => (player, *score, *at),
            Change::Add { player, delta, at } => {
                let value = before.as_ref().map_or(0, |entry| entry.score);
                let Some(sum) = value.checked_add(*delta) else {
                    let key = show(&tx.raw_name(&self.players));
                    let key = format!("the score of player {} at {key}", super::read::text(player));
                    return Err(Error::Overflow { key, value, by: *delta });
                };
                (player, sum, *at)
            }
        };
        Ok(match before {
            Some(same) if same.score == score => Some(same),
            _ => Some(Entry { player: player.clone(), score, reached_at: at }),
        })
    }

    /// Writes what has changed to both keys. Entries are added before others are removed: a key that became empty
    /// in between would lose its deadline and begin a new one, and the two keys would no longer expire together.
    pub(super) fn write(&self, tx: &mut Tx<'_, P>, moved: &[EntryMove<I>]) -> Result<()> {
        let changed = || moved.iter().filter(|moved| moved.before != moved.after);
        let entries = || changed().filter_map(|moved| moved.after.as_ref());
        tx.zadd_many(&self.order, entries().map(|entry| (entry, 0.0)))?;
        tx.hset_many(&self.players, entries().map(|entry| (&entry.player, entry)))?;
        tx.zrem_many(&self.order, changed().filter_map(|moved| moved.before.as_ref()))?;
        let gone = changed().filter(|moved| moved.after.is_none());
        let gone = gone.filter_map(|moved| moved.before.as_ref());
        tx.hdel_many(&self.players, gone.map(|entry| &entry.player))
    }
}

pub(super) fn check_source(source: &str) -> Result<()> {
    if (1..=SOURCE_BYTES_MAX).contains(&source.len()) {
        return Ok(());
    }
    let problem = format!("{} bytes, expected 1 to {SOURCE_BYTES_MAX}", source.len());
    Err(Error::Invalid { what: "source of a leaderboard", problem })
}
