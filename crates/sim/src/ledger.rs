//! Double-entry books of one actor, one process, or all: what calls *reported*, beside what records *contain*.
//!
//! No process coordinates the others, so each caller enters the result of its calls: a monster was spawned, a hit took so
//! much, a tick was handed to it. The other side comes from records at their end. Exactly one caller is given the record that
//! it removed, and enters what it says; what still lives when the game is over is entered by the check. Then both sides
//! of every account are equal, whichever process entered what. A lost hit, a second killer, a tick handed out twice or an
//! id with two owners makes them differ.
//!
//! Ids of monsters are used again at once, so a monster here is everyone who ever had that id.

use emberkeep::games::monsters::{DropDue, DropTimer, EffectsRun, Monster, MonsterId, StatusEffect};
use emberkeep::games::reactors::Reactor;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// What is counted on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Quantity {
    /// Damage to a monster by a character, hits and ticks.
    Damage(u32, u32),
    /// Spawns of an id; records that were removed or are there.
    Lives(u32),
    /// Kills of an id; records without health.
    Deaths(u32),
    /// Healing; damage that a record remembers beyond the health that it lacks.
    Healing(u32),
    /// Mana that spells took; mana that a record lacks.
    Mana(u32),
    /// Effects that were applied; effects that ended, were driven out, or went with their monster.
    Effects(u32),
    /// Ticks that were handed out; ticks that effects had run at their end.
    Ticks(u32),
    /// Reactors that were created on a spot of a map; those that triggered, were destroyed, or stand there.
    Reactors(u32, i16),
    /// Hits that led to a further state; states that reactors had reached at their end.
    States(u32, i16),
}

/// An account of a tenant, by the tenant's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Account(pub(super) u16, pub(super) Quantity);

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Account(tenant, of) = self;
        match of {
            Quantity::Damage(monster, character) => {
                write!(f, "damage to monster {monster} by player {character}")
            }
            Quantity::Lives(monster) => write!(f, "lives of monster {monster}"),
            Quantity::Deaths(monster) => write!(f, "deaths of monster {monster}"),
            Quantity::Healing(monster) => write!(f, "healing of monster {monster}"),
            Quantity::Mana(monster) => write!(f, "mana of monster {monster}"),
            Quantity::Effects(monster) => write!(f, "effects on monster {monster}"),
            Quantity::Ticks(monster) => write!(f, "ticks on monster {monster}"),
            Quantity::Reactors(map, x) => write!(f, "reactors at {x} of map {map}"),
            Quantity::States(map, x) => write!(f, "states of the reactors at {x} of map {map}"),
        }?;
        write!(f, " of tenant {tenant}")
    }
}

/// Both sides of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) reported: i64,
    pub(super) recorded: i64,
}

/// A drop timer from its registration to its end. The attack that it was registered with tells it from others.
pub(super) type TimerKey = (u16, u32, u32);

/// The reported life of a drop timer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TimerBook {
    /// When it was registered; `None` if no call reported that.
    pub(super) since: Option<i64>,
    /// When it dropped, in the order of the reports.
    pub(super) drops: Vec<i64>,
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The ledger of one actor, one process, or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "LedgerJson", from = "LedgerJson")]
pub(super) struct Ledger {
    accounts: Map<Account, Sides>,
    timers: Map<TimerKey, TimerBook>,
}

impl Ledger {
    /// Enters the result of a call.
    pub(super) fn report(&mut self, tenant: u16, of: Quantity, amount: impl Into<i64>) {
        self.side(tenant, of, amount.into(), |sides| &mut sides.reported);
    }

    /// Enters what a record contains.
    pub(super) fn record(&mut self, tenant: u16, of: Quantity, amount: impl Into<i64>) {
        self.side(tenant, of, amount.into(), |sides| &mut sides.recorded);
    }

    fn side(&mut self, tenant: u16, of: Quantity, amount: i64, side: fn(&mut Sides) -> &mut i64) {
        if amount != 0 {
            *side(self.accounts.entry(Account(tenant, of)).or_default()) += amount;
        }
    }

    /// A monster's record came to its end, or is there at the end of the game.
    pub(super) fn monster_over(&mut self, tenant: u16, monster: &Monster) {
        let id = monster.id.0;
        let mut damage = 0;
        for entry in &monster.damage {
            damage += i64::from(entry.damage);
            self.record(tenant, Quantity::Damage(id, entry.character.0), i64::from(entry.damage));
        }
        self.record(tenant, Quantity::Lives(id), 1);
        self.record(tenant, Quantity::Deaths(id), !monster.is_alive());
        self.record(
            tenant,
            Quantity::Healing(id),
            damage - (i64::from(monster.max_hp) - i64::from(monster.hp)),
        );
        self.record(tenant, Quantity::Mana(id), i64::from(monster.max_mp) - i64::from(monster.mp));
        for effect in &monster.effects {
            self.effect_over(tenant, monster.id, effect);
        }
    }

