//! An index of something that is not a family.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
        kind: Set<Raw>,
        partition: Tenant,
        parts: (uniqueId: u32),
        ttl: persistent,
        owner: "monsters",
        index_of: Tenant,
    }
}

fn main() {}
