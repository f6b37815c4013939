//! What calls reported, by player.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a player did, and what was done to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlayerBook {
    pub(crate) hits: u64,
    pub(crate) damage_dealt: i64,
    pub(crate) damage_taken: i64,
    pub(crate) kills: i64,
    pub(crate) deaths: i64,
    /// Sessions that it ended.
    pub(crate) sessions: u64,
}

impl PlayerBook {
    fn add(&mut self, other: PlayerBook) {
        self.hits += other.hits;
        self.damage_dealt += other.damage_dealt;
        self.damage_taken += other.damage_taken;
        self.kills += other.kills;
        self.deaths += other.deaths;
        self.sessions += other.sessions;
    }
}

/// The books of all players of a process, or of all processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CityLedger {
    books: BTreeMap<i64, PlayerBook>,
    /// Changes of zones within a shard.
    pub(crate) moves: u64,
    /// Hand-offs to a zone, of any shard.
    pub(crate) hand_offs: u64,
    /// Looks at all zones at once.
    pub(crate) inspections: u64,
}

impl CityLedger {
    pub(crate) fn book(&mut self, player: i64) -> &mut PlayerBook {
        self.books.entry(player).or_default()
    }

    /// What is in a player's book; nothing if it has none.
    pub(crate) fn of(&self, player: i64) -> PlayerBook {
        self.books.get(&player).copied().unwrap_or_default()
    }

    /// All books as one.
    pub(crate) fn sums(&self) -> PlayerBook {
        let mut sums = PlayerBook::default();
        self.books.values().for_each(|book| sums.add(*book));
        sums
    }

    /// A hit with its outcome.
    pub(crate) fn hit(&mut self, attacker: i64, target: i64, damage: i32, killed: bool) {
        let dealt = self.book(attacker);
        dealt.hits += 1;
        dealt.damage_dealt += i64::from(damage);
        dealt.kills += i64::from(killed);
        let taken = self.book(target);
        taken.damage_taken += i64::from(damage);
        taken.deaths += i64::from(killed);
    }

    pub(crate) fn merge(&mut self, other: CityLedger) {
        other.books.into_iter().for_each(|(player, book)| self.book(player).add(book));
        self.moves += other.moves;
        self.hand_offs += other.hand_offs;
        self.inspections += other.inspections;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_of_processes_add_up() {
        let (mut one, mut other) = (CityLedger::default(), CityLedger::default());
        one.hit(1, 2, 30, false);
        other.hit(1, 2, 70, true);
        other.hit(2, 1, 5, false);
        other.book(2).sessions = 1;
        one.merge(serde_json::from_str(&serde_json::to_string(&other).unwrap()).unwrap());
        let first =
            PlayerBook { hits: 2, damage_dealt: 100, kills: 1, damage_taken: 5, ..PlayerBook::default() };
        assert_eq!(one.of(1), first);
        assert_eq!((one.of(2).deaths, one.of(2).sessions, one.sums().hits), (1, 1, 3));
    }
}
