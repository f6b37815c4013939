//! Servers and connections: which server has a slot, how a command gets there, and what its replicas have.

mod activity;
pub(crate) mod connection;
pub(crate) mod replica_wait;
pub(crate) mod router;
pub(crate) mod server;
mod tls;
pub(crate) mod url;
