//! Hot state: the engine contract, atomic transactions, and the embedded engine with its journal.
//!
//! Responsible for: the vocabulary of reads and writes, what a transaction means, the typed store, the engine that runs
//! in process, the suite of behaviours that every engine passes.
//! Not responsible for: any game, any network protocol, history.

pub mod command;
mod cursor;
pub mod embedded;
pub mod engine;
mod error;
pub mod journal;
pub mod limits;
pub mod pubsub;
pub mod store;
pub mod tx;

pub use error::{Error, Result, show};
pub use store::{Scope, Store, Tx};
