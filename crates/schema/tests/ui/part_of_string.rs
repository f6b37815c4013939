//! A key with a plain text in it.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
family! {
    /// The wallet of a player.
    pub WALLET = "wallet:{realm}:{player}" {
        kind: Text<Raw>,
        partition: Realm,
        parts: (player: String),
        ttl: persistent,
        owner: "bank",
    }
}

fn main() {}
