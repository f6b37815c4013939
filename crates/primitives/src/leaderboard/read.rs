//! Reading a board: entries, ranks and pages, with the checks that no wrong rank passes.

use super::{Entry, Leaderboard, PlayerId, REBUILD_MARK, Ranked, Standing, corrupt};
use crate::encode::{encoded, part_bytes};
use bytes::Bytes;
use emberkeep_hot::command::{LexBound, ZSlice};
use emberkeep_hot::{ReadTx, Result};
use emberkeep_schema::{Automatic, Family, Hash, Id, Number, Partition, SortedSet, Utf8};
use std::collections::HashSet;

impl<P, O, M, S, I> Leaderboard<O, M, S>
where
    P: Partition,
    O: Family<Partition = P, Kind = SortedSet<Ranked<I>>, Ttl: Automatic>,
    M: Family<Partition = P, Kind = Hash<Id<I>, Ranked<I>>, Ttl: Automatic>,
    S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    I: PlayerId,
{
    /// A player's entry; `None` if the player is not on the board.
    pub fn entry(&self, tx: &mut ReadTx<'_, P>, player: &I) -> Result<Option<Entry<I>>> {
        let entry = tx.hget(&self.players, player)?;
        self.check_owner(tx, player, entry.as_ref())?;
        Ok(entry)
    }

    /// The entries of several players, in the order asked for, with one read. At most
    /// [`BOARD_CHANGES_MAX`](crate::limits::BOARD_CHANGES_MAX).
    pub fn entries(&self, tx: &mut ReadTx<'_, P>, players: &[I]) -> Result<Vec<Option<Entry<I>>>> {
        let entries = tx.hmget(&self.players, players)?;
        for (player, entry) in players.iter().zip(&entries) {
            self.check_owner(tx, player, entry.as_ref())?;
        }
        Ok(entries)
    }

    /// A player's score; `None` if the player is not on the board.
    pub fn score(&self, tx: &mut ReadTx<'_, P>, player: &I) -> Result<Option<i64>> {
        Ok(self.entry(tx, player)?.map(|entry| entry.score))
    }

    /// A player's rank, from 1 for the best; `None` if the player is not on the board.
    pub fn rank(&self, tx: &mut ReadTx<'_, P>, player: &I) -> Result<Option<u64>> {
        Ok(self.standing(tx, player)?.map(|standing| standing.rank))
    }

    /// A player's rank and score; `None` if the player is not on the board.
    pub fn standing(&self, tx: &mut ReadTx<'_, P>, player: &I) -> Result<Option<Standing<I>>> {
        let Some(entry) = self.checked_entry(tx, player)? else { return Ok(None) };
        let rank = tx.zrank(&self.order, &entry)?;
        Ok(Some(place(entry, self.present(tx, player, rank)?)))
    }

    /// The best `n` players, at most [`REPLY_ELEMENTS_MAX`](emberkeep_hot::limits::REPLY_ELEMENTS_MAX); more is
    /// [`Error::TooLarge`](emberkeep_hot::Error::TooLarge).
    pub fn top(&self, tx: &mut ReadTx<'_, P>, n: usize) -> Result<Vec<Standing<I>>> {
        let last = i64::try_from(n).unwrap_or(i64::MAX) - 1;
        if last < 0 {
            return Ok(Vec::new());
        }
        let (page, members, players) = tx.together(|tx| {
            let page = tx.zrange(&self.order, ZSlice::Rank(0, last), false);
            (page, tx.zcard(&self.order), tx.hlen(&self.players))
        })?;
        self.check_counts(tx, members, players)?;
        if page.iter().any(|(_, score)| *score != 0.0) {
            return Err(corrupt::<O>(&tx.raw_name(&self.order), "a member's score is not 0; run `repair`"));
        }
        self.page(tx, 0, page)
    }

    /// A player with up to `n` players before and `n` after, in order; empty if the player is not on the board.
    /// More than [`REPLY_ELEMENTS_MAX`](emberkeep_hot::limits::REPLY_ELEMENTS_MAX) on a side is
    /// [`Error::TooLarge`](emberkeep_hot::Error::TooLarge).
    pub fn around(&self, tx: &mut ReadTx<'_, P>, player: &I, n: usize) -> Result<Vec<Standing<I>>> {
        let Some(entry) = self.checked_entry(tx, player)? else { return Ok(Vec::new()) };
        // By bytes and not by rank: what stands beside an entry does not depend on how many are before it, so
        // the rank is read together with the neighbours.
        let member = Bytes::from(encoded::<Ranked<I>>("entry", &entry)?);
        let before = ZSlice::Lex(LexBound::Min, LexBound::Excluded(member.clone()), n);
        let after = ZSlice::Lex(LexBound::Excluded(member), LexBound::Max, n);
        let (rank, mut page, below) = tx.together(|tx| {
            let rank = tx.zrank(&self.order, &entry);
            (rank, tx.zrange(&self.order, before, true), tx.zrange(&self.order, after, false))
        })?;
        let rank = self.present(tx, player, rank)?;
        if page.len() != rank.min(n) {
            // Bytes decide the order only while all scores are equal.
            return Err(corrupt::<O>(&tx.raw_name(&self.order), "a member's score is not 0; run `repair`"));
        }
        let first = rank - page.len();
        page.reverse();
        page.push((entry, 0.0));
        page.extend(below);
        self.page(tx, first, page)
    }

    /// How many players are on the board.
    pub fn count(&self, tx: &mut ReadTx<'_, P>) -> Result<u64> {
        let (members, players) = tx.together(|tx| (tx.zcard(&self.order), tx.hlen(&self.players)))?;
        self.check_counts(tx, members, players)?;
        Ok(players as u64)
    }

    /// How far a source was applied; `None` if nothing of it was.
    pub fn position(&self, tx: &mut ReadTx<'_, P>, source: &str) -> Result<Option<u64>> {
        tx.hget(&self.sources, &source.to_owned())
    }

    /// Whether the board is being rebuilt: a rank is then one among the entries that are there.
    pub fn is_rebuilding(&self, tx: &mut ReadTx<'_, P>) -> Result<bool> {
        Ok(self.position(tx, REBUILD_MARK)?.is_some())
    }

    /// The entry of a player on a board whose two keys agree on how many players there are.
    fn checked_entry(&self, tx: &mut ReadTx<'_, P>, player: &I) -> Result<Option<Entry<I>>> {
        let (entry, members, players) = tx
            .together(|tx| (tx.hget(&self.players, player), tx.zcard(&self.order), tx.hlen(&self.players)))?;
        self.check_counts(tx, members, players)?;
        self.check_owner(tx, player, entry.as_ref())?;
        Ok(entry)
    }

    fn check_counts(&self, tx: &ReadTx<'_, P>, members: usize, players: usize) -> Result<()> {
        if members == players {
            return Ok(());
        }
        let reason = format!("{members} members for {players} players; run `repair`");
        Err(corrupt::<O>(&tx.raw_name(&self.order), reason))
    }

    /// Refuses an entry that names another player than its field.
    pub(super) fn check_owner(&self, tx: &ReadTx<'_, P>, player: &I, entry: Option<&Entry<I>>) -> Result<()> {
        match entry {
            Some(entry) if entry.player != *player => Err(corrupt::<M>(
                &tx.raw_name(&self.players),
                format!("the entry of {} names another player; run `repair`", text(player)),
            )),
            _ => Ok(()),
        }
    }

    /// The position of an entry that must be there.
    fn present(&self, tx: &ReadTx<'_, P>, player: &I, position: Option<usize>) -> Result<usize> {
        position.ok_or_else(|| {
            let reason = format!("the entry of player {} is missing; run `repair`", text(player));
            corrupt::<O>(&tx.raw_name(&self.order), reason)
        })
    }

    /// Entries with their ranks. A player who is there twice is an error.
    fn page(&self, tx: &ReadTx<'_, P>, first: usize, page: Vec<(Entry<I>, f64)>) -> Result<Vec<Standing<I>>> {
        let mut players = HashSet::with_capacity(page.len());
        for (entry, _) in &page {
            if !players.insert(part_bytes(&entry.player)) {
                let reason = format!("player {} is there twice; run `repair`", text(&entry.player));
                return Err(corrupt::<O>(&tx.raw_name(&self.order), reason));
            }
        }
        let standings = page.into_iter().zip(first..);
        Ok(standings.map(|((entry, _), position)| place(entry, position)).collect())
    }
}

fn place<I>(entry: Entry<I>, position: usize) -> Standing<I> {
    let Entry { player, score, reached_at } = entry;
    Standing { rank: position as u64 + 1, player, score, reached_at }
}

/// An id for a message.
pub(super) fn text(player: &impl PlayerId) -> String {
    String::from_utf8_lossy(&part_bytes(player)).into_owned()
}
