//! The keys of the monsters, exactly as the service that owned them first wrote them down.

use super::model::{Monster, MonsterId};
use crate::world::{Field, Tenant};
use emberkeep_primitives::IdPool;
use emberkeep_schema::{Id, Json, Key, List, Number, Schema, Set, Text, family};
use std::ops::RangeInclusive;
use uuid::Uuid;

/// Ids of monsters.
const IDS: RangeInclusive<i64> = 1_000_000_000..=2_000_000_000;

family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
        kind: Text<Json<Monster>>,
        partition: Tenant,
        parts: (uniqueId: MonsterId),
        ttl: persistent,
        owner: "monsters",
        readers: ["*"],
    }
}

family! {
    /// The monsters of a field.
    pub MONSTER_MAP = "atlas:monster-map:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}" {
        kind: Set<Id<MonsterId>>,
        partition: Tenant,
        parts: (worldId: u8, channelId: u8, mapId: u32, instance: Uuid),
        ttl: persistent,
        owner: "monsters",
        readers: ["*"],
        index_of: MONSTER,
    }
}

family! {
    /// The id that was counted out last.
    pub MONSTER_ID_NEXT = "atlas:monster-ids:{tenantId}:next" {
        kind: Text<Number<i64>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

family! {
    /// Released ids, the last one first.
    pub MONSTER_ID_FREE = "atlas:monster-ids:{tenantId}:free" {
        kind: List<Id<MonsterId>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

/// All families of this game.
pub fn schema() -> Schema {
    emberkeep_schema::schema![MONSTER, MONSTER_MAP, MONSTER_ID_NEXT, MONSTER_ID_FREE]
        .expect("no key belongs to two families, a test holds")
}

/// The index of a field.
pub fn field_key(field: &Field) -> Key<MONSTER_MAP> {
    MONSTER_MAP.key(field.world, field.channel, field.map, field.instance)
}

/// The ids of a tenant's monsters.
pub(super) fn ids() -> IdPool<MONSTER_ID_NEXT, MONSTER_ID_FREE> {
    IdPool::new(IDS, MONSTER_ID_NEXT.key(), MONSTER_ID_FREE.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::Naming;

    #[test]
    fn keys_are_those_of_the_document() {
        let tenant = Tenant(Uuid::from_u128(0x550e_8400_e29b_41d4_a716_4466_5544_0000));
        let naming = Naming::single();
        let field = Field { world: 0, channel: 1, map: 100_000_000, instance: Uuid::nil() };
        let id = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(
            MONSTER.key(MonsterId(1_000_000_001)).to_text(&naming, &tenant),
            format!("atlas:monster:{id}:1000000001")
        );
        assert_eq!(
            field_key(&field).to_text(&naming, &tenant),
            format!("atlas:monster-map:{id}:0:1:100000000:00000000-0000-0000-0000-000000000000")
        );
        assert_eq!(MONSTER_ID_NEXT.key().to_text(&naming, &tenant), format!("atlas:monster-ids:{id}:next"));
        assert_eq!(MONSTER_ID_FREE.key().to_text(&naming, &tenant), format!("atlas:monster-ids:{id}:free"));
        assert_eq!(schema().families().len(), 4);
    }
}
