//! Values whose encoding is not said.

use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
record! {
    /// A wallet.
    pub struct Wallet {
        /// Gold.
        pub gold: u64 => "gold",
    }
}
family! {
    /// The wallet of a player.
    pub WALLET = "wallet:{realm}:{player}" {
        kind: Text<Wallet>,
        partition: Realm,
        parts: (player: u32),
        ttl: persistent,
        owner: "bank",
    }
}

fn main() {}
