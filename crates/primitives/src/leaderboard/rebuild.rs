//! Rebuilding a board from what is authoritative, such as history, in bounded transactions.
//!
//! It is rebuilt in place, player by player, and not beside and switched over: that would need twice the memory
//! and one more read in every operation. So a reader sees for each player the entry from before or the new one,
//! never both and never none where both exist; ranks are exact among the entries that are there. A board that
//! was lost grows while it is rebuilt; [`Leaderboard::is_rebuilding`] tells readers.
//!
//! Changes are refused meanwhile. Otherwise an increment between the moment of history and the entry's transaction
//! would be overwritten. A log's consumer tries again later, and the positions that the rebuild sets say from where.

use super::change::{EntryMove, check_source};
use super::{Entry, Leaderboard, LeaderboardError, PlayerId, REBUILD_MARK, Ranked};
use crate::encode::part_bytes;
use crate::limits::BOARD_ENTRIES_PER_TURN;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Result, Scope, Tx, show};
use emberkeep_schema::{Automatic, Family, Hash, Id, Number, Partition, SortedSet, Utf8};
use std::collections::{HashMap, HashSet};

/// A rebuild that has begun. Dropping it leaves the board as it is then, and refusing changes: begin another
/// one, or cancel it.
pub struct Rebuild<O: Family, M: Family, S: Family> {
    board: Leaderboard<O, M, S>,
    scope: Scope<O::Partition>,
    /// What the mark holds while this rebuild is the one that writes.
    token: u64,
    /// Ids of the players that were put. They take memory until the rebuild has finished.
    put: HashSet<Box<[u8]>>,
    report: RebuildReport,
}

/// What a rebuild did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Players that were put.
    pub players: usize,
    /// Players among them whose entry was missing or different.
    pub changed: usize,
    /// Players that were removed because they were not put.
    pub removed: usize,
}

impl<P, O, M, S, I> Leaderboard<O, M, S>
where
    P: Partition,
    O: Family<Partition = P, Kind = SortedSet<Ranked<I>>, Ttl: Automatic>,
    M: Family<Partition = P, Kind = Hash<Id<I>, Ranked<I>>, Ttl: Automatic>,
    S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    I: PlayerId,
{
    /// Rebuilds the board from all of its entries: [`begin_rebuild`](Self::begin_rebuild), [`Rebuild::put`] and
    /// [`Rebuild::finish`] in one call.
    pub async fn rebuild(
        &self,
        scope: &Scope<P>,
        entries: impl IntoIterator<Item = Entry<I>>,
        positions: &[(String, u64)],
    ) -> Result<RebuildReport, LeaderboardError> {
        let (mut rebuild, mut entries) = (self.begin_rebuild(scope).await?, entries.into_iter());
        loop {
            let some: Vec<_> = entries.by_ref().take(BOARD_ENTRIES_PER_TURN).collect();
            if some.is_empty() {
                return rebuild.finish(positions).await;
            }
            rebuild.put(some).await?;
        }
    }

    /// Begins a rebuild: from now on changes of the board are refused. A rebuild that another process had begun
    /// ends with [`LeaderboardError::Superseded`].
    ///
    /// Read the positions of the sources after this call: what was applied before it is then part of history's
    /// entries, or is not and will be delivered again.
    pub async fn begin_rebuild(&self, scope: &Scope<P>) -> Result<Rebuild<O, M, S>, LeaderboardError> {
        let board = self.clone();
        let token = scope.transact(move |tx| board.mark_rebuild(tx)).await?;
        Ok(self.marked_rebuild(scope, token))
    }

    /// Begins a rebuild as [`begin_rebuild`](Self::begin_rebuild) does, in a transaction that decides whether there is one. What
    /// it returns is for [`marked_rebuild`](Self::marked_rebuild).
    pub fn mark_rebuild(&self, tx: &mut Tx<'_, P>) -> Result<u64, LeaderboardError> {
        let token = tx.random();
        tx.hset(&self.sources, &REBUILD_MARK.to_owned(), &token)?;
        Ok(token)
    }

    /// The rebuild that [`mark_rebuild`](Self::mark_rebuild) began.
    pub fn marked_rebuild(&self, scope: &Scope<P>, token: u64) -> Rebuild<O, M, S> {
        Rebuild {
            board: self.clone(),
            scope: scope.clone(),
            token,
            put: HashSet::new(),
            report: RebuildReport::default(),
        }
    }

    /// Ends a rebuild without finishing it: the board stays as it is now, with some new entries and some old
    /// ones, and takes changes again. `true` if there was one.
    pub fn cancel_rebuild(&self, tx: &mut Tx<'_, P>) -> Result<bool> {
        let is_rebuilding = self.is_rebuilding(tx)?;
        if is_rebuilding {
            tx.hdel(&self.sources, &REBUILD_MARK.to_owned())?;
        }
        Ok(is_rebuilding)
    }
}

