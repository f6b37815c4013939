//! Two partitions: each transaction lives in one, and keys of two rooms never meet.
//!
//! What must happen in both, exactly once, goes by mail: see `mail.rs`.

use emberkeep::prelude::*;

partition! {
    /// A room. No transaction reaches two of them.
    struct Room(Name) as "room";
}
family! {
    /// The players in a room.
    PLAYERS = "players:{room}" {
        kind: Set<Id<u32>>, partition: Room, parts: (), ttl: refresh(3_600_000), owner: "rooms"
    }
}

fn room(store: &Store, name: &str) -> Scope<Room> {
    store.scope(Room(Name::new(name).expect("a word")))
}

/// Lets a player in, if there is a place.
async fn enter(room: &Scope<Room>, player: u32) -> Result<bool, Error> {
    room.transact(move |tx| {
        if tx.scard(&PLAYERS.key())? >= 2 {
            return Ok(false);
        }
        tx.sadd(&PLAYERS.key(), &player)?;
        Ok(true)
    })
    .await
}

/// Moves a player. No transaction spans two rooms, so these are two: the order decides what a crash in between leaves.
/// Here the player is in both rooms for a moment, and never in none. Gold must not be in both: that goes by mail.
async fn walk(from: &Scope<Room>, to: &Scope<Room>, player: u32) -> Result<bool, Error> {
    if !enter(to, player).await? {
        return Ok(false);
    }
    from.transact(move |tx| tx.srem(&PLAYERS.key(), &player)).await?;
    Ok(true)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("memory:").await?;
    let (hall, cellar) = (room(&store, "hall"), room(&store, "cellar"));
    for player in [1, 2, 3] {
        println!("player {player} enters the hall: {}", enter(&hall, player).await?);
    }
    println!("player 1 goes to the cellar: {}", walk(&hall, &cellar, 1).await?);
    println!("player 3 enters the hall: {}", enter(&hall, 3).await?);
    assert_eq!(hall.smembers(&PLAYERS.key()).await?, [2, 3]);
    assert_eq!(cellar.smembers(&PLAYERS.key()).await?, [1]);
    // One declaration, two keys. On a Cluster each stands behind `{hall}` or `{cellar}`, in a slot of its own.
    assert_eq!(PLAYERS.key().to_text(store.key_layout(), hall.partition()), "players:hall");
    Ok(())
}
