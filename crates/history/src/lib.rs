//! History: declared tables and exact totals behind one contract, and the store that runs in this process.
//!
//! Responsible for: the contract of a store (`contract`), its typed face ([`History`]), the embedded store in one
//! folder ([`Embedded`]), and the ways of events into history ([`outbox`], [`spool`]).
//! Not responsible for: any game, any network protocol, hot state.
#![doc = include_str!("../docs/example.md")]

mod backoff;
mod contract;
mod cursor;
mod deferred;
mod delivery;
pub mod embedded;
mod error;
mod history;
mod key_encoding;
pub mod limits;
mod log_claims;
mod log_tables;
mod logs;
pub mod outbox;
mod query;
mod schema;
pub mod spool;
#[cfg(feature = "testing")]
pub mod testing;
mod validate;

pub use contract::{
    Applied, ConditionalWrite, Fold, FoldEntry, Folded, HistoryStore, Pending, Position, RangeRequest,
    RawPage, RawRow, RawTotals, Source, Stats, UnreadableRow, Write, Written,
};
pub use cursor::Cursor;
pub use deferred::Deferred;
pub use delivery::{Batch, Projection, Rejection};
pub use embedded::Embedded;
pub use emberkeep_hot::embedded::{Clock, ManualClock};
pub use error::{Error, Result};
pub use history::{History, TotalsEntry, TotalsOf};
pub use log_claims::LogClaims;
pub use log_tables::{ClosedSource, DeadLetter, LogPosition};
pub use logs::LogState;
pub use query::{Page, Query};
pub use schema::HistorySchema;
