//! A key of another partition in a transaction.

use emberkeep_hot::{Error, Store};
use emberkeep_schema::*;

partition! {
    /// A realm.
    pub struct Realm(Name) as "realm";
}
family! {
    /// The gold of a player.
    pub GOLD = "gold:{realm}:{player}" {
        kind: Text<Number<i64>>,
        partition: Realm,
        parts: (player: u32),
        ttl: persistent,
        owner: "bank",
    }
}

partition! {
    /// A guild.
    pub struct Guild(u32) as "guild";
}

pub async fn pay(store: &Store, guild: Guild) -> Result<(), Error> {
    store.scope(guild).transact(|tx| tx.put(&GOLD.key(7), &1)).await
}

fn main() {}
