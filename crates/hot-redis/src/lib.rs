//! The hot-state contract over Redis and Valkey, standalone and Cluster.
//!
//! Responsible for: commits by one generic script, combining, guesses, turns, receipts, the server's clock,
//! routing on a Cluster, telling apart what was executed from what was not.
//! Not responsible for: what a transaction means (`emberkeep-hot`), any game, any key of a game.

mod acl;
mod cache;
mod clock;
mod cluster;
mod commit;
mod distinct;
mod engine;
mod failure;
#[cfg(test)]
mod hostile_replies;
pub mod limits;
mod read;
mod script;
mod shared;
mod subscribe;

pub use cluster::url::RedisUrl;
pub use engine::RedisEngine;
