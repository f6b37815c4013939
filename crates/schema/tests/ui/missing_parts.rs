//! A family whose names have no types.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
        kind: Text<Raw>,
        partition: Tenant,
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
