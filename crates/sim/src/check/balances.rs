//! One winner and exact sums: what calls reported is what records contain, those that were removed and those that remain.

use super::state::StoreState;
use crate::ledger::{Account, Ledger, Quantity, Sides};
use crate::plan::Plan;
use std::collections::BTreeMap;

/// Both sides of all accounts, after the living have been entered.
pub(super) fn violations(plan: &Plan, ledger: &Ledger, state: &StoreState) -> Vec<String> {
    let mut ledger = ledger.clone();
    state.monsters.iter().for_each(|(tenant, monster)| ledger.monster_over(*tenant, monster));
    state.reactors.iter().for_each(|(tenant, reactor)| ledger.reactor_over(*tenant, reactor));
    let mut unequal: Vec<_> =
        ledger.accounts().filter(|(_, sides)| sides.reported != sides.recorded).collect();
    unequal.sort_by_key(|(account, _)| **account);
    let describe = |(account, sides): (&Account, &Sides)| {
        format!("{account}: calls reported {}, records contain {}", sides.reported, sides.recorded)
    };
    let mut wrong: Vec<String> = unequal.into_iter().map(describe).collect();
    population(plan, state, &mut wrong);
    wrong
}

/// The actor that removed a monster spawned another one: as many live as in the beginning, and no dead one is left.
fn population(plan: &Plan, state: &StoreState, wrong: &mut Vec<String>) {
    let mut living: BTreeMap<u16, usize> = plan.tenants().map(|(tenant, _)| (tenant, 0)).collect();
    for (tenant, monster) in &state.monsters {
        *living.entry(*tenant).or_default() += 1;
        if !monster.is_alive() {
            wrong.push(format!(
                "monster {} of tenant {tenant} is dead, and who killed it did not remove it",
                monster.id
            ));
        }
    }
    for (tenant, count) in living {
        let expected = plan.monsters_of_tenant(tenant);
        if count != expected {
            wrong.push(format!("{count} monsters of tenant {tenant} are there, expected {expected}"));
        }
    }
}

/// Sums of what calls reported, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) accounts: u64,
    pub(super) damage: u64,
    pub(super) healing: u64,
    pub(super) kills: u64,
    pub(super) removals: u64,
    pub(super) ticks: u64,
    pub(super) drops: u64,
    /// Reactors that came to their end.
    pub(super) reactors: u64,
}

impl Sums {
    pub(super) fn of(ledger: &Ledger) -> Sums {
        let mut sums = Sums::default();
        for (account, sides) in ledger.accounts() {
            let (reported, recorded) = (sides.reported.unsigned_abs(), sides.recorded.unsigned_abs());
            match account.1 {
                Quantity::Damage(..) => {
                    (sums.damage, sums.accounts) = (sums.damage + reported, sums.accounts + 1)
                }
                Quantity::Lives(_) => sums.removals += recorded,
                Quantity::Deaths(_) => sums.kills += reported,
                Quantity::Healing(_) => sums.healing += reported,
                Quantity::Ticks(_) => sums.ticks += reported,
                Quantity::Reactors(..) => sums.reactors += recorded,
                Quantity::Mana(_) | Quantity::Effects(_) | Quantity::States(..) => {}
            }
        }
        sums.drops = ledger.timers().map(|(_, book)| book.drops.len() as u64).sum();
        sums
    }
}
