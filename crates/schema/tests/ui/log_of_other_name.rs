//! A log whose pattern does not begin with `log:`.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}

family! {
    /// What happened.
    pub EVENTS = "atlas:events:{tenantId}" {
        kind: Log<Raw, Newest<100>>,
        partition: Tenant,
        parts: (),
        ttl: persistent,
        owner: "monsters",
    }
}

fn main() {}
