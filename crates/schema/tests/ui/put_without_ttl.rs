//! A write without a TTL to a family whose callers must give one.

use emberkeep_schema::*;

partition! {
    /// One customer's worlds.
    pub struct Tenant(u32) as "tenantId";
}
family! {
    /// Cooldown marker.
    pub COOLDOWN = "cooldown:{tenantId}:{id}" {
        kind: Text<Raw>,
        partition: Tenant,
        parts: (id: u32),
        ttl: given,
        owner: "monsters",
    }
}

fn put<F: Family>(_key: Key<F>)
where
    F::Ttl: Automatic,
{
}

fn main() {
    put(COOLDOWN.key(7));
}
