//! A name in the pattern with a typing error.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
family! {
    /// The wallet of a player.
    pub WALLET = "wallet:{relam}:{player}" {
        kind: Text<Raw>,
        partition: Realm,
        parts: (player: u32),
        ttl: persistent,
        owner: "bank",
    }
}

fn main() {}
