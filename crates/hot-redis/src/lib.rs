//! The hot-state contract over Redis and Valkey, standalone and Cluster.
//!
//! Responsible for: commits by one generic script, group commit, speculative reads, fairness leases, commit
//! receipts, the server's clock, routing on a Cluster, and whether a failed call was executed. Not
//! responsible for: what a transaction means (`emberkeep-hot`), any game, any key of a game.
//!
//! A transaction passes through the folders in this order: `engine` → `commit` (with `cache`) → `script` →
//! `cluster`.

mod acl;
pub mod acl_file;
mod backoff;
mod cache;
mod clock;
mod cluster;
mod commit;
mod engine;
mod failure;
#[cfg(test)]
mod hostile_replies;
pub mod limits;
mod read;
mod script;
mod shared;
mod subscribe;

pub use cluster::RedisUrl;
pub use engine::RedisEngine;
