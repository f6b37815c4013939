//! What is played where: decided once, and the same in every process that takes part.

use crate::city_plan::CityPlan;
use emberkeep::games::world::{Field, Tenant};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// Monsters that share a field, unless the number of fields is given.
const MONSTERS_PER_FIELD: u32 = 200;
/// Spots of a field on which a reactor stands, or will again when the spot has cooled down.
pub(super) const SPOTS_PER_FIELD: usize = 12;
/// The map of a tenant's first field.
const FIRST_MAP: u32 = 100_000_000;

/// Who plays where, and for how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Made for this game, so that its counts are exact whatever else the store holds.
    pub tenants: Vec<Uuid>,
    /// Fields of each tenant.
    pub fields: u32,
    /// Monsters that live at the same time, in all fields of all tenants.
    pub monsters: u32,
    /// Players in all processes.
    pub players: u32,
    /// Processes that play on the store.
    pub processes: u32,
    /// How long the players play.
    pub length: Duration,
    /// How long a player rests between two turns.
    pub rest: Duration,
    /// The city beside the fields, if there is one.
    pub city: Option<CityPlan>,
}

/// One field of one tenant. The number of its tenant stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    pub(super) number: usize,
    pub(super) tenant: u16,
    pub(super) field: Field,
}

impl Plan {
    /// Tenants of their own, and as many fields as are asked for, or as suit the monsters.
    pub fn new(tenants: u32, fields: Option<u32>, monsters: u32) -> Plan {
        let suits = monsters.div_ceil(tenants).div_ceil(MONSTERS_PER_FIELD).max(2);
        Plan {
            tenants: (0..tenants).map(|_| Uuid::new_v4()).collect(),
            fields: fields.unwrap_or(suits),
            monsters,
            players: 1,
            processes: 1,
            length: Duration::from_secs(1),
            rest: Duration::ZERO,
            city: None,
        }
    }

    /// The tenant of a number.
    pub(super) fn tenant(&self, number: u16) -> Tenant {
        Tenant(self.tenants[usize::from(number)])
    }

    /// All tenants, with their numbers.
    pub(super) fn tenants(&self) -> impl Iterator<Item = (u16, Tenant)> + '_ {
        self.tenants.iter().enumerate().map(|(number, id)| (number as u16, Tenant(*id)))
    }

    /// The number of a tenant, if it is one of the game's.
    pub(super) fn number_of(&self, tenant: Tenant) -> Option<u16> {
        self.tenants.iter().position(|id| *id == tenant.0).map(|number| number as u16)
    }

    /// How many fields there are, of all tenants.
    pub(super) fn grounds(&self) -> usize {
        self.tenants.len() * self.fields as usize
    }

    /// A field by its number among all of them.
    pub(super) fn ground(&self, number: usize) -> Ground {
        let fields = self.fields as usize;
        let field =
            Field { world: 0, channel: 1, map: FIRST_MAP + (number % fields) as u32, instance: Uuid::nil() };
        Ground { number, tenant: (number / fields) as u16, field }
    }

    /// The ground on which something of a tenant stands.
    pub(super) fn ground_of(&self, tenant: u16, field: &Field) -> Ground {
        let place = (field.map.saturating_sub(FIRST_MAP)).min(self.fields - 1);
        self.ground(usize::from(tenant) * self.fields as usize + place as usize)
    }

    /// Monsters that are spawned on a ground when the game begins. They walk about later, but only within their tenant.
    pub(super) fn monsters_of(&self, ground: usize) -> usize {
        let (all, grounds) = (self.monsters as usize, self.grounds());
        all / grounds + usize::from(ground < all % grounds)
    }

    /// Monsters of a tenant that live at any time.
    pub(super) fn monsters_of_tenant(&self, tenant: u16) -> usize {
        let fields = self.fields as usize;
        let first = usize::from(tenant) * fields;
        (first..first + fields).map(|ground| self.monsters_of(ground)).sum()
    }

    /// The players of one process: numbers of characters, from 1.
    pub(super) fn players_of(&self, process: u32) -> std::ops::Range<u32> {
        let (share, rest) = (self.players / self.processes, self.players % self.processes);
        let first = 1 + process * share + process.min(rest);
        first..first + share + u32::from(process < rest)
    }

    /// What is simulated on which store, in one line.
    pub(super) fn title(&self, store: &str) -> String {
        let (players, monsters) = (several(self.players, "player"), several(self.monsters, "monster"));
        let (tenants, fields) = (several(self.tenants.len(), "tenant"), several(self.grounds(), "field"));
        let mut title = format!("{players} hit {monsters} on {store}, in {fields} of {tenants}");
        if self.processes > 1 {
            title.push_str(&format!(", {} processes", self.processes));
        }
        title
    }
}

/// A number of things.
fn several(count: impl std::fmt::Display + PartialEq + From<u8>, thing: &str) -> String {
    let end = if count == 1.into() { "" } else { "s" };
    format!("{count} {thing}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_player_has_exactly_one_place() {
        let mut plan = Plan::new(3, Some(4), 1_001);
        (plan.players, plan.processes) = (10, 4);
        assert_eq!((0..plan.grounds()).map(|ground| plan.monsters_of(ground)).sum::<usize>(), 1_001);
        assert_eq!((0..3).map(|tenant| plan.monsters_of_tenant(tenant)).sum::<usize>(), 1_001);
        let players: Vec<u32> = (0..4).flat_map(|process| plan.players_of(process)).collect();
        assert_eq!(players, (1..=10).collect::<Vec<_>>());
        for number in 0..plan.grounds() {
            let ground = plan.ground(number);
            assert_eq!(plan.ground_of(ground.tenant, &ground.field), ground);
            assert_eq!(plan.number_of(plan.tenant(ground.tenant)), Some(ground.tenant));
        }
    }

    #[test]
    fn the_title_counts_as_people_do() {
        let plan = Plan::new(2, Some(3), 1);
        assert_eq!(plan.title("a store"), "1 player hit 1 monster on a store, in 6 fields of 2 tenants");
        let alone = Plan { players: 9, processes: 4, ..Plan::new(1, Some(1), 20) };
        assert_eq!(alone.title("x"), "9 players hit 20 monsters on x, in 1 field of 1 tenant, 4 processes");
    }

    #[test]
    fn fields_grow_with_the_monsters() {
        assert_eq!(Plan::new(2, None, 1).fields, 2);
        assert_eq!(Plan::new(2, None, 1_000).fields, 3);
        assert_eq!(Plan::new(1, None, 1_000_000).fields, 5_000);
    }
}
