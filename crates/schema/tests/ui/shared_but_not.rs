//! A family that says `shared` although its keys hold the partition.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
family! {
    /// The wallet of a player.
    pub WALLET = "wallet:{realm}:{player}" {
        kind: Text<Raw>,
        partition: shared Realm,
        parts: (player: u32),
        ttl: persistent,
        owner: "bank",
    }
}

fn main() {}
