//! A TTL that is neither milliseconds nor a duration.

use emberkeep_schema::*;

const HOUR_S: f64 = 3600.0;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
family! {
    /// The wallet of a player.
    pub WALLET = "wallet:{realm}:{player}" {
        kind: Text<Raw>,
        partition: Realm,
        parts: (player: u32),
        ttl: refresh(HOUR_S),
        owner: "bank",
    }
}

fn main() {}
