//! The state layer for multiplayer games: one crate to depend on.
//!
//! *Ember* is the hot state that changes every tick, *keep* is what must never be lost. A game declares its keys
//! once ([`schema`]), writes each operation as one atomic transaction ([`hot`]), and runs it unchanged in process or on
//! Redis, Valkey and their Cluster ([`redis`]).
//!
//! ```
//! use emberkeep::hot::{Error, Store, embedded::Embedded};
//! use emberkeep::schema::{Json, Name, Text, family, partition, record};
//! use std::{sync::Arc, time::Duration};
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
//!     /// A chest; it vanishes when nobody opens it for an hour.
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
//! # async fn main() -> Result<(), Error> {
//! // In process. `RedisEngine::connect("redis://…").await?` instead changes nothing below.
//! let store = Store::new(Arc::new(Embedded::in_memory()));
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
//! [`games`] holds complete games that are built on nothing but this; [`primitives`] what several of them needed.

pub use emberkeep_games as games;
pub use emberkeep_hot as hot;
pub use emberkeep_hot_redis as redis;
pub use emberkeep_primitives as primitives;
pub use emberkeep_schema as schema;

/// The README's example is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
