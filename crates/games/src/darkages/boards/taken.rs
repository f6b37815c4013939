//! Scores that boards took before they were restored from history.
//!
//! Until then a board has them alone. They are noted beside it, in the transaction that changes it; the restored score of a
//! player is that of history and what is noted. So a restore may end at any point and begin again, and nothing counts twice: the
//! notes go in the transaction that says that all boards are restored.

use super::{
    BoardCategory, DAY_TAKEN, EVER_TAKEN, Leaderboards, Period, category_name, day_board, day_name,
    ever_board, on_board,
};
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::leaderboard::{Change, Entry};
use std::collections::{BTreeMap, HashMap};

/// Players that one read finds.
const TAKEN_PER_READ: usize = 250;

/// Calls a function of the key of what a board took, whatever its type.
macro_rules! on_taken {
    ($board:expr, |$key:ident| $call:expr) => {
        match $board {
            (category, Period::Day(day)) => {
                let $key = DAY_TAKEN.key(category_name(category), day_name(day));
                $call
            }
            (category, Period::AllTime) => {
                let $key = EVER_TAKEN.key(category_name(category));
                $call
            }
        }
    };
}

/// Notes changes of a board that was not restored.
pub(super) fn note(
    tx: &mut Tx<'_, Leaderboards>,
    board: (BoardCategory, Period),
    changes: &[Change<i64>],
) -> hot::Result<()> {
    let mut amounts = BTreeMap::<i64, i64>::new();
    for change in changes {
        if let Change::Add { player, delta, .. } = change {
            let amount = amounts.entry(*player).or_default();
            // The board has refused a sum that leaves 64 bits.
            *amount = amount.saturating_add(*delta);
        }
    }
    on_taken!(board, |key| amounts.iter().try_for_each(|(player, amount)| tx.hincr_by(&key, player, *amount)))
}

/// Forgets what a board took.
pub(super) fn forget(tx: &mut Tx<'_, Leaderboards>, board: (BoardCategory, Period)) -> hot::Result<()> {
    on_taken!(board, |key| tx.del(&key))
}

/// What a board took.
#[derive(Default)]
pub(super) struct Taken(HashMap<i64, TakenScore>);

struct TakenScore {
    amount: i64,
    reached_at: i64,
    /// History has a score of the player, which was joined with this one.
    is_joined: bool,
}

impl Taken {
    /// What a board took, which takes nothing meanwhile.
    pub(super) async fn read(
        scope: &Scope<Leaderboards>,
        board: (BoardCategory, Period),
        now: i64,
    ) -> hot::Result<Taken> {
        let (mut taken, mut from) = (HashMap::new(), None);
        loop {
            let page = on_taken!(board, |key| scope.fields(&key, from, TAKEN_PER_READ).await?);
            let known = page
                .fields
                .into_iter()
                .filter_map(|(player, amount)| Some((player.known()?, amount.known()?)));
            let amounts: Vec<(i64, i64)> = known.collect();
            for amounts in amounts.chunks(TAKEN_PER_READ) {
                let times = times(scope, board, amounts, now).await?;
                taken.extend(amounts.iter().zip(times).map(|((player, amount), reached_at)| {
                    (*player, TakenScore { amount: *amount, reached_at, is_joined: false })
                }));
            }
            from = page.next;
            if from.is_none() {
                return Ok(Taken(taken));
            }
        }
    }

    /// Whether the board took nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The score of history with what the board took.
    pub(super) fn joined(&mut self, entry: Entry<i64>) -> Entry<i64> {
        let Some(taken) = self.0.get_mut(&entry.player) else { return entry };
        taken.is_joined = true;
        Entry { score: entry.score.saturating_add(taken.amount), reached_at: taken.reached_at, ..entry }
    }

    /// The scores of players of whom history has none.
    pub(super) fn rest(self) -> impl Iterator<Item = Entry<i64>> {
        let rest = self.0.into_iter().filter(|(_, taken)| !taken.is_joined);
        rest.map(|(player, taken)| Entry { player, score: taken.amount, reached_at: taken.reached_at })
    }
}

/// When the players reached what is on the board.
async fn times(
    scope: &Scope<Leaderboards>,
    (category, period): (BoardCategory, Period),
    amounts: &[(i64, i64)],
    now: i64,
) -> hot::Result<Vec<i64>> {
    let players: Vec<_> = amounts.iter().map(|(player, _)| *player).collect();
    let count = players.len();
    let entries =
        scope.read(move |tx| on_board!(category, period, |board| board.entries(tx, &players))).await;
    let entries = match entries {
        // The restore mends the board.
        Err(error) if error.is_corrupt() => vec![None; count],
        entries => entries?,
    };
    Ok(entries.into_iter().map(|entry| entry.map_or(now, |entry| entry.reached_at)).collect())
}
