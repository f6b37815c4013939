//! Repairing a board whose two keys disagree: after an external client, or a restore of one key only.
//!
//! The players are authoritative: the order is derived from them. Only where they say nothing does a
//! member count: if the hash is gone as a whole, it is restored from the members, and so is an entry that cannot
//! be read. What no member restores is removed and reported.
//!
//! Budget: transactions of at most [`BOARD_ENTRIES_PER_TURN`] entries, each of which reads again what it is
//! about to change, so a repair may run beside changes and beside another repair. It can be dropped at any time;
//! what is repaired stays repaired.

use super::{Entry, Leaderboard, PlayerId, Ranked, corrupt};
use crate::encode::{encoded, part_bytes};
use crate::limits::BOARD_ENTRIES_PER_TURN;
use bytes::Bytes;
use emberkeep_hot::command::{LexBound, Read, Reply, Score, ScoreBound, ZSlice};
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, ReadTx, Result, Scope, Tx, show};
use emberkeep_schema::{Automatic, Codec, Family, Hash, Id, Number, Partition, SortedSet, Utf8};

/// What a repair found and did. All is 0 for a sound board.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RepairReport {
    /// Members that were missing in the order and were added.
    pub added: usize,
    /// Members that no player has, or that are not entries, and were removed.
    pub removed: usize,
    /// Members whose score was not 0.
    pub scores: usize,
    /// Players whose entry was restored from the order.
    pub restored: usize,
    /// Fields of the players that could not be read or restored, and were removed. Each error names key and field.
    pub lost: Vec<Error>,
}

