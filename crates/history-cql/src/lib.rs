//! History on ScyllaDB and Cassandra: the contract of `emberkeep-history` over CQL.
//!
//! **Responsible for**: connecting by URL, the tables of a keyspace in both layouts, reads, writes, conditional writes and
//! totals, and comparing a live keyspace with the declarations.
//!
//! **Not responsible for**: any game, hot state, checks of arguments (`emberkeep_history::History` has made them).
//!
//! What a call promises beside the contract:
//! - every statement is prepared once, sent to a replica of its partition, and marked idempotent unless it is conditional;
//! - a node that hangs is given up after four seconds and its requests go to another one; no request takes longer than
//!   the `timeout` of the URL;
//! - rows of one call that belong to one partition are sent together, in unlogged batches of bounded size.
//!
//! ```no_run
//! use emberkeep_history::{History, HistorySchema};
//! use emberkeep_history_cql::{CqlOptions, CqlStore};
//! use std::sync::Arc;
//!
//! # async fn open() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "cql://user:password@db1,db2/darkages?dc=eu&layout=scaled";
//! let store = CqlStore::connect(url, HistorySchema::new(), CqlOptions::default()).await?;
//! let history = History::new(Arc::new(store));
//! # Ok(())
//! # }
//! ```

mod back_pressure;
mod clock;
mod cluster;
mod conditional;
mod connect;
mod failure;
pub mod limits;
mod options;
mod order;
mod place;
mod plan;
mod read;
mod scan;
pub mod schema;
mod sliced_scan;
mod slices;
mod store;
mod totals;
mod url;
mod values;
mod write;

pub use connect::ConnectError;
pub use options::{CqlOptions, SchemaMode};
pub use slices::{DayBucket, DaySlices};
pub use store::CqlStore;
pub use url::{CqlUrl, UrlError};
