//! Keys that could be longer than a key may be.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// Monster instance data.
    pub MONSTER = "names:{a}:{b}:{c}:{d}" {
        kind: Text<Raw>,
        partition: shared Tenant,
        parts: (a: Name, b: Name, c: Name, d: Name),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
