//! A body without an error type, in a function whose own error has conversions: `Ok::<_, Error>(…)` names it.

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

pub struct PayError(Error);

impl From<Error> for PayError {
    fn from(error: Error) -> PayError {
        PayError(error)
    }
}

pub async fn pay(store: &Store, realm: Realm) -> Result<i64, PayError> {
    let gold = store
        .scope(realm)
        .transact(|tx| {
            let gold = tx.get(&GOLD.key(7))?.unwrap_or(0);
            tx.put(&GOLD.key(7), &(gold - 1))?;
            Ok(gold)
        })
        .await?;
    Ok(gold + 1)
}

fn main() {}
