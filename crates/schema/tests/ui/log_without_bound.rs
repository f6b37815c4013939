//! A log that does not say how many entries it keeps.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// What happened.
    pub EVENTS = "log:events:{tenantId}" {
        kind: Log<Raw>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
