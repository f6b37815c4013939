//! The state layer for multiplayer games: one crate to depend on.
//!
//! *Ember* is the hot state that changes every tick, *keep* is what must never be lost. A game declares its keys
//! once ([`schema`]), writes each operation as one atomic transaction ([`hot`]), and runs it unchanged in process or on
//! Redis, Valkey and their Cluster.
//!
//! ```
//! use emberkeep::prelude::*;
//! use std::time::Duration;
//!
//! partition! {
//!     /// What all keys of one transaction share.
//!     pub struct Realm(Name) as "realm";
//! }
//! record! {
//!     /// A chest of gold. Fields that another service adds survive our updates.
//!     pub struct Chest {
//!         /// What is left in it.
//!         pub gold: u32 => "gold",
//!         /// Who took how much.
//!         pub log: Vec<(String, u32)> => "log" default,
//!     }
//! }
//! family! {
//!     /// A chest; it vanishes if it is not opened for an hour.
//!     pub CHEST = "chest:{realm}:{id}" {
//!         kind: Text<Json<Chest>>,
//!         partition: Realm,
//!         parts: (id: u32),
//!         ttl: refresh(Duration::from_secs(3600)),
//!         owner: "chests",
//!     }
//! }
//!
//! /// Takes up to `wanted` gold. However many players ask at once, no coin is taken twice.
//! async fn take(store: &Store, realm: &Realm, id: u32, who: &str, wanted: u32) -> Result<u32, Error> {
//!     let (key, who) = (CHEST.key(id), who.to_owned());
//!     store.scope(realm.clone()).transact(move |tx| {
//!         let Some(mut chest) = tx.get(&key)? else { return Ok(0) };
//!         let taken = wanted.min(chest.gold);
//!         chest.gold -= taken;
//!         chest.log.push((who.clone(), taken));
//!         tx.put(&key, &chest)?; // The hour starts again: the family says so.
//!         Ok(taken)
//!     }).await
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In process. "file:DIR" or "redis://…" instead changes nothing below.
//! let store = Store::open("memory:").await?;
//! let realm = Realm(Name::new("north").expect("a word without a colon"));
//! store.scope(realm.clone()).put(&CHEST.key(7), Chest::new(100)).await?;
//!
//! let (ann, ben) = tokio::join!(take(&store, &realm, 7, "ann", 80), take(&store, &realm, 7, "ben", 80));
//! assert_eq!(ann? + ben?, 100);
//! assert_eq!(CHEST.key(7).to_text(store.key_layout(), &realm), "chest:north:7");
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! | question | page |
//! |---|---|
//! | how do I open a store? | [`OpenStore::open`], [`StoreUrl`] |
//! | what can a transaction do, and when does it run again? | [`hot::Tx`], [`hot::Scope::transact`] |
//! | how do I declare keys? | [`family!`](schema::family!), [`partition!`](schema::partition!), [`record!`](schema::record!) |
//! | which encodings are there? | [`Json`](schema::Json), [`Number`](schema::Number), [`Id`](schema::Id), [`Float`](schema::Float), [`Bool`](schema::Bool), [`Utf8`](schema::Utf8), [`Raw`](schema::Raw) |
//! | how do I log events and follow them? | [`Log`](schema::Log), [`hot::Scope::follow`] |
//! | claims, cooldowns, due queues, indexes, ids, idempotent requests, leaderboards, leases, rate limits, mail | [`primitives`] |
//! | how do I open history? | `OpenHistory::open`, `HistoryUrl` |
//! | how do events become rows and totals of history? | `history`, `history::outbox` |
//! | how do I take and restore snapshots? | `snapshot::Snapshots`, `SnapshotUrl` |
//! | what does an engine promise? | [`hot::embedded::Embedded`], `redis::RedisEngine` |
//! | how do I test on all of them? | `testing` |
//!
//! # Features
//!
//! | feature | what it adds | default |
//! |---|---|---|
//! | `redis` | the engine on Redis, Valkey and Redis Cluster, and TLS | yes |
//! | `games` | complete games that are built on nothing but this crate | yes |
//! | `history` | tables and totals of what happened, the outbox, and the store in one folder | yes |
//! | `cql` | history on ScyllaDB and Cassandra | no |
//! | `cql-tls` | the same with TLS, `cqls://` | no |
//! | `snapshot` | snapshots of partitions, in a folder | yes |
//! | `postgres` | snapshots on PostgreSQL | no |
//! | `testing` | servers, clocks and runners for the tests of your game | no |
//! | `openapi` | records with `#[openapi]` implement `utoipa::ToSchema` | no |
//!
//! A game that runs in process only needs none of them, and compiles less than half of the crates:
//! `emberkeep = { …, default-features = false }`.

mod open;
pub mod prelude;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "snapshot")]
pub use open::SnapshotUrl;
#[cfg(feature = "history")]
pub use open::{HistoryUrl, OpenHistory};
pub use open::{OpenError, OpenStore, StoreUrl};

/// Complete games, each in one folder: keys, rules and operations.
#[cfg(feature = "games")]
pub mod games {
    #[doc(inline)]
    pub use emberkeep_games::*;
}

/// History: declared tables and exact totals, the outbox that fills them; in one folder or on ScyllaDB and Cassandra.
#[cfg(feature = "history")]
pub mod history {
    #[doc(inline)]
    pub use emberkeep_history::*;

    /// History on ScyllaDB and Cassandra.
    #[cfg(feature = "cql")]
    pub mod cql {
        #[doc(inline)]
        pub use emberkeep_history_cql::*;
    }
}

/// Hot state: the store, its transactions, and the engine in this process.
pub mod hot {
    #[doc(inline)]
    pub use emberkeep_hot::*;
}

/// What several games needed: claims, cooldowns, due queues, indexes, ids, idempotent requests, leases, rate limits, mail. All of it
/// works inside a transaction.
pub mod primitives {
    #[doc(inline)]
    pub use emberkeep_primitives::*;
}

/// The engine on Redis, Valkey and Redis Cluster.
#[cfg(feature = "redis")]
pub mod redis {
    #[doc(inline)]
    pub use emberkeep_hot_redis::*;
}

/// Snapshots of a partition: create, compare, restore, prune.
#[cfg(feature = "snapshot")]
pub mod snapshot {
    #[doc(inline)]
    pub use emberkeep_snapshot::*;

    /// Snapshots on PostgreSQL.
    #[cfg(feature = "postgres")]
    pub mod postgres {
        #[doc(inline)]
        pub use emberkeep_snapshot_postgres::*;
    }
}

/// Keys and values: how they are declared, and how they are encoded.
pub mod schema {
    #[doc(inline)]
    pub use emberkeep_schema::*;
}

/// The README's example is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
