//! Deadlines: a queue of what must happen later. Each entry is handed out once, in the transaction that handles it.

use emberkeep::prelude::*;
use emberkeep::primitives::DueQueue;
use emberkeep::testing::store_at;

partition! {
    /// A realm. Its queue and its records are changed together.
    struct Realm(Name) as "realm";
}
family! {
    /// When buildings are finished.
    SITES = "sites:{realm}" {
        kind: SortedSet<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "buildings"
    }
}
family! {
    /// The buildings that stand.
    BUILDINGS = "buildings:{realm}" {
        kind: Set<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "buildings"
    }
}

fn sites() -> DueQueue<SITES> {
    DueQueue::new(SITES.key())
}

/// Starts a building that takes so long.
async fn build(realm: &Scope<Realm>, building: u32, takes_ms: i64) -> Result<(), Error> {
    realm
        .transact(move |tx| {
            let at = tx.now() + takes_ms;
            sites().set(tx, &building, at)
        })
        .await
}

/// Finishes what is due. Any number of processes may call it: each building is finished once.
async fn finish(realm: &Scope<Realm>) -> Result<Vec<u32>, Error> {
    realm
        .transact(|tx| {
            let due = sites().pop_due(tx, 100)?;
            for (building, _) in &due {
                tx.sadd(&BUILDINGS.key(), building)?;
            }
            Ok(due.into_iter().map(|(building, _)| building).collect())
        })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (store, clock) = store_at(0);
    let realm = store.scope(Realm(Name::new("north").expect("a word")));
    build(&realm, 1, 60_000).await?;
    build(&realm, 2, 5_000).await?;
    assert!(finish(&realm).await?.is_empty(), "nothing is due early");
    clock.advance(5_000);
    let (one, other) = tokio::join!(finish(&realm), finish(&realm));
    let finished = [one?, other?].concat();
    println!("after 5 s building {finished:?} is finished");
    assert_eq!(finished, [2], "by one of two callers");
    Ok(())
}
