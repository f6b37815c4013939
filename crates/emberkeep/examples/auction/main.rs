//! A complete example game: an auction house with escrow, deadlines, a rate limit, a leaderboard and a log of sales.
//!
//! `cargo run --example auction -- [URL] [SECONDS]` lets 16 players trade on any store, such as `memory:` or
//! `redis://127.0.0.1:6379`. Each process plays in a realm of its own, so several can use one Redis. At the end the books are checked.

mod books;
mod house;
mod schema;

use books::Books;
use emberkeep::prelude::*;
use house::House;
use schema::*;
use std::time::{Duration, Instant};

const PLAYERS: u32 = 16;
const GOLD: i64 = 1_000;
const SWORDS: i64 = 50;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "memory:".into());
    let time = Duration::from_secs(args.next().map_or(Ok(2), |text| text.parse())?);
    let store = Store::open(&url).await?;
    let realm = Realm(Name::new(format!("demo-{}", std::process::id()))?);
    let (house, sword) = (House::new(&store, realm), Name::new("sword")?);
    for player in (1..=PLAYERS).map(PlayerId) {
        house.grant(player, GOLD, sword.clone(), SWORDS).await?;
    }

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut until = stopped.clone();
    let closer = tokio::spawn({
        let house = house.clone();
        async move { house.close_when_due(async move { drop(until.wait_for(|over| *over).await) }).await }
    });
    let players = (1..=PLAYERS).map(|player| tokio::spawn(trade(house.clone(), PlayerId(player), time)));
    for player in players.collect::<Vec<_>>() {
        player.await??;
    }
    stop.send_replace(true);
    let mut closed = closer.await?;
    // What is still open ends within a tenth of a second.
    while house.scope().zcard(&CLOSING.key()).await? > 0 {
        closed += house.close_due().await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let books = Books::of(&house, PLAYERS).await?;
    println!("{closed} auctions were closed on {}, {} gold changed hands", store.name(), books.earned);
    if let Some((wallet, Some(rank), earned)) = house.account(PlayerId(1)).await? {
        println!(
            "player 1 has {} gold, earned {earned} and is number {} of the sellers",
            wallet.gold,
            rank + 1
        );
    }
    let mut sales = house.scope().follow(&SALES.key(), 0);
    if let Some(LogItem::Entry { position, event }) = sales.next().await.transpose()? {
        println!("the first in the log: {position} {event:?}");
    }
    anyhow::ensure!(
        books.gold == i64::from(PLAYERS) * GOLD && books.escrow == 0,
        "gold was lost or made: {books:?}"
    );
    anyhow::ensure!(
        books.items == i64::from(PLAYERS) * SWORDS && books.open == 0,
        "items were lost: {books:?}"
    );
    println!("the books add up: {books:?}");
    Ok(())
}

/// Offers and bids for a while.
async fn trade(house: House, player: PlayerId, time: Duration) -> anyhow::Result<()> {
    let (started, sword) = (Instant::now(), Name::new("sword")?);
    let mut request = u64::from(player.0) << 32;
    while started.elapsed() < time {
        let _ = house.offer(player, sword.clone(), 1, Duration::from_millis(100)).await?;
        for (auction, found) in house.browse(sword.clone()).await?.into_iter().take(3) {
            request += 1;
            let least = found.best.map_or(found.price, |best| best.gold + 1);
            let _ = house.bid(player, auction, least, request).await?;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
