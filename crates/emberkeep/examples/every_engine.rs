//! Testing: the same body in process, on a real Redis and on a real Redis Cluster.
//!
//! In a test, `emberkeep::testing::on_every_engine!` does this for a list of cases (see `tests/on_every_engine.rs`).

use emberkeep::prelude::*;
use emberkeep::testing;

partition! {
    /// A match. All keys of a transaction belong to one match.
    struct Match(Name) as "match";
}
family! {
    /// Who took the flag.
    FLAG = "flag:{match}" { kind: Text<Id<u32>>, partition: Match, parts: (), ttl: refresh(60_000), owner: "flags" }
}

/// Takes the flag, if no player has it.
async fn take(store: &Store, player: u32) -> Result<bool, Error> {
    let scope = store.scope(Match(Name::new("m1").expect("a word")));
    scope
        .transact(move |tx| {
            let free = !tx.exists(&FLAG.key())?;
            if free {
                tx.put(&FLAG.key(), &player)?;
            }
            Ok(free)
        })
        .await
}

/// Sixteen tasks want the flag, and one gets it.
async fn one_winner(url: &str) -> Result<(), OpenError> {
    let store = Store::open(url).await?;
    let tasks: Vec<_> = (0..16)
        .map(|player| {
            let store = store.clone();
            tokio::spawn(async move { take(&store, player).await })
        })
        .collect();
    let mut winners = 0;
    for task in tasks {
        winners += usize::from(task.await.expect("no task panics")?);
    }
    println!("{winners} of 16 has the flag on {}", url.split(':').next().unwrap_or_default());
    assert_eq!(winners, 1);
    Ok(store.close().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    one_winner("memory:").await?;
    // `None`, and a line that says so, where the server is not installed.
    if let Some(server) = testing::redis() {
        one_winner(&server.url()).await?;
    }
    if let Some(cluster) = testing::cluster(3, 0) {
        one_winner(&cluster.url()).await?;
    }
    Ok(())
}
