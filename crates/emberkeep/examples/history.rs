//! History: a table of your own, written through the outbox and read back. State and event are one commit; the event
//! becomes a row and counts once in the totals, whatever crashes in between.

use emberkeep::history::outbox::Consumer;
use emberkeep::history::{Batch, History, HistorySchema, Rejection};
use emberkeep::prelude::*;
use emberkeep::primitives::lease::LeaseRecord;
use emberkeep::schema::{Timestamp, table, totals};
use uuid::Uuid;

partition! {
    /// One auction house, whose log fills the tables.
    struct House(Name) as "house";
}
record! {
    /// A sale, as it stands in the outbox. A replay has the same id and so is the same row.
    struct Sale { id: Uuid => "id", buyer: i64 => "buyer", item: String => "item", gold: i64 => "gold", at: i64 => "at" }
}
family! {
    /// Gold in the till.
    TILL = "till:{house}" { kind: Text<Number<i64>>, partition: House, parts: (), ttl: persistent, owner: "auctions" }
}
family! {
    /// The outbox: it refuses a sale that history could lose.
    SALES = "log:sales:{house}" {
        kind: Log<Json<Sale>, RefuseAbove<10_000>>, partition: House, parts: (), ttl: persistent, owner: "auctions"
    }
}
family! {
    /// Which process drains the outbox.
    DRAINER = "ember:drainer:{house}" {
        kind: Text<Json<LeaseRecord>>, partition: House, parts: (), ttl: persistent, owner: "auctions"
    }
}
table! {
    /// What was sold, for a year.
    #[derive(Debug)]
    struct SoldItem = "sold_items" {
        sold_at: Timestamp,
        sale_id: Uuid,
        buyer_id: i64,
        item: String,
        gold: i64,
    }
    partition: (day_bucket = day(sold_at)),
    clustering: (sold_at desc, sale_id asc),
    ttl: days(365) of sold_at,
    lookups: (by_buyer(buyer_id, day_bucket)),
    writes: events,
    owner: "auctions",
}
totals! {
    /// What a player has bought, ever.
    #[derive(Debug)]
    struct Purchases = "purchases" by "purchases_by_source" {
        key: buyer_id: i64,
        sums: {
            /// How many items the player bought.
            items,
            /// How much gold the player paid.
            gold,
        },
        owner: "auctions",
    }
}

/// What a sale becomes in history.
fn project(sale: &Sale, batch: &mut Batch) -> Result<(), Rejection> {
    let sold_at = Timestamp(sale.at);
    let (item, gold) = (sale.item.clone(), sale.gold);
    batch.insert(SoldItem { sold_at, sale_id: sale.id, buyer_id: sale.buyer, item, gold })?;
    batch.add(sale.buyer, sold_at, Purchases { items: 1, gold })
}

/// Takes the gold and records the sale, both or neither.
async fn sell(house: &Scope<House>, sale: Sale) -> Result<(), Error> {
    house
        .transact_with(sale, |tx, sale| {
            tx.incr_by(&TILL.key(), sale.gold)?;
            tx.append(&SALES.key(), sale)
        })
        .await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("emberkeep-example-{}", std::process::id()));
    let schema = HistorySchema::new().table::<SoldItem>().totals::<Purchases>();
    let url = format!("file:{}", folder.display()); // or "cql://host/keyspace"
    let history = History::open(&url, schema).await?;
    let store = Store::open("memory:").await?; // or "file:DIR", "redis://…"
    let house = store.scope(House(Name::new("north").expect("a word without a colon")));

    // A server lets `consumer.run(stop)` work in a task; rows are in history within a second.
    let consumer = Consumer::new(&house, SALES.key(), DRAINER.key(), history.clone(), project)?;

    let now = store.now().await?;
    for (item, gold) in [("a rusty sword", 30), ("a shield", 55), ("a lamp", 5)] {
        sell(&house, Sale::new(Uuid::new_v4(), 7, item.to_owned(), gold, now)).await?;
    }
    let drained = consumer.drain_once().await?.expect("no other consumer has the lease");
    println!("{} sales are in history, {} became dead letters", drained.delivered, drained.dead_letters);

    let today = Timestamp(now).day();
    for sold in history.range(SoldItem::by_buyer(7, today)).page(None).await?.rows {
        println!("player {} bought {} for {} gold", sold.buyer_id, sold.item, sold.gold);
    }
    let bought = history.totals::<Purchases>(7).await?.expect("player 7 bought something").sums;
    println!("player 7 has bought {} items for {} gold", bought.items, bought.gold);
    assert_eq!((bought.items, bought.gold), (3, 90));

    history.close().await?;
    drop((consumer, history));
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
