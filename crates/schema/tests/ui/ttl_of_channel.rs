//! A channel that expires.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
        kind: Channel<Raw>,
        partition: Tenant,
        parts: (uniqueId: u32),
        ttl: fixed(1000),
        owner: "monsters",
    }
}

fn main() {}
