//! A monster for the tests of the rules.

use crate::monsters::{DamageEntries, Monster, MonsterId};
use crate::world::CharacterId;
use emberkeep_schema::{Array, Extra};
use uuid::Uuid;

pub(super) fn monster(hp: u32) -> Monster {
    Monster {
        id: MonsterId(1_000_000_000),
        tenant_id: None,
        region: String::new(),
        major_version: 0,
        minor_version: 0,
        world: 0,
        channel: 1,
        map: 100_000_000,
        instance: Uuid::nil(),
        template: 100_100,
        max_hp: hp,
        hp,
        max_mp: 0,
        mp: 0,
        controller: CharacterId(0),
        x: 0,
        y: 0,
        fh: 0,
        stance: 0,
        team: -1,
        damage: DamageEntries::default(),
        effects: Array::default(),
        extra: Extra::default(),
    }
}
