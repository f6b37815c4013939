//! The key families of the monsters. Those under `atlas:` are specified by the storage document. Those under
//! `ember:` are auxiliary indexes: checked against the others before use, and rebuilt by the sweep. The
//! exception is [`MONSTER_ID_RESTING`], which cannot be rebuilt: no other key says that an id rests.

use super::limits::COOLDOWN_MAX;
use super::model::{DropTimer, Monster, MonsterId, SkillId};
use crate::world::{Field, Tenant};
use emberkeep_primitives::Indexed;
use emberkeep_schema::{Id, Json, Key, List, Number, Schema, Set, SortedSet, Text, family};
use uuid::Uuid;

family! {
    /// Monster instance data: one record a monster, from its spawn to its removal.
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
    /// The id that was assigned last.
    pub MONSTER_ID_NEXT = "atlas:monster-ids:{tenantId}:next" {
        kind: Text<Number<i64>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

family! {
    /// Released ids, the latest first.
    pub MONSTER_ID_FREE = "atlas:monster-ids:{tenantId}:free" {
        kind: List<Id<MonsterId>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

family! {
    /// Released ids that are not yet available, by the time when they are.
    pub MONSTER_ID_RESTING = "ember:monster-ids-resting:{tenantId}" {
        kind: SortedSet<Id<MonsterId>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

family! {
    /// Exists while a skill is on cooldown.
    pub MONSTER_COOLDOWN = "atlas:monster-cooldown:{tenantId}:{monsterId}:{skillId}" {
        kind: Text<Number<i64>>,
        partition: Tenant,
        parts: (monsterId: MonsterId, skillId: SkillId),
        ttl: given,
        owner: "monsters",
        readers: ["*"],
    }
}

family! {
    /// The skills of a monster that are on cooldown, by the end of the cooldown.
    pub MONSTER_COOLDOWNS = "ember:monster-cooldowns:{tenantId}:{uniqueId}" {
        kind: SortedSet<Id<SkillId>>,
        partition: Tenant,
        parts: (uniqueId: MonsterId),
        ttl: refresh(COOLDOWN_MAX),
        owner: "monsters",
        index_of: MONSTER_COOLDOWN,
    }
}

family! {
    /// Monsters with status effects, by their next tick or expiry.
    pub MONSTER_EFFECTS = "ember:monster-effects:{tenantId}" {
        kind: SortedSet<Id<MonsterId>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
        index_of: MONSTER,
    }
}

family! {
    /// The drop timer of a friendly monster.
    pub DROP_TIMER = "atlas:drop-timer:{tenantId}:{uniqueId}" {
        kind: Text<Json<DropTimer>>,
        partition: Tenant,
        parts: (uniqueId: MonsterId),
        ttl: persistent,
        owner: "monsters",
        readers: ["*"],
    }
}

family! {
    /// Monsters with a drop timer, by their next drop.
    pub DROP_TIMERS = "ember:drop-timers:{tenantId}" {
        kind: SortedSet<Id<MonsterId>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
        index_of: DROP_TIMER,
    }
}

/// The key families of this game.
pub fn schema() -> Schema {
    emberkeep_schema::schema![
        MONSTER,
        MONSTER_MAP,
        MONSTER_ID_NEXT,
        MONSTER_ID_FREE,
        MONSTER_ID_RESTING,
        MONSTER_COOLDOWN,
        MONSTER_COOLDOWNS,
        MONSTER_EFFECTS,
        DROP_TIMER,
        DROP_TIMERS,
    ]
    .expect("no key belongs to two families, a test holds")
}

/// The key of a field's index.
pub fn field_key(field: &Field) -> Key<MONSTER_MAP> {
    MONSTER_MAP.key(field.world, field.channel, field.map, field.instance)
}

/// The index of monsters by field.
pub struct ByField;

impl Indexed for ByField {
    type Partition = Tenant;
    type Member = MonsterId;
    type Value = Monster;
    type Codec = Json<Monster>;
    type Record = MONSTER;
    type Index = MONSTER_MAP;

    fn record(id: &MonsterId) -> Key<MONSTER> {
        MONSTER.key(id)
    }

    fn member(record: &Key<MONSTER>) -> MonsterId {
        MONSTER.parts(record).0
    }

    fn home(monster: &Monster) -> Key<MONSTER_MAP> {
        field_key(&monster.field())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::KeyLayout;

    #[test]
    fn keys_are_those_of_the_document() {
        let text = "550e8400-e29b-41d4-a716-446655440000";
        let (tenant, layout) = (Tenant(text.parse().unwrap()), KeyLayout::single());
        let field = Field { world: 0, channel: 1, map: 100_000_000, instance: Uuid::nil() };
        let (id, skill) = (MonsterId(1_000_000_001), SkillId(126));
        let written = [
            (MONSTER.key(id).to_text(&layout, &tenant), format!("atlas:monster:{text}:1000000001")),
            (
                field_key(&field).to_text(&layout, &tenant),
                format!("atlas:monster-map:{text}:0:1:100000000:{}", Uuid::nil()),
            ),
            (MONSTER_ID_NEXT.key().to_text(&layout, &tenant), format!("atlas:monster-ids:{text}:next")),
            (MONSTER_ID_FREE.key().to_text(&layout, &tenant), format!("atlas:monster-ids:{text}:free")),
            (
                MONSTER_COOLDOWN.key(id, skill).to_text(&layout, &tenant),
                format!("atlas:monster-cooldown:{text}:1000000001:126"),
            ),
            (DROP_TIMER.key(id).to_text(&layout, &tenant), format!("atlas:drop-timer:{text}:1000000001")),
        ];
        for (ours, documented) in written {
            assert_eq!(ours, documented);
        }
        assert_eq!(schema().families().len(), 10);
    }
}