impl<P, O, M, S, I> Rebuild<O, M, S>
where
    P: Partition,
    O: Family<Partition = P, Kind = SortedSet<Ranked<I>>, Ttl: Automatic>,
    M: Family<Partition = P, Kind = Hash<Id<I>, Ranked<I>>, Ttl: Automatic>,
    S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    I: PlayerId,
{
    /// Puts entries as they are to be, also over corrupt ones. Of a player who is put twice, the last entry counts.
    pub async fn put(&mut self, entries: impl IntoIterator<Item = Entry<I>>) -> Result<(), LeaderboardError> {
        let entries: Vec<_> = entries.into_iter().collect();
        for some in entries.chunks(BOARD_ENTRIES_PER_TURN) {
            let latest = some.iter().map(|entry| (part_bytes(&entry.player), entry.clone()));
            let latest: Vec<_> = latest.collect::<HashMap<_, _>>().into_values().collect();
            let new = latest.iter().filter(|entry| self.put.insert(part_bytes(&entry.player).into())).count();
            let wanted = latest.into_iter().map(|entry| (entry.player.clone(), Some(entry))).collect();
            self.report.changed += self.turn(wanted).await?;
            self.report.players += new;
        }
        Ok(())
    }

    /// Removes the players that were not put, repairs the board, and replaces the positions of all sources by
    /// these: entries of a log after them were not part of what was put and will be applied. Then the board
    /// takes changes again.
    pub async fn finish(mut self, positions: &[(String, u64)]) -> Result<RebuildReport, LeaderboardError> {
        positions.iter().try_for_each(|(source, _)| check_source(source))?;
        let mut from = None;
        loop {
            let page = self.scope.fields(&self.board.players, from, BOARD_ENTRIES_PER_TURN).await?;
            let players = page.fields.into_iter().filter_map(|(player, _)| player.known());
            let others: Vec<_> =
                players.filter(|player| !self.put.contains(&part_bytes(player)[..])).collect();
            // The servers decide how many fields a page has.
            for some in others.chunks(BOARD_ENTRIES_PER_TURN) {
                let gone = some.iter().map(|player| (player.clone(), None)).collect();
                self.report.removed += self.turn(gone).await?;
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        // What was not put is gone, also from a board that lost its players.
        self.board.repair_order(&self.scope, false).await?;
        let (board, token, positions) = (self.board.clone(), self.token, positions.to_vec());
        let finished = self.scope.transact(move |tx| {
            let mark = board.position(tx, REBUILD_MARK)?;
            board.check_token(tx, mark, token)?;
            tx.del(&board.sources)?;
            tx.hset_many(&board.sources, positions.iter().map(|(source, position)| (source, position)))?;
            Ok::<_, LeaderboardError>(())
        });
        finished.await?;
        Ok(self.report)
    }

    /// Gives players the entries that they are to have, and returns how many changed.
    async fn turn(&self, wanted: Vec<(I, Option<Entry<I>>)>) -> Result<usize, LeaderboardError> {
        let (board, token) = (self.board.clone(), self.token);
        let turn = self.scope.transact_with(wanted, move |tx, wanted| {
            let (mark, stored) = tx.together(|tx| {
                let mark = board.position(tx, REBUILD_MARK);
                (mark, board.stored(tx, wanted.iter().map(|(player, _)| player)))
            })?;
            board.check_token(tx, mark, token)?;
            let mut corrupt = Vec::new();
            let moved = wanted.iter().zip(stored).map(|((player, after), stored)| {
                let before = match stored {
                    Some(Member::Known(entry)) if entry.player == *player => Some(entry),
                    Some(_) if after.is_none() => {
                        corrupt.push(player.clone());
                        None
                    }
                    // What cannot be read is overwritten; its member, if there is one, is found by the repair.
                    _ => None,
                };
                EntryMove { before, after: after.clone() }
            });
            let moved: Vec<_> = moved.collect();
            tx.hdel_many(&board.players, &corrupt)?;
            board.write(tx, &moved)?;
            let changed = moved.iter().filter(|moved| moved.before != moved.after).count();
            Ok::<_, LeaderboardError>(changed + corrupt.len())
        });
        turn.await
    }
}

impl<P, O, M, S, I> Leaderboard<O, M, S>
where
    P: Partition,
    O: Family<Partition = P, Kind = SortedSet<Ranked<I>>, Ttl: Automatic>,
    M: Family<Partition = P, Kind = Hash<Id<I>, Ranked<I>>, Ttl: Automatic>,
    S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    I: PlayerId,
{
    /// Refuses to go on if another rebuild has begun.
    fn check_token(&self, tx: &Tx<'_, P>, mark: Option<u64>, token: u64) -> Result<(), LeaderboardError> {
        match mark == Some(token) {
            true => Ok(()),
            false => Err(LeaderboardError::Superseded { key: show(&tx.raw_name(&self.sources)) }),
        }
    }
}