    /// An effect came to its end, in whichever way.
    pub(super) fn effect_over(&mut self, tenant: u16, monster: MonsterId, effect: &StatusEffect) {
        self.record(tenant, Quantity::Effects(monster.0), 1);
        if effect.tick_interval_ms > 0 && effect.last_tick_ms > 0 {
            let ticks = (effect.last_tick_ms - effect.created_at_ms) / effect.tick_interval_ms;
            self.record(tenant, Quantity::Ticks(monster.0), ticks);
        }
    }

    /// Time passed over a monster's effects. Gives the number of ticks.
    pub(super) fn effects_ran(&mut self, tenant: u16, run: &EffectsRun) -> u64 {
        for tick in &run.ticks {
            self.report(tenant, Quantity::Ticks(run.id.0), tick.count as i64);
            self.report(tenant, Quantity::Damage(run.id.0, tick.effect.source_character.0), tick.damage);
        }
        for effect in &run.expired {
            self.effect_over(tenant, run.id, effect);
        }
        run.ticks.iter().map(|tick| tick.count).sum()
    }

    /// A reactor came to its end, or is there at the end of the game. It begins in state 0 and each hit leads to the next.
    pub(super) fn reactor_over(&mut self, tenant: u16, reactor: &Reactor) {
        self.record(tenant, Quantity::Reactors(reactor.map, reactor.x), 1);
        self.record(tenant, Quantity::States(reactor.map, reactor.x), reactor.state);
    }

    /// A drop timer was registered.
    pub(super) fn timer_began(&mut self, tenant: u16, id: MonsterId, timer: &DropTimer) {
        self.timers.entry((tenant, id.0, timer.weapon_attack)).or_default().since =
            Some(timer.last_drop_at_ms);
    }

    /// A drop was handed out.
    pub(super) fn dropped(&mut self, tenant: u16, due: &DropDue) {
        let key = (tenant, due.id.0, due.timer.weapon_attack);
        self.timers.entry(key).or_default().drops.push(due.timer.last_drop_at_ms);
    }

    /// Adds the ledger of another actor or process.
    pub(super) fn merge(&mut self, other: Ledger) {
        for (account, sides) in other.accounts {
            let sum = self.accounts.entry(account).or_default();
            sum.reported += sides.reported;
            sum.recorded += sides.recorded;
        }
        for (key, book) in other.timers {
            let all = self.timers.entry(key).or_default();
            all.since = all.since.or(book.since);
            all.drops.extend(book.drops);
        }
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = (&Account, &Sides)> {
        self.accounts.iter()
    }

    pub(super) fn timers(&self) -> impl Iterator<Item = (&TimerKey, &TimerBook)> {
        self.timers.iter()
    }
}

/// The ledger as JSON, where a map whose keys are not texts is a list.
#[derive(Serialize, Deserialize)]
struct LedgerJson {
    accounts: Vec<(Account, i64, i64)>,
    timers: Vec<(TimerKey, Option<i64>, Vec<i64>)>,
}

impl From<Ledger> for LedgerJson {
    fn from(ledger: Ledger) -> LedgerJson {
        LedgerJson {
            accounts: ledger
                .accounts
                .into_iter()
                .map(|(key, sides)| (key, sides.reported, sides.recorded))
                .collect(),
            timers: ledger.timers.into_iter().map(|(key, book)| (key, book.since, book.drops)).collect(),
        }
    }
}

impl From<LedgerJson> for Ledger {
    fn from(written: LedgerJson) -> Ledger {
        let sides = |(key, reported, recorded)| (key, Sides { reported, recorded });
        let book = |(key, since, drops)| (key, TimerBook { since, drops });
        Ledger {
            accounts: written.accounts.into_iter().map(sides).collect(),
            timers: written.timers.into_iter().map(book).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledgers_survive_the_way_to_another_process_and_add_up() {
        let mut one = Ledger::default();
        one.report(0, Quantity::Damage(7, 1), 4);
        one.record(0, Quantity::Lives(7), true);
        one.record(0, Quantity::Deaths(7), false);
        one.timers.insert((0, 7, 3), TimerBook { since: Some(100), drops: vec![] });
        let mut other = Ledger::default();
        other.record(0, Quantity::Damage(7, 1), 4);
        other.timers.insert((0, 7, 3), TimerBook { since: None, drops: vec![200] });
        let journey = serde_json::to_string(&other).unwrap();
        one.merge(serde_json::from_str(&journey).unwrap());
        let mut accounts: Vec<_> = one.accounts().map(|(account, sides)| (*account, *sides)).collect();
        accounts.sort_by_key(|(account, _)| *account);
        let (both, one_side) = (Sides { reported: 4, recorded: 4 }, Sides { reported: 0, recorded: 1 });
        assert_eq!(
            accounts,
            [(Account(0, Quantity::Damage(7, 1)), both), (Account(0, Quantity::Lives(7)), one_side)]
        );
        let timers: Vec<_> = one.timers().collect();
        assert_eq!(timers, [(&(0, 7, 3), &TimerBook { since: Some(100), drops: vec![200] })]);
    }
}
