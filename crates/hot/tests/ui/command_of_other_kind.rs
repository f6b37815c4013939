//! A command of sets on a family of strings.

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

pub async fn pay(store: &Store, realm: Realm) -> Result<(), Error> {
    store.scope(realm).transact(|tx| tx.sadd(&GOLD.key(7), &1)).await
}

fn main() {}
