//! The keys of the auction house. Everything of one realm belongs to one partition, so a bid is one transaction.

use emberkeep::prelude::*;
use emberkeep::primitives::once::Receipt;
use std::time::Duration;

/// The longest time for which an auction may be open.
pub(crate) const AUCTION_MAX: Duration = Duration::from_secs(48 * 3_600);
/// Bids that a player may make within ten seconds.
pub(crate) const BIDS_PER_WINDOW: usize = 20;
pub(crate) const BID_WINDOW: Duration = Duration::from_secs(10);

partition! {
    /// A realm with a market of its own.
    pub(crate) struct Realm(Name) as "realm";
}
part! {
    /// A player of the realm.
    #[derive(Copy)]
    pub(crate) struct PlayerId(u32);
}
part! {
    /// An auction, counted from 1.
    #[derive(Copy)]
    pub(crate) struct AuctionId(i64);
}

record! {
    /// What a player owns in gold.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Wallet {
        /// What can be spent.
        pub(crate) gold: i64 => "gold",
        /// What is bound in best bids.
        pub(crate) escrow: i64 => "escrow" default,
    }
}
record! {
    /// One auction, from its opening until its end is settled.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Auction {
        pub(crate) seller: PlayerId => "seller",
        pub(crate) item: Name => "item",
        /// The least first bid.
        pub(crate) price: i64 => "price",
        /// When it ends, in milliseconds since 1970.
        pub(crate) ends_ms: i64 => "ends",
        /// The bid to beat.
        pub(crate) best: Option<Bid> => "best" optional,
    }
}
record! {
    /// A bid, whose gold is in escrow.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Bid {
        pub(crate) player: PlayerId => "player",
        pub(crate) gold: i64 => "gold",
    }
}
record! {
    /// How an auction ended.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Closed {
        pub(crate) auction: AuctionId => "auction",
        pub(crate) seller: PlayerId => "seller",
        pub(crate) item: Name => "item",
        /// The winner; without one the item went back.
        pub(crate) sold: Option<Bid> => "sold" optional,
    }
}

family! {
    /// The gold that a player has, without what is in escrow.
    pub(crate) WALLET = "auction:{realm}:wallet:{player}" {
        kind: Text<Json<Wallet>>, partition: Realm, parts: (player: PlayerId), ttl: persistent, owner: "auction"
    }
}
family! {
    /// A player's items and how many there are of each.
    pub(crate) BAG = "auction:{realm}:bag:{player}" {
        kind: Hash<Id<Name>, Number<i64>>, partition: Realm, parts: (player: PlayerId), ttl: persistent, owner: "auction"
    }
}
family! {
    /// The number of the newest auction.
    pub(crate) LAST_AUCTION = "auction:{realm}:last" {
        kind: Text<Number<i64>>, partition: Realm, parts: (), ttl: persistent, owner: "auction"
    }
}
family! {
    /// An open auction. The closing removes it.
    pub(crate) AUCTION = "auction:{realm}:open:{auction}" {
        kind: Text<Json<Auction>>, partition: Realm, parts: (auction: AuctionId),
        ttl: persistent, owner: "auction"
    }
}
family! {
    /// The open auctions of an item.
    pub(crate) ON_SALE = "auction:{realm}:item:{item}" {
        kind: Set<Id<AuctionId>>, partition: Realm, parts: (item: Name), ttl: persistent, owner: "auction"
    }
}
family! {
    /// When each open auction ends.
    pub(crate) CLOSING = "auction:{realm}:closing" {
        kind: SortedSet<Id<AuctionId>>, partition: Realm, parts: (), ttl: persistent, owner: "auction"
    }
}
family! {
    /// What players earned, for the leaderboard.
    pub(crate) EARNED = "auction:{realm}:earned" {
        kind: SortedSet<Id<PlayerId>>, partition: Realm, parts: (), ttl: persistent, owner: "auction"
    }
}
family! {
    /// A player's latest bids, for the rate limit.
    pub(crate) BIDS = "auction:{realm}:bids:{player}" {
        kind: SortedSet<Id<u64>>, partition: Realm, parts: (player: PlayerId), ttl: refresh(BID_WINDOW), owner: "auction"
    }
}
family! {
    /// Answers of bids by the client's request id: a bid that is sent twice counts once.
    pub(crate) BID_RECEIPT = "auction:{realm}:bid:{player}:{request}" {
        kind: Text<Receipt<Json<Result<(), super::house::Refusal>>>>, partition: Realm, parts: (player: PlayerId, request: u64),
        ttl: refresh(Duration::from_secs(600)), owner: "auction"
    }
}
family! {
    /// What was sold, oldest first.
    pub(crate) SALES = "log:auction:{realm}" {
        kind: Log<Json<Closed>, Newest<10_000>>, partition: Realm, parts: (), ttl: persistent, owner: "auction",
        readers: ["*"]
    }
}
