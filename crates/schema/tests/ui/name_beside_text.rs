//! A name that shares its place with text.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// Monster instance data.
    pub MONSTER = "atlas:{tenantId}:monster-{uniqueId}" {
        kind: Text<Raw>,
        partition: Tenant,
        parts: (uniqueId: u32),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
