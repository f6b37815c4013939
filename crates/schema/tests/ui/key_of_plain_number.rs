//! A key built with a plain number where a part has a type of its own.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
part! {
    /// A player.
    pub struct PlayerId(u32);
}
family! {
    /// The wallet of a player.
    pub WALLET = "wallet:{realm}:{player}" {
        kind: Text<Raw>,
        partition: Realm,
        parts: (player: PlayerId),
        ttl: persistent,
        owner: "bank",
    }
}

fn main() {
    WALLET.key(7);
}