impl<P, O, M, S, I> Leaderboard<O, M, S>
where
    P: Partition,
    O: Family<Partition = P, Kind = SortedSet<Ranked<I>>, Ttl: Automatic>,
    M: Family<Partition = P, Kind = Hash<Id<I>, Ranked<I>>, Ttl: Automatic>,
    S: Family<Partition = P, Kind = Hash<Utf8, Number<u64>>, Ttl: Automatic>,
    I: PlayerId,
{
    /// Makes the order agree with the players, in bounded transactions. Meanwhile reads of a board that
    /// disagrees are refused as before.
    pub async fn repair(&self, scope: &Scope<P>) -> Result<RepairReport> {
        let restores_players = scope.hlen(&self.players).await? == 0;
        self.repair_order(scope, restores_players).await
    }

    /// Repairs the order. Members without a player are removed, or become players again if `restores_players`.
    pub(super) async fn repair_order(
        &self,
        scope: &Scope<P>,
        restores_players: bool,
    ) -> Result<RepairReport> {
        let mut report = RepairReport::default();
        // Before anything else: ranges by bytes are defined only while all scores are equal.
        for (min, max) in [
            (ScoreBound::MIN, ScoreBound::Excluded(Score::from_i64(0))),
            (ScoreBound::Excluded(Score::from_i64(0)), ScoreBound::MAX),
        ] {
            while self.mend_scores(scope, min, max, &mut report).await? {}
        }
        let corrupt = self.add_missing(scope, &mut report).await?;
        self.check_members(scope, restores_players, &mut report).await?;
        for some in corrupt.chunks(BOARD_ENTRIES_PER_TURN) {
            let board = self.clone();
            let lost = scope.transact_with(some.to_vec(), move |tx, fields| board.remove_corrupt(tx, fields));
            report.lost.extend(lost.await?);
        }
        Ok(report)
    }

    /// Gives members of other scores the score 0. `false` if there are none.
    async fn mend_scores(
        &self,
        scope: &Scope<P>,
        min: ScoreBound,
        max: ScoreBound,
        report: &mut RepairReport,
    ) -> Result<bool> {
        let board = self.clone();
        let mend = scope.transact(move |tx| {
            let slice = ZSlice::Score(min, max, BOARD_ENTRIES_PER_TURN);
            let members = tx.zrange_lossy(&board.order, slice, false)?;
            for (member, _) in &members {
                match member {
                    Member::Known(entry) => tx.zadd(&board.order, entry, 0.0)?,
                    Member::External(bytes) => tx.zrem_raw(&board.order, bytes.clone())?,
                }
            }
            Ok::<_, Error>(members.len())
        });
        let mended = mend.await?;
        report.scores += mended;
        Ok(mended == BOARD_ENTRIES_PER_TURN)
    }

    /// Adds the members of players that are missing, and returns the fields that cannot be read.
    async fn add_missing(&self, scope: &Scope<P>, report: &mut RepairReport) -> Result<Vec<Bytes>> {
        let (mut from, mut corrupt) = (None, Vec::new());
        loop {
            let page = scope.fields(&self.players, from, BOARD_ENTRIES_PER_TURN).await?;
            let mut entries = Vec::new();
            for (player, entry) in page.fields {
                match (player, entry) {
                    (Member::Known(player), Member::Known(entry)) if entry.player == player => {
                        entries.push(entry);
                    }
                    (Member::Known(player), _) => corrupt.push(part_bytes(&player).into()),
                    (Member::External(field), _) => corrupt.push(field),
                }
            }
            for some in entries.chunks(BOARD_ENTRIES_PER_TURN) {
                let board = self.clone();
                let added =
                    scope.transact_with(some.to_vec(), move |tx, entries| board.add_absent(tx, entries));
                report.added += added.await?;
            }
            from = page.next;
            if from.is_none() {
                return Ok(corrupt);
            }
        }
    }

    /// Adds those of some entries that their players still have and that are not in the order.
    fn add_absent(&self, tx: &mut Tx<'_, P>, entries: &[Entry<I>]) -> Result<usize> {
        let (players, order) = (tx.raw_name(&self.players), tx.raw_name(&self.order));
        let mut reads = Vec::with_capacity(2 * entries.len());
        for entry in entries {
            reads.push((players.clone(), Read::HGet(part_bytes(&entry.player).into())));
            reads.push((order.clone(), Read::ZScore(encoded::<Ranked<I>>("entry", entry)?.into())));
        }
        let replies = tx.raw_read_many(&reads)?.into_iter().collect::<Result<Vec<_>>>()?;
        let mut added = 0;
        for (entry, replies) in entries.iter().zip(replies.chunks_exact(2)) {
            let is_current =
                decoded(&replies[0]).is_some_and(|stored| stored == Member::Known(entry.clone()));
            if is_current && replies[1] == Reply::Nil {
                tx.zadd(&self.order, entry, 0.0)?;
                added += 1;
            }
        }
        Ok(added)
    }

    /// Walks over the members and removes those that no player has.
    async fn check_members(
        &self,
        scope: &Scope<P>,
        restores_players: bool,
        report: &mut RepairReport,
    ) -> Result<()> {
        let mut after = LexBound::Min;
        loop {
            let slice = ZSlice::Lex(after, LexBound::Max, BOARD_ENTRIES_PER_TURN);
            let board = self.clone();
            let page = scope.read(move |tx| tx.zrange_lossy(&board.order, slice.clone(), false)).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = LexBound::Excluded(match last {
                Member::Known(entry) => encoded::<Ranked<I>>("entry", entry)?.into(),
                Member::External(bytes) => bytes.clone(),
            });
            let is_last = page.len() < BOARD_ENTRIES_PER_TURN;
            let members: Vec<_> = page.into_iter().map(|(member, _)| member).collect();
            let board = self.clone();
            // Which of them are wrong is found by a read, and changed by a transaction only if there are any.
            let (members, wrong) = scope
                .read(move |tx| {
                    let wrong = board.wrong_members(tx, &members)?;
                    Ok::<_, Error>((members.clone(), wrong))
                })
                .await?;
            if !wrong.is_empty() {
                let board = self.clone();
                let (removed, restored) = scope
                    .transact_with(members, move |tx, members| {
                        board.mend_members(tx, members, restores_players)
                    })
                    .await?;
                report.removed += removed;
                report.restored += restored;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The members that are not what their player has, by their place.
    fn wrong_members(&self, tx: &mut ReadTx<'_, P>, members: &[Member<Entry<I>>]) -> Result<Vec<usize>> {
        let known = |member: &Member<Entry<I>>| match member {
            Member::Known(entry) => Some(entry.player.clone()),
            Member::External(_) => None,
        };
        let players: Vec<I> = members.iter().filter_map(known).collect();
        let mut stored = self.stored(tx, &players)?.into_iter();
        let is_wrong = |member: &Member<Entry<I>>| match member {
            Member::Known(_) => stored.next().flatten().as_ref() != Some(member),
            Member::External(_) => true,
        };
        let wrong: Vec<bool> = members.iter().map(is_wrong).collect();
        Ok(wrong.into_iter().enumerate().filter_map(|(place, wrong)| wrong.then_some(place)).collect())
    }

    /// Removes the wrong ones of some members, or gives their players the entry. Returns how many of each.
    fn mend_members(
        &self,
        tx: &mut Tx<'_, P>,
        members: &[Member<Entry<I>>],
        restores_players: bool,
    ) -> Result<(usize, usize)> {
        let (mut removed, mut restored) = (0, 0);
        for place in self.wrong_members(tx, members)? {
            let entry = match &members[place] {
                Member::Known(entry) => entry,
                Member::External(bytes) => {
                    tx.zrem_raw(&self.order, bytes.clone())?;
                    removed += 1;
                    continue;
                }
            };
            if tx.zscore(&self.order, entry)?.is_none() {
                continue;
            }
            // Read again: another member of this page may have restored the player.
            let restores = match self.stored(tx, [&entry.player])?.pop().flatten() {
                None => restores_players,
                Some(Member::Known(stored)) => stored.player != entry.player,
                Some(Member::External(_)) => true,
            };
            if restores {
                tx.hset(&self.players, &entry.player, entry)?;
                restored += 1;
            } else {
                tx.zrem(&self.order, entry)?;
                removed += 1;
            }
        }
        Ok((removed, restored))
    }

    /// Removes those of some fields that still cannot be read.
    fn remove_corrupt(&self, tx: &mut Tx<'_, P>, fields: &[Bytes]) -> Result<Vec<Error>> {
        let key = tx.raw_name(&self.players);
        let reads: Vec<_> = fields.iter().map(|field| (key.clone(), Read::HGet(field.clone()))).collect();
        let mut lost = Vec::new();
        for (field, reply) in fields.iter().zip(tx.raw_read_many(&reads)?) {
            let is_sound = match decoded::<I>(&reply?) {
                None => true,
                Some(Member::Known(entry)) => part_bytes(&entry.player) == field[..],
                Some(Member::External(_)) => false,
            };
            if !is_sound {
                tx.hdel_raw(&self.players, field.clone())?;
                lost.push(corrupt::<M>(
                    &key,
                    format!("field {} was not an entry of its player", show(field)),
                ));
            }
        }
        Ok(lost)
    }

    /// What the hash has for each of these players, also if it is not an entry.
    pub(super) fn stored<'v>(
        &self,
        tx: &mut ReadTx<'_, P>,
        players: impl IntoIterator<Item = &'v I>,
    ) -> Result<Vec<Option<Member<Entry<I>>>>> {
        let key = tx.raw_name(&self.players);
        let read = |player| (key.clone(), Read::HGet(part_bytes(player).into()));
        let reads: Vec<_> = players.into_iter().map(read).collect();
        tx.raw_read_many(&reads)?.into_iter().map(|reply| Ok(decoded(&reply?))).collect()
    }
}

/// A field's value, also if it is not an entry; `None` if there is none.
fn decoded<I: PlayerId>(reply: &Reply) -> Option<Member<Entry<I>>> {
    match reply {
        Reply::Blob(bytes) => {
            let entry = Ranked::<I>::decode(bytes);
            Some(entry.map_or_else(|_| Member::External(bytes.clone()), Member::Known))
        }
        _ => None,
    }
}
