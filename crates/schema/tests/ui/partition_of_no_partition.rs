//! A family whose partition was not declared as one.

use emberkeep_schema::*;

part! {
    /// A realm.
    pub struct Realm(Name);
}
family! {
    /// The wallet of a player.
    pub WALLET = "wallet:{player}" {
        kind: Text<Raw>,
        partition: Realm,
        parts: (player: u32),
        ttl: persistent,
        owner: "bank",
    }
}

fn main() {}
