//! The rules: each operation is one transaction. A refused bid changes nothing but the rate limit and its stored answer.

use super::schema::*;
use emberkeep::prelude::*;
use emberkeep::primitives::once::once;
use emberkeep::primitives::{DueQueue, RateLimit};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why an operation did nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("no such player")]
    NoPlayer,
    #[error("there is none in the bag")]
    NoItem,
    #[error("the auction is over")]
    Over,
    #[error("it is your own auction")]
    Own,
    #[error("at least {0} gold")]
    TooLow(i64),
    #[error("not enough gold")]
    TooPoor,
    #[error("too many bids; wait {0} ms")]
    TooFast(u64),
}

/// The auction house of one realm.
#[derive(Clone)]
pub(crate) struct House {
    scope: Scope<Realm>,
}

impl House {
    pub(crate) fn new(store: &Store, realm: Realm) -> House {
        House { scope: store.scope(realm) }
    }

    pub(crate) fn scope(&self) -> &Scope<Realm> {
        &self.scope
    }

    /// Gives a player gold and items.
    pub(crate) async fn grant(
        &self,
        player: PlayerId,
        gold: i64,
        item: Name,
        count: i64,
    ) -> Result<(), Error> {
        self.scope
            .clone()
            .named("grant")
            .transact_with(item, move |tx, item| {
                let wallet = tx.get_or(&WALLET.key(player), || Wallet::new(0))?;
                tx.put(&WALLET.key(player), &Wallet { gold: wallet.gold + gold, ..wallet })?;
                tx.hincr_by(&BAG.key(player), item, count)
            })
            .await
    }

    /// Offers one item for a time.
    pub(crate) async fn offer(
        &self,
        seller: PlayerId,
        item: Name,
        price: i64,
        time: Duration,
    ) -> Result<Result<AuctionId, Refusal>, Error> {
        let time_ms = time.min(AUCTION_MAX).as_millis() as i64;
        self.scope
            .clone()
            .named("offer")
            .transact_with(item, move |tx, item| {
                if tx.hget(&BAG.key(seller), item)?.unwrap_or(0) < 1 {
                    return Ok(Err(Refusal::NoItem));
                }
                let id = AuctionId(tx.get_or(&LAST_AUCTION.key(), || 0)? + 1);
                let ends_ms = tx.now() + time_ms;
                tx.put(&LAST_AUCTION.key(), &id.0)?;
                tx.put(&AUCTION.key(id), &Auction::new(seller, item.clone(), price.max(1), ends_ms))?;
                tx.hincr_by(&BAG.key(seller), item, -1)?;
                tx.sadd(&ON_SALE.key(item), &id)?;
                closing().set(tx, &id, ends_ms)?;
                Ok(Ok(id))
            })
            .await
    }

    /// Bids on an auction. The former best bidder gets the gold back. A bid that the rules refuse
    /// counts for the rate limit; one that the rate limit refuses does not. A bid that is sent again with the same
    /// request id gets the answer of the first.
    pub(crate) async fn bid(
        &self,
        player: PlayerId,
        auction: AuctionId,
        gold: i64,
        request: u64,
    ) -> Result<Result<(), Refusal>, Error> {
        self.scope
            .clone()
            .named("bid")
            .transact(move |tx| {
                // Before the receipt: a client that waits and asks again must not get this answer for ever.
                let limit = RateLimit::new(BIDS.key(player), BIDS_PER_WINDOW, BID_WINDOW)?;
                let admission = limit.acquire(tx, &request)?;
                if !admission.allowed {
                    return Ok(Err(Refusal::TooFast(admission.retry_after.as_millis() as u64)));
                }
                once(tx, &BID_RECEIPT.key(player, request), |tx| {
                    tx.attempt(|tx| place_bid(tx, player, auction, gold))
                })
            })
            .await
    }

    /// The open auctions of an item, the cheapest first.
    pub(crate) async fn browse(&self, item: Name) -> Result<Vec<(AuctionId, Auction)>, Error> {
        self.scope
            .clone()
            .named("browse")
            .read(move |tx| {
                let ids = tx.smembers(&ON_SALE.key(&item))?;
                let keys: Vec<_> = ids.iter().map(|id| AUCTION.key(id)).collect();
                let auctions = tx.get_many(&keys)?;
                let mut open: Vec<_> =
                    ids.into_iter().zip(auctions).filter_map(|(id, found)| Some((id, found?))).collect();
                open.sort_by_key(|(id, auction)| (next_price(auction), id.0));
                Ok(open)
            })
            .await
    }

