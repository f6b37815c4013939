//! The example game, tested as a game is: each case on every engine, and closing by a clock that the test moves.

#[path = "../examples/auction/books.rs"]
mod books;
#[path = "../examples/auction/house.rs"]
mod house;
#[path = "../examples/auction/schema.rs"]
mod schema;

use books::Books;
use emberkeep::prelude::*;
use emberkeep::testing::{block_on, on_every_engine, on_two_connections, store_at};
use house::{House, Refusal};
use schema::*;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const ANN: PlayerId = PlayerId(1);
const BEN: PlayerId = PlayerId(2);
const EVE: PlayerId = PlayerId(3);

fn sword() -> Name {
    Name::new("sword").expect("a word")
}

fn realm(name: &str) -> Realm {
    Realm(Name::new(name).expect("a word"))
}

/// A realm with three players, who have 100 gold and two swords each.
async fn open(store: &Store, name: &str) -> House {
    let house = House::new(store, realm(name));
    for player in [ANN, BEN, EVE] {
        house.grant(player, 100, sword(), 2).await.expect("a store that works");
    }
    house
}

async fn offered(house: &House, seller: PlayerId, time: Duration) -> AuctionId {
    house.offer(seller, sword(), 10, time).await.expect("a store that works").expect("a sword in the bag")
}

async fn gold(house: &House, player: PlayerId) -> (i64, i64) {
    let (wallet, ..) = house.account(player).await.expect("a store that works").expect("a player");
    (wallet.gold, wallet.escrow)
}

mod cases {
    use super::*;

    pub(crate) async fn an_outbid_player_gets_the_gold_back(store: Store) {
        let house = open(&store, "outbid").await;
        let auction = offered(&house, ANN, HOUR).await;
        assert_eq!(house.bid(BEN, auction, 9, 1).await, Ok(Err(Refusal::TooLow(10))));
        assert_eq!(house.bid(BEN, auction, 10, 2).await, Ok(Ok(())));
        assert_eq!(gold(&house, BEN).await, (90, 10));
        assert_eq!(house.bid(EVE, auction, 10, 3).await, Ok(Err(Refusal::TooLow(11))));
        assert_eq!(house.bid(EVE, auction, 60, 4).await, Ok(Ok(())));
        assert_eq!((gold(&house, BEN).await, gold(&house, EVE).await), ((100, 0), (40, 60)));
        assert_eq!(
            house.bid(EVE, auction, 100, 5).await,
            Ok(Ok(())),
            "the own bid can be raised with its gold"
        );
        assert_eq!(gold(&house, EVE).await, (0, 100));
        assert_eq!(house.bid(ANN, auction, 500, 6).await, Ok(Err(Refusal::Own)));
    }

    pub(crate) async fn a_refused_bid_leaves_everything_as_it_was(store: Store) {
        let house = open(&store, "refused").await;
        let auction = offered(&house, ANN, HOUR).await;
        assert_eq!(house.bid(BEN, auction, 20, 1).await, Ok(Ok(())));
        // The former bid was released on the way to the refusal.
        assert_eq!(house.bid(EVE, auction, 101, 2).await, Ok(Err(Refusal::TooPoor)));
        assert_eq!((gold(&house, BEN).await, gold(&house, EVE).await), ((80, 20), (100, 0)));
        assert_eq!(house.bid(PlayerId(99), auction, 50, 3).await, Ok(Err(Refusal::NoPlayer)));
        assert_eq!(house.bid(BEN, AuctionId(99), 50, 4).await, Ok(Err(Refusal::Over)));
        assert_eq!(house.browse(sword()).await.expect("a store that works").len(), 1);
        assert_eq!(
            house.offer(ANN, Name::new("crown").expect("a word"), 1, HOUR).await,
            Ok(Err(Refusal::NoItem))
        );
    }

    pub(crate) async fn a_bid_that_is_sent_twice_counts_once(store: Store) {
        let house = open(&store, "twice").await;
        let auction = offered(&house, ANN, HOUR).await;
        let calls = (0..8).map(|_| {
            tokio::spawn({
                let house = house.clone();
                async move { house.bid(BEN, auction, 30, 7).await }
            })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.expect("no panic"), Ok(Ok(())), "each gets the answer of the first");
        }
        assert_eq!(gold(&house, BEN).await, (70, 30));
    }

