//! A family without a TTL policy.

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
        owner: "monsters",
    }
}

fn main() {}
