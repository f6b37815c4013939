//! Boards into history: changed scores go through an outbox of the boards' own partition, in the transaction that forgets
//! that they changed. So history follows each board exactly, whatever is killed in between.
//!
//! Budget: [`BOARD_MOVES_PER_UPDATE`] scores in a transaction, [`BOARD_UPDATES_PER_PASS`] transactions in a pass, a pass every
//! [`BOARD_STORED_EVERY`].

use super::super::archive::boards::daily_changes;
use super::super::history::{AllTimeBoard, BoardCategory};
use super::super::limits::{BOARD_MOVES_PER_UPDATE, BOARD_STORED_EVERY, BOARD_UPDATES_PER_PASS};
use super::model::{BoardChange, BoardUpdate, Moved, Period, ShownName};
use super::tables::BoardScore;
use super::{
    BOARD_BEGUN, BOARD_CHANGED, BOARD_NAMES, BOARD_POSITION, BOARDS_DRAINER, BOARDS_LOG, Boards, CATEGORIES,
    DAY_STORED, Leaderboards, category_name, day_board, day_name, ever_board, on_board,
};
use crate::darkages::archive::Archive;
use crate::darkages::archive::boards::ScoreChange;
use crate::darkages::archive::limits::ALL_TIME_ENTRIES_MAX;
use crate::darkages::events::word;
use emberkeep_history::outbox::{Consumer, DrainError};
use emberkeep_history::{Batch, History, Rejection};
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, ReadTx, Tx};
use emberkeep_schema::Day;
use std::collections::BTreeMap;

impl Boards {
    /// The consumer that brings the boards into history. While it has the lease it sends changed scores about once a second;
    /// before that, boards that are new or were lost are restored from history, once what is in the consumer's spool is there.
    pub fn consumer(&self, history: &History) -> Result<Consumer, DrainError> {
        let (boards, archive) = (self.clone(), Archive::new(history.clone()));
        Ok(self.plain_consumer(history)?.poll_every(BOARD_STORED_EVERY).filled_by(move |is_spooled| {
            let (boards, archive) = (boards.clone(), archive.clone());
            Box::pin(async move {
                if !is_spooled {
                    boards.begin(&archive).await?;
                }
                Ok(boards.send_changes().await.map(drop)?)
            })
        }))
    }

    /// The consumer of the boards' outbox, which sends nothing itself.
    pub(super) fn plain_consumer(&self, history: &History) -> Result<Consumer, DrainError> {
        Consumer::new(&self.scope, BOARDS_LOG.key(), BOARDS_DRAINER.key(), history.clone(), project)
    }

    /// Appends the scores that changed to the boards' outbox. Returns how many; more may wait. Boards that were not restored send
    /// none: history may have more of their players.
    pub(super) async fn send_changes(&self) -> hot::Result<usize> {
        if self.scope.get(&BOARD_BEGUN.key()).await?.is_none() {
            return Ok(0);
        }
        let (mut sent, mut updates) = (0, 0);
        while updates < BOARD_UPDATES_PER_PASS {
            let page = self.scope.members(&BOARD_CHANGED.key(), None, BOARD_MOVES_PER_UPDATE).await?;
            if page.members.is_empty() {
                break;
            }
            let groups = self.grouped(page.members).await?;
            for ((place, period), players) in groups {
                for players in players.chunks(BOARD_MOVES_PER_UPDATE) {
                    let scope = self.named("darkages.board.send");
                    let send = move |tx: &mut Tx<'_, Leaderboards>, players: &Vec<i64>| {
                        send(tx, CATEGORIES[place], period, players)
                    };
                    scope.transact_with(players.to_vec(), send).await?;
                    (sent, updates) = (sent + players.len(), updates + 1);
                }
            }
        }
        Ok(sent)
    }

    /// Players by board. What an external client put into the set is removed.
    async fn grouped(
        &self,
        members: Vec<Member<String>>,
    ) -> hot::Result<BTreeMap<(usize, Period), Vec<i64>>> {
        let (mut groups, mut rubbish) = (BTreeMap::<_, Vec<i64>>::new(), Vec::new());
        for member in members {
            match &member {
                Member::Known(text) if let Some((board, player)) = parsed(text) => {
                    groups.entry(board).or_default().push(player);
                }
                Member::Known(text) => rubbish.push(bytes::Bytes::from(text.clone().into_bytes())),
                Member::External(bytes) => rubbish.push(bytes.clone()),
            }
        }
        if !rubbish.is_empty() {
            let remove = self.scope.transact_with(rubbish, |tx, rubbish| {
                rubbish.iter().try_for_each(|member| tx.srem_raw(&BOARD_CHANGED.key(), member.clone()))
            });
            remove.await?;
        }
        Ok(groups)
    }
}

/// A player of a board that changed, as text: category, day or `ever`, and player.
pub(super) fn changed_member(category: BoardCategory, period: Period, player: i64) -> String {
    match period {
        Period::Day(day) => format!("{} {} {player}", category.text(), day.number()),
        Period::AllTime => format!("{} ever {player}", category.text()),
    }
}

