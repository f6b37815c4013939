//! What the players count: for the view while they play, for the check when they are done.

use super::histogram::{Counts, Histogram};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counters shared by some of the players: not by all, so that they do not wait for one cache line.
pub(super) struct Tally {
    pub(super) hits: AtomicU64,
    pub(super) kills: AtomicU64,
    /// Hits on a monster that somebody else killed or removed a moment ago.
    pub(super) late: AtomicU64,
    /// Calls that the store refused for now; nothing was written.
    pub(super) refused: AtomicU64,
    pub(super) latency: Histogram,
}

impl Tally {
    pub(super) fn new() -> Tally {
        let zero = || AtomicU64::new(0);
        Tally { hits: zero(), kills: zero(), late: zero(), refused: zero(), latency: Histogram::new() }
    }
}

/// All counters at one moment.
#[derive(Clone)]
pub(super) struct Totals {
    pub(super) hits: u64,
    pub(super) kills: u64,
    pub(super) late: u64,
    pub(super) refused: u64,
    pub(super) latency: Counts,
}

impl Totals {
    pub(super) fn of(tallies: &[Tally]) -> Totals {
        let sum = |counter: fn(&Tally) -> &AtomicU64| {
            tallies.iter().map(|tally| counter(tally).load(Relaxed)).sum()
        };
        let mut latency = Counts::none();
        tallies.iter().for_each(|tally| latency.take_in(&tally.latency));
        Totals {
            hits: sum(|tally| &tally.hits),
            kills: sum(|tally| &tally.kills),
            late: sum(|tally| &tally.late),
            refused: sum(|tally| &tally.refused),
            latency,
        }
    }
}

/// Damage by monster and character.
pub(super) type Damage = HashMap<(u32, u32), u64>;

/// What one player did and saw. Ids are used again, so a monster here is everyone who ever had that id.
#[derive(Default)]
pub(super) struct Ledger {
    /// What its hits took.
    pub(super) struck: Damage,
    /// What the corpses said that it removed.
    pub(super) buried: Damage,
}

impl Ledger {
    pub(super) fn merge(&mut self, other: Ledger) {
        other.struck.into_iter().for_each(|(who, damage)| *self.struck.entry(who).or_default() += damage);
        other.buried.into_iter().for_each(|(who, damage)| *self.buried.entry(who).or_default() += damage);
    }
}

/// What must not happen and did.
#[derive(Default)]
pub(super) struct Violations {
    told: Mutex<Vec<String>>,
    any: AtomicBool,
}

impl Violations {
    pub(super) fn tell(&self, violation: String) {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(violation);
        self.any.store(true, Relaxed);
    }

    /// Whether there is one already: the game is over.
    pub(super) fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}
