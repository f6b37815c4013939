//! The pattern's names are not the parts, in order.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}:{mapId}" {
        kind: Text<Raw>,
        partition: Tenant,
        parts: (mapId: u32, uniqueId: u32),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
