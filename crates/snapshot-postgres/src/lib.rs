//! Snapshots on PostgreSQL: the contract of `emberkeep-snapshot` over binary COPY.
//!
//! Responsible for: connections, TLS, tables and their migration, the errors of a server.
//! Not responsible for: what a snapshot is, comparing and restoring (`emberkeep-snapshot`).
//!
//! A snapshot is written in one transaction, so it is listed when that is committed and never before. Tables are made
//! by the first connection; their names begin with `ember_snapshot`.

mod connect;
mod failure;
mod migrate;
mod read;
mod store;
mod tls;
mod url;
mod write;

pub use store::PostgresStore;
