//! Errors: a body that returns one writes nothing. A refusal of the game is an error type of your own.

use emberkeep::prelude::*;
use std::fmt;

partition! {
    /// A realm. All keys of a transaction belong to one realm.
    struct Realm(Name) as "realm";
}
family! {
    /// The gold of a player.
    GOLD = "gold:{realm}:{player}" {
        kind: Text<Number<i64>>, partition: Realm, parts: (player: u32), ttl: persistent, owner: "bank"
    }
}

/// Why a payment was refused.
#[derive(Debug, PartialEq)]
enum PayError {
    TooPoor { has: i64 },
    Store(Error),
}

/// `?` on every call of `tx` needs this conversion.
impl From<Error> for PayError {
    fn from(error: Error) -> PayError {
        PayError::Store(error)
    }
}

impl fmt::Display for PayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayError::TooPoor { has } => write!(f, "refused: there are only {has} gold"),
            PayError::Store(error) => write!(f, "the store failed: {error}"),
        }
    }
}

/// Pays. The closure may run several times, so it takes its time and its random numbers from `tx` and sends nothing.
async fn pay(realm: &Scope<Realm>, from: u32, to: u32, amount: i64) -> Result<(), PayError> {
    realm
        .transact(move |tx| {
            let gold = tx.get_many(&[GOLD.key(from), GOLD.key(to)])?;
            let (has, other) = (gold[0].unwrap_or(0), gold[1].unwrap_or(0));
            // Written before the check on purpose: the error below undoes it.
            tx.put(&GOLD.key(to), &(other + amount))?;
            if has < amount {
                return Err(PayError::TooPoor { has });
            }
            tx.put(&GOLD.key(from), &(has - amount))?;
            Ok(())
        })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let realm = Store::open("memory:").await?.scope(Realm(Name::new("north").expect("a word")));
    realm.put(&GOLD.key(1), 50).await?;
    assert_eq!(pay(&realm, 1, 2, 30).await, Ok(()));
    let refused = pay(&realm, 1, 2, 30).await.expect_err("20 are not enough");
    println!("{refused}");
    assert_eq!(refused, PayError::TooPoor { has: 20 });
    let gold = realm.get_many(&[GOLD.key(1), GOLD.key(2)]).await?;
    println!("player 1 has {:?}, player 2 has {:?}", gold[0], gold[1]);
    assert_eq!(gold, [Some(20), Some(30)]);
    Ok(())
}
