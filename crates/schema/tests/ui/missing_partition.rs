//! A family without a partition.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
        kind: Text<Raw>,
        parts: (uniqueId: u32),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
