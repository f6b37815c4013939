//! A set with the bound of a log.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// What happened.
    pub EVENTS = "log:events:{tenantId}" {
        kind: Set<Raw, Newest<100>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
