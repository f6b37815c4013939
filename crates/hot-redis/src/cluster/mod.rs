//! Servers and connections: which server has a slot, how a command gets there, and which replicas have a
//! commit.

mod activity;
mod connection;
mod replica_wait;
mod router;
mod server;
mod slots;
mod tls;
mod url;

pub(crate) use replica_wait::{ReplicaWait, WaitOutcome};
pub(crate) use router::Router;
pub(crate) use server::{ALWAYS, Gate, Server};
#[cfg(test)]
pub(crate) use slots::ranges_of;
pub use url::RedisUrl;
