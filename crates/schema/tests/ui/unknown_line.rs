//! A line that does not exist.

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
        ttl: persistent,
        owner: "monsters",
        reader: "everyone",
    }
}

fn main() {}
