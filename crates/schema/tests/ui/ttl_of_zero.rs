//! A TTL that ends at once.

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
        parts: (uniqueId: u32),
        ttl: fixed(0),
        owner: "monsters",
    }
}

fn main() {}
