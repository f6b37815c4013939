//! A pattern that forgot its partition: all realms would share one wallet.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
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