    pub(crate) async fn a_player_who_bids_too_often_has_to_wait(store: Store) {
        let house = open(&store, "often").await;
        let auction = offered(&house, ANN, HOUR).await;
        for request in 0..BIDS_PER_WINDOW as u64 {
            assert_eq!(house.bid(BEN, auction, 1, request).await, Ok(Err(Refusal::TooLow(10))));
        }
        let refused = house.bid(BEN, auction, 10, 1_000).await.expect("a store that works");
        assert!(matches!(refused, Err(Refusal::TooFast(_))), "{refused:?}");
        assert_eq!(house.bid(EVE, auction, 10, 1_001).await, Ok(Ok(())));
    }

    pub(crate) async fn a_crowd_of_bidders_makes_no_gold(store: Store) {
        let house = open(&store, "crowd").await;
        let auctions = [offered(&house, ANN, HOUR).await, offered(&house, BEN, HOUR).await];
        let calls = (0..60u64).map(|request| {
            tokio::spawn({
                let house = house.clone();
                let player = [ANN, BEN, EVE][(request % 3) as usize];
                async move {
                    house.bid(player, auctions[(request % 2) as usize], 10 + request as i64, request).await
                }
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.expect("no panic").expect("a store that works").ok();
        }
        let books = Books::of(&house, 3).await.expect("a store that works");
        assert_eq!((books.gold + books.escrow, books.escrow, books.items), (300, books.best_bids, 6));
    }

    /// Two processes close the same auctions: each is closed once.
    pub(crate) async fn two_closers_close_each_auction_once(one: Store, other: Store) {
        let houses = [open(&one, "closers").await, House::new(&other, realm("closers"))];
        let mut auctions = Vec::new();
        for seller in [ANN, BEN, EVE, ANN, BEN, EVE] {
            auctions.push(offered(&houses[0], seller, Duration::from_millis(50)).await);
        }
        assert_eq!(houses[1].bid(EVE, auctions[0], 40, 1).await, Ok(Ok(())));
        let closing = houses
            .clone()
            .map(|house| tokio::spawn(async move { house.close_when_due(all_closed(house.clone())).await }));
        let [first, second] = closing;
        assert_eq!(first.await.expect("no panic") + second.await.expect("no panic"), 6);
        let sales = houses[0].scope().log_after(&SALES.key(), 0, 100).await.expect("a store that works");
        assert_eq!(sales.entries.len(), 6);
        assert_eq!((gold(&houses[0], ANN).await, gold(&houses[1], EVE).await), ((140, 0), (60, 0)));
    }

    /// Bounded: a store that loses deadlines fails the case.
    async fn all_closed(house: House) {
        for _ in 0..2_000 {
            if house.scope().zcard(&CLOSING.key()).await == Ok(0) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("auctions stay open");
    }
}

on_every_engine!(mod auctions = cases {
    an_outbid_player_gets_the_gold_back,
    a_refused_bid_leaves_everything_as_it_was,
    a_bid_that_is_sent_twice_counts_once,
    a_player_who_bids_too_often_has_to_wait,
    a_crowd_of_bidders_makes_no_gold,
});
on_two_connections!(mod two_houses = cases { two_closers_close_each_auction_once });

#[test]
fn item_and_gold_change_hands_when_the_time_is_over() {
    let (store, clock) = store_at(1_000_000);
    block_on(async {
        let house = open(&store, "time").await;
        let (sold, unsold) = (offered(&house, ANN, HOUR).await, offered(&house, BEN, HOUR).await);
        assert_eq!(house.bid(EVE, sold, 25, 1).await, Ok(Ok(())));
        clock.advance(HOUR.as_millis() as u64);
        assert_eq!(house.bid(BEN, sold, 30, 2).await, Ok(Err(Refusal::Over)));
        assert_eq!(house.close_due().await, Ok(2));
        assert_eq!((gold(&house, ANN).await, gold(&house, EVE).await), ((125, 0), (75, 0)));
        assert_eq!(
            house.account(ANN).await.expect("a store that works").map(|(_, rank, earned)| (rank, earned)),
            Some((Some(0), 25))
        );
        let (scope, mut swords) = (house.scope(), Vec::new());
        for player in [ANN, BEN, EVE] {
            swords.push(scope.hget(&BAG.key(player), &sword()).await.expect("a store that works"));
        }
        assert_eq!(swords, [Some(1), Some(2), Some(3)]);
        let sales = house.scope().log_after(&SALES.key(), 0, 10).await.expect("a store that works");
        let sold_ids: Vec<_> = sales
            .entries
            .into_iter()
            .map(|entry| entry.event.map(|sale| (sale.auction, sale.sold.is_some())))
            .collect();
        assert_eq!(sold_ids, [Ok((sold, true)), Ok((unsold, false))]);
    });
}