fn parsed(text: &str) -> Option<((usize, Period), i64)> {
    let mut words = text.split(' ');
    let (category, period, player) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    let place = CATEGORIES.iter().position(|one| one.text() == category)?;
    let period = match period {
        "ever" => Period::AllTime,
        day => Period::Day(Day::from_number(day.parse().ok()?)?),
    };
    words.next().is_none().then_some(((place, period), player))
}

/// Sends the scores of some players of one board.
fn send(
    tx: &mut Tx<'_, Leaderboards>,
    category: BoardCategory,
    period: Period,
    players: &[i64],
) -> hot::Result<()> {
    if tx.get(&BOARD_BEGUN.key())?.is_none() {
        return Ok(());
    }
    let entries = on_board!(category, period, |board| board.entries(tx, players))?;
    let names = names_of(tx, players)?;
    let before = match period {
        Period::Day(day) => tx.hmget(&DAY_STORED.key(category_name(category), day_name(day)), players)?,
        Period::AllTime => vec![None; players.len()],
    };
    let moves = entries.into_iter().zip(names).zip(before).filter_map(|((entry, name), before)| {
        let entry = entry?;
        Some(Moved {
            player_id: entry.player,
            name,
            before,
            score: entry.score,
            reached_at: entry.reached_at,
        })
    });
    let moves: Vec<_> = moves.collect();
    let members: Vec<_> = players.iter().map(|player| changed_member(category, period, *player)).collect();
    tx.srem_many(&BOARD_CHANGED.key(), &members)?;
    if moves.is_empty() {
        return Ok(());
    }
    match period {
        Period::Day(day) => {
            let scores = moves.iter().map(|moved| (&moved.player_id, &moved.score));
            tx.hset_many(&DAY_STORED.key(category_name(category), day_name(day)), scores)?;
            append(tx, category, BoardChange::Day(day.number(), moves))
        }
        Period::AllTime => {
            append(tx, category, BoardChange::Ever(moves))?;
            let best = ever_board(category).top(tx, ALL_TIME_ENTRIES_MAX)?;
            let ids: Vec<_> = best.iter().map(|standing| standing.player).collect();
            let rows = best.iter().zip(names_of(tx, &ids)?);
            let rows = rows.map(|(standing, name)| (standing.player, name, standing.score)).collect();
            append(tx, category, BoardChange::Top(rows))
        }
    }
}

/// The names that boards show for some players.
fn names_of(tx: &mut ReadTx<'_, Leaderboards>, players: &[i64]) -> hot::Result<Vec<String>> {
    let names: Vec<Option<ShownName>> = tx.hmget(&BOARD_NAMES.key(), players)?;
    let name = |(player, name): (&i64, Option<ShownName>)| {
        name.map_or_else(|| player.to_string(), |shown| shown.name)
    };
    Ok(players.iter().zip(names).map(name).collect())
}

/// Appends a change with the next position: above the last one, and the engine's time in microseconds at least.
fn append(tx: &mut Tx<'_, Leaderboards>, category: BoardCategory, change: BoardChange) -> hot::Result<()> {
    let position = next_position(tx)?;
    tx.put(&BOARD_POSITION.key(), &position)?;
    tx.append(&BOARDS_LOG.key(), &BoardUpdate { position, category: category.text().to_owned(), change })
}

fn next_position(tx: &mut Tx<'_, Leaderboards>) -> hot::Result<i64> {
    let last = tx.get(&BOARD_POSITION.key())?.unwrap_or(0);
    Ok(last.saturating_add(1).max(tx.now().saturating_mul(1_000)))
}

/// The rows of a change.
fn project(update: &BoardUpdate, batch: &mut Batch) -> Result<(), Rejection> {
    let (position, category) = (update.position, word::<BoardCategory>(&update.category)?);
    match &update.change {
        BoardChange::Day(number, moves) => {
            let day = Day::from_number(*number)
                .ok_or_else(|| Rejection::new(format!("{number} is not a day since 1970")))?;
            let changes = moves.iter().map(|moved| ScoreChange {
                player_id: moved.player_id,
                player_name: moved.name.clone(),
                before: moved.before,
                score: moved.score,
            });
            let (removed, rows) = daily_changes(category, day, changes.collect());
            removed.into_iter().try_for_each(|key| batch.delete_at(key, position))?;
            rows.into_iter().try_for_each(|row| batch.upsert_at(row, position))
        }
        BoardChange::Ever(moves) => moves.iter().try_for_each(|moved| {
            let Moved { player_id, score, reached_at, .. } = *moved;
            batch.upsert_at(
                BoardScore::new(category, player_id, moved.name.clone(), score, reached_at),
                position,
            )
        }),
        BoardChange::Top(entries) => {
            batch.upsert_at(AllTimeBoard { category, entries: entries.clone() }, position)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_changed_scores_are_read_back() {
        let day = Day::from_number(19_000).unwrap();
        for (place, category) in CATEGORIES.into_iter().enumerate() {
            for period in [Period::Day(day), Period::AllTime] {
                let text = changed_member(category, period, i64::MIN);
                assert_eq!(parsed(&text), Some(((place, period), i64::MIN)), "{text}");
            }
        }
        for text in ["", "kills", "kills ever", "kills ever 1 2", "kills -1 1", "luck ever 1", "kills ever x"]
        {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