    /// A player's gold, rank among the sellers (0 is the best) and earnings, of one moment.
    pub(crate) async fn account(
        &self,
        player: PlayerId,
    ) -> Result<Option<(Wallet, Option<usize>, i64)>, Error> {
        self.scope
            .read(move |tx| {
                let (wallet, rank, earned) = tx.together(|tx| {
                    (
                        tx.get(&WALLET.key(player)),
                        tx.zrevrank(&EARNED.key(), &player),
                        tx.zscore(&EARNED.key(), &player),
                    )
                })?;
                Ok(wallet.map(|wallet| (wallet, rank, earned.unwrap_or(0.0) as i64)))
            })
            .await
    }

    /// Closes what is due now, and says how many auctions that were.
    pub(crate) async fn close_due(&self) -> Result<usize, Error> {
        self.scope
            .clone()
            .named("close")
            .transact(|tx| {
                let due = closing().pop_due(tx, 100)?;
                due.iter().try_for_each(|(id, _)| close(tx, *id))?;
                Ok(due.len())
            })
            .await
    }

    /// Closes auctions when they are due, until `stop` ends. Any number of processes may do so at once.
    pub(crate) async fn close_when_due(&self, stop: impl Future<Output = ()> + Send) -> usize {
        let driver = closing().serve(&self.scope.clone().named("close"), |tx, id, _| close(tx, *id));
        driver
            .on_error(|id, error: &Error| eprintln!("auction {id:?} cannot be closed yet: {error}"))
            .until(stop)
            .await
            .handled
    }
}

/// The queue of the moments at which auctions end.
pub(crate) fn closing() -> DueQueue<CLOSING> {
    DueQueue::new(CLOSING.key())
}

fn next_price(auction: &Auction) -> i64 {
    auction.best.as_ref().map_or(auction.price, |best| best.gold + 1)
}

fn place_bid(
    tx: &mut Tx<'_, Realm>,
    player: PlayerId,
    id: AuctionId,
    gold: i64,
) -> Result<Result<(), Refusal>, Error> {
    let Some(mut auction) = tx.get(&AUCTION.key(id))?.filter(|auction| tx.now() < auction.ends_ms) else {
        return Ok(Err(Refusal::Over));
    };
    if auction.seller == player {
        return Ok(Err(Refusal::Own));
    }
    if gold < next_price(&auction) {
        return Ok(Err(Refusal::TooLow(next_price(&auction))));
    }
    // First, so that a player who raises the own bid can spend that gold again. A refusal below undoes it.
    if let Some(former) = &auction.best {
        tx.update(&WALLET.key(former.player), |wallet| move_gold(wallet, former.gold, -former.gold))?;
    }
    let Some(wallet) = tx.get(&WALLET.key(player))? else { return Ok(Err(Refusal::NoPlayer)) };
    if wallet.gold < gold {
        return Ok(Err(Refusal::TooPoor));
    }
    tx.update(&WALLET.key(player), |wallet| move_gold(wallet, -gold, gold))?;
    auction.best = Some(Bid::new(player, gold));
    tx.put(&AUCTION.key(id), &auction)?;
    Ok(Ok(()))
}

fn move_gold(wallet: &mut Wallet, gold: i64, escrow: i64) {
    wallet.gold += gold;
    wallet.escrow += escrow;
}

/// Ends an auction: item and gold change hands, and the sale is logged, all in one commit.
fn close(tx: &mut Tx<'_, Realm>, id: AuctionId) -> Result<(), Error> {
    let Some(auction) = tx.get(&AUCTION.key(id))? else { return Ok(()) };
    tx.del(&AUCTION.key(id))?;
    tx.srem(&ON_SALE.key(&auction.item), &id)?;
    if let Some(bid) = &auction.best {
        tx.update(&WALLET.key(bid.player), |wallet| move_gold(wallet, 0, -bid.gold))?;
        tx.update(&WALLET.key(auction.seller), |wallet| move_gold(wallet, bid.gold, 0))?;
        tx.zincr_by(&EARNED.key(), &auction.seller, bid.gold as f64)?;
    }
    let owner = auction.best.as_ref().map_or(auction.seller, |bid| bid.player);
    tx.hincr_by(&BAG.key(owner), &auction.item, 1)?;
    let closed = Closed { sold: auction.best, ..Closed::new(id, auction.seller, auction.item) };
    tx.append(&SALES.key(), &closed)
}
