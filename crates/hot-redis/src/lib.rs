//! The hot-state contract over Redis and Valkey, standalone and Cluster.
//!
//! Responsible for: commits by one generic script, combining, guesses, turns, receipts, the server's clock,
//! routing on a Cluster, telling apart what was executed from what was not.
//! Not responsible for: what a transaction means (`emberkeep-hot`), any game, any key of a game.

mod address;
mod admit;
mod authority;
mod batch;
mod budget;
mod clock;
mod combiner;
mod confirm;
mod distinct;
mod engine;
mod failure;
mod flight;
mod group;
#[cfg(test)]
mod hostile;
mod inferred;
mod job;
mod kept;
mod known;
mod landing;
mod leases;
pub mod limits;
mod line;
mod listen;
mod merge;
mod node;
mod pages;
mod rights;
mod router;
mod scan;
mod shared;
mod together;
mod view;
mod watch;
mod wire;

pub use address::Address;
pub use engine::RedisEngine;
