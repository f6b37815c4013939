//! What the tests of a game need: real servers, clocks that a test moves, and one body on every engine.
//! Feature `testing`, for `[dev-dependencies]`.
//!
//! # One body on every engine
//!
//! A case is an async function of a [`Store`](crate::hot::Store). [`on_every_engine!`] runs each of them in process, on
//! a real Redis and on a real Redis Cluster:
//!
//! ```no_run
//! mod cases {
//!     use emberkeep::prelude::*;
//!
//!     partition! {
//!         /// A realm.
//!         pub struct Realm(Name) as "realm";
//!     }
//!     family! {
//!         /// How often a door was opened.
//!         pub DOOR = "door:{realm}" {
//!             kind: Text<Number<i64>>, partition: Realm, parts: (), ttl: persistent, owner: "doors"
//!         }
//!     }
//!
//!     /// Servers are shared by all cases: each has a partition of its own.
//!     pub async fn a_door_is_counted(store: Store) {
//!         let scope = store.scope(Realm(Name::new("a_door_is_counted").expect("a name")));
//!         scope.transact(|tx| tx.incr_by(&DOOR.key(), 1)).await.expect("a store that works");
//!         assert_eq!(scope.get(&DOOR.key()).await, Ok(Some(1)));
//!     }
//! }
//!
//! emberkeep::testing::on_every_engine!(mod doors = cases { a_door_is_counted });
//! # fn main() {}
//! ```
//!
//! `cargo test` then shows `doors::a_door_is_counted`, `doors::every_case_with_closures_checked` (in process, every closure
//! twice), `doors::every_case_on_redis` and `doors::every_case_on_a_cluster`. [`on_two_connections!`] gives a case two stores, as two processes have them.
//!
//! # Servers
//!
//! [`redis`](fn@redis), [`valkey`] and [`cluster`] start a server for one test, [`shared_redis`] and [`shared_cluster`]
//! one for all tests of a binary. They need the programs `redis-server` or `valkey-server`. Where these are not
//! installed, a test says so and is skipped; with `CI=true` it fails.
//!
//! ```no_run
//! use emberkeep::{prelude::*, testing};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let Some(server) = testing::redis() else { return Ok(()) };
//! let store = Store::open(&server.url()).await?;
//! server.kill9();
//! assert!(store.ready().await.is_err());
//! # Ok(()) }
//! ```
//!
//! # Time
//!
//! No test has to sleep to see a deadline pass. In process, [`store_at`] gives a store with a [`ManualClock`]. A server
//! that was started with [`RedisOptions::clock_offset`] follows [`RedisServer::set_clock_offset`], if the library
//! `libfaketime` is installed:
//!
//! ```no_run
//! # use emberkeep::testing::{RedisServer, require};
//! let Some(server) = require(RedisServer::options().clock_offset(0).start()) else { return };
//! server.set_clock_offset(3_600); // An hour has passed.
//! ```

#[doc(inline)]
pub use crate::{on_every_engine, on_two_connections};
#[doc(inline)]
pub use emberkeep_hot::embedded::{Clock, ManualClock};
#[doc(inline)]
pub use emberkeep_testkit::{
    FaultProxy, Flavor, RedisCluster, RedisOptions, RedisServer, Reply, Resp, Scratch, Unavailable, block_on,
    cluster, redis, require, scratch, shared_cluster, shared_redis, shared_valkey, valkey,
};

use emberkeep_hot::{Store, embedded::Embedded};
use std::sync::Arc;

/// A store in memory whose clock shows `ms` since 1970, and moves only when the test moves it.
///
/// ```
/// let (store, clock) = emberkeep::testing::store_at(1_000);
/// clock.advance(500);
/// assert_eq!(emberkeep::testing::block_on(store.now()), Ok(1_500));
/// ```
pub fn store_at(ms: i64) -> (Store, ManualClock) {
    let clock = ManualClock::at(ms);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open();
    (Store::new(Arc::new(engine.expect("without a folder there is nothing that could fail"))), clock)
}

/// Runs cases on the embedded engine (a test each), once more with closures checked, on a real Redis and on a real Redis
/// Cluster (one test for all of them, which names those that fail).
///
/// `on_every_engine!(mod doors = cases::door { opens, stays_locked });` runs `cases::door::opens` and the other one:
/// each is a `pub async fn(Store)` with a partition of its own. See [`testing`](crate::testing).
#[macro_export]
macro_rules! on_every_engine {
    ($($suite:tt)+) => {
        $crate::testing::macro_support::on_every_engine! { @in [$crate::hot] [$crate::redis] $($suite)+ }
    };
}

/// Runs cases of two stores, `pub async fn(Store, Store)`, on a real Redis and on a real Redis Cluster. Each store has
/// connections of its own, as two processes have: neither knows what the other one does.
#[macro_export]
macro_rules! on_two_connections {
    ($($suite:tt)+) => {
        $crate::testing::macro_support::on_two_connections! { @in [$crate::hot] [$crate::redis] $($suite)+ }
    };
}

/// Used by the macros of this module. Not a public interface.
#[doc(hidden)]
pub mod macro_support {
    pub use emberkeep_testkit::{on_every_engine, on_two_connections};
}
