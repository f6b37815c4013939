//! A leaderboard: exact scores, ties by who was first, written in the same transaction as the player's record.

use emberkeep::prelude::*;
use emberkeep::primitives::leaderboard::{Leaderboard, LeaderboardError, Ranked};

partition! {
    /// A season, which has one leaderboard.
    struct Season(u32) as "season";
}
part! {
    /// A player's number.
    #[derive(Copy)]
    struct PlayerId(u32);
}
record! {
    /// What a player has won.
    struct Player { name: String => "name", wins: u32 => "wins" }
}
family! {
    /// A player of a season.
    PLAYER = "player:{season}:{id}" {
        kind: Text<Json<Player>>, partition: Season, parts: (id: PlayerId), ttl: persistent, owner: "ladder"
    }
}
family! {
    /// The players of a season by points.
    LADDER = "ladder:{season}" {
        kind: SortedSet<Ranked<PlayerId>>, partition: Season, parts: (), ttl: persistent, owner: "ladder"
    }
}
family! {
    /// The entry of each player.
    ENTRIES = "ladder:{season}:players" {
        kind: Hash<Id<PlayerId>, Ranked<PlayerId>>, partition: Season, parts: (), ttl: persistent, owner: "ladder"
    }
}
family! {
    /// What was applied of each log; also says while the ladder is rebuilt.
    SOURCES = "ladder:{season}:sources" {
        kind: Hash<Utf8, Number<u64>>, partition: Season, parts: (), ttl: persistent, owner: "ladder"
    }
}

fn ladder() -> Leaderboard<LADDER, ENTRIES, SOURCES> {
    Leaderboard::new(LADDER.key(), ENTRIES.key(), SOURCES.key())
}

/// A win at a time in milliseconds. The record and the ladder change together, or not at all. Returns the player's
/// rank, from 1.
async fn win(
    season: &Scope<Season>,
    id: PlayerId,
    points: i64,
    at: i64,
) -> Result<Option<u64>, LeaderboardError> {
    season
        .transact(move |tx| {
            if tx.update(&PLAYER.key(id), |player| player.wins += 1)?.is_none() {
                return Ok(None); // no such player
            }
            ladder().add(tx, &id, points, at)?;
            Ok(ladder().rank(tx, &id)?)
        })
        .await
}

/// The best players, as of one moment: `read` is a transaction that cannot write.
async fn best(season: &Scope<Season>, count: usize) -> Result<Vec<(u64, String, i64)>, Error> {
    season
        .read(move |tx| {
            let top = ladder().top(tx, count)?;
            let keys: Vec<_> = top.iter().map(|one| PLAYER.key(one.player)).collect();
            let players = tx.get_many(&keys)?; // Together: one round trip on Redis.
            let named = top.iter().zip(players);
            Ok(named.filter_map(|(one, player)| Some((one.rank, player?.name, one.score))).collect())
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
    // bob and ann end with 30 points: bob had them first.
    for (id, points, at, rank) in [(1, 10, 100, 1), (2, 30, 200, 1), (3, 5, 300, 3), (1, 20, 400, 2)] {
        assert_eq!(win(&season, PlayerId(id), points, at).await?, Some(rank));
    }
    let best = best(&season, 2).await?;
    for (rank, name, points) in &best {
        println!("{rank}. {name} with {points} points");
    }
    assert_eq!(best, [(1, "bob".to_owned(), 30), (2, "ann".to_owned(), 30)]);
    let around = season.read(|tx| ladder().around(tx, &PlayerId(3), 1)).await?;
    assert_eq!(around.iter().map(|one| one.player.0).collect::<Vec<_>>(), [1, 3]);
    Ok(())
}
