//! A key built with the id of something else.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}
part! {
    /// Id of a monster.
    pub struct MonsterId(u32);
}
part! {
    /// Id of a map.
    pub struct MapId(u32);
}
family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
        kind: Text<Raw>,
        partition: Tenant,
        parts: (uniqueId: MonsterId),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {
    MONSTER.key(MapId(7));
}
