//! A log that keeps nothing.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// What happened.
    pub EVENTS = "log:events:{tenantId}" {
        kind: Log<Raw, Newest<0>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
