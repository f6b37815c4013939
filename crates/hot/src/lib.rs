//! Hot state: the engine interface, atomic transactions, and the embedded engine with its write-ahead log.
//!
//! Responsible for: reads and writes as data (`command`), transactions (`tx`), the typed store (`store`),
//! the engine that runs in this process (`embedded`) and its journal.
//! Not responsible for: any game, any network protocol, history. `emberkeep-conformance` tests every engine.

pub mod command;
mod cursor;
pub mod embedded;
pub mod engine;
mod error;
pub mod journal;
mod kind;
pub mod limits;
pub mod pubsub;
pub mod store;
pub mod tx;

pub use error::{Error, Result, show};
pub use store::{Scope, Store};
pub use tx::{ReadTx, Tx};
