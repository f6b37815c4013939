//! A leaderboard: a sorted set, written in the same transaction as the player's record.

use emberkeep::prelude::*;

partition! {
    /// A season.
    struct Season(u32) as "season";
}
part! {
    /// A player.
    #[derive(Copy)]
    struct PlayerId(u32);
}
record! {
    /// What a player has won.
    struct Player { name: String => "name", points: i64 => "points" }
}
family! {
    /// A player of a season.
    PLAYER = "player:{season}:{id}" {
        kind: Text<Json<Player>>, partition: Season, parts: (id: PlayerId), ttl: persistent, owner: "ladder"
    }
}
family! {
    /// Players by points.
    LADDER = "ladder:{season}" {
        kind: SortedSet<Id<PlayerId>>, partition: Season, parts: (), ttl: persistent, owner: "ladder",
        index_of: PLAYER
    }
}

/// Adds points. The record and the ladder change together, or not at all.
async fn win(season: &Scope<Season>, id: PlayerId, points: i64) -> Result<(), Error> {
    season
        .transact(move |tx| {
            let total = tx.update(&PLAYER.key(id), |player| {
                player.points += points;
                player.points
            })?;
            let Some(total) = total else { return Ok(()) }; // no such player
            tx.zadd(&LADDER.key(), &id, total as f64)
        })
        .await
}

/// The best players, as of one moment: `read` is a transaction that cannot write.
async fn best(season: &Scope<Season>, count: i64) -> Result<Vec<(String, i64)>, Error> {
    season
        .read(move |tx| {
            let ladder = tx.zrange(&LADDER.key(), ZSlice::Rank(0, count - 1), true)?;
            let keys: Vec<_> = ladder.iter().map(|(id, _)| PLAYER.key(id)).collect();
            let players = tx.get_many(&keys)?; // Together: one round trip on Redis.
            Ok(players.into_iter().flatten().map(|player| (player.name, player.points)).collect())
        })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let season = Store::open("memory:").await?.scope(Season(7));
    for (id, name) in [(1, "ann"), (2, "bob"), (3, "eve")] {
        let player = Player::new(name.into(), 0);
        season.put(&PLAYER.key(PlayerId(id)), player).await?;
    }
    for (id, points) in [(1, 10), (2, 25), (3, 5), (1, 20)] {
        win(&season, PlayerId(id), points).await?;
    }
    let best = best(&season, 2).await?;
    for (place, (name, points)) in best.iter().enumerate() {
        println!("{}. {name} with {points} points", place + 1);
    }
    assert_eq!(best, [("ann".to_owned(), 30), ("bob".to_owned(), 25)]);
    Ok(())
}
