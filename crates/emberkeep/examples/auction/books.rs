//! The books: what must always add up, whatever happened.

use super::house::House;
use super::schema::*;
use emberkeep::prelude::*;

/// Sums over a whole realm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Books {
    /// Gold that players can spend, and gold in escrow.
    pub(crate) gold: i64,
    pub(crate) escrow: i64,
    /// Gold of the best bids of open auctions. It is the escrow.
    pub(crate) best_bids: i64,
    /// Items in bags and on sale.
    pub(crate) items: i64,
    /// Auctions that have not ended.
    pub(crate) open: i64,
    /// Auctions that were ever opened.
    pub(crate) opened: i64,
    /// Earnings of all sellers.
    pub(crate) earned: i64,
}

impl Books {
    /// Adds up a realm in which nothing happens meanwhile.
    pub(crate) async fn of(house: &House, players: u32) -> Result<Books, Error> {
        let (scope, mut books) = (house.scope(), Books::default());
        for player in (1..=players).map(PlayerId) {
            let wallet = scope.get(&WALLET.key(player)).await?.unwrap_or(Wallet::new(0));
            (books.gold, books.escrow) = (books.gold + wallet.gold, books.escrow + wallet.escrow);
            books.items += scope.hgetall(&BAG.key(player)).await?.iter().map(|(_, count)| count).sum::<i64>();
        }
        books.opened = scope.get(&LAST_AUCTION.key()).await?.unwrap_or(0);
        for id in (1..=books.opened).map(AuctionId) {
            let Some(auction) = scope.get(&AUCTION.key(id)).await? else { continue };
            (books.open, books.items) = (books.open + 1, books.items + 1);
            books.best_bids += auction.best.map_or(0, |bid| bid.gold);
        }
        let earned = scope.zrange(&EARNED.key(), ZSlice::Rank(0, -1), false).await?;
        books.earned = earned.into_iter().map(|(_, gold)| gold as i64).sum();
        Ok(books)
    }
}
